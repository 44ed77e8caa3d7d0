"""The files that the page offers for download."""

from densembed.figures.export import snippet
from tests.pages.conftest import visit
from tests.pages.test_explore import sample


def test_what_is_offered(small_gallery, trained):
    """playground#39, netron#1152: figures, numbers, the model, a program."""
    app = visit(more="Take it away", step=str(trained.steps[4]))
    names = [button.proto.label for button in app.get("download_button")]
    assert names == [
        "Numbers, CSV", "Numbers, NPZ", "Figure, HTML", "Figure, SVG", "Figure, PDF", "Figure, PNG",
        "Animation, GIF", "Animation, WebP", "Input, PNG", "Model",
    ]  # fmt: skip
    assert app.code[0].value == snippet("small.safetensors", sample(7), trained.steps[4]).strip()
