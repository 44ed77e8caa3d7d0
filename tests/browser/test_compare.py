"""Models side by side."""

import numpy as np
import pytest
import torch

from densembed.data import as_input
from densembed.fields.agreement import align_steps, distinguish
from densembed.fields.field import view
from densembed.fields.measures import field_statistics
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import EXAMPLES
from tests.browser.conftest import (
    choose,
    expect,
    shows,
)
from tests.browser.gallery import (
    COLOUR,
    FIXED,
    LETTERS,
    MOVING,
    OF,
    SMALL,
    STEPS,
    made,
    sample,
)
from tests.browser.views import ends, field_of, index_at, rests


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_four_models_side_by_side(site, kind):
    keys = dict(zip(("first", "second", "third", "fourth"), OF, strict=True))
    link = "&".join(f"{name}={key}" for name, key in keys.items())
    page = site(f"compare?models=4&{link}&class=3&field={kind}&by=epoch&epoch=20")
    sides = {}
    for name, key in keys.items():
        places = align_steps(OF[key], OF[key].steps, "epoch")
        index = int(np.searchsorted(places, 20, "right")) - 1
        count = OF[key].network().embedding.num_densities if kind == "mean" else 1
        sides[name] = field_of(sample(3), key, index) / count
        shows(page, f".columns .field.{name}", sides[name])
        row = view(OF[key], sample(3), [index]).probabilities[0]
        expect(page.locator(".columns .legend span").filter(has_text=f"{name}:")).to_have_text(
            f"{name}: {row.argmax()} ({100 * row.max():.1f} %)"
        )
        if name != "first":
            shows(page, f".columns .change.{name}", sides[name] - sides["first"], 2e-5)
    all_ends = [ends(page, f".columns .field.{name}") for name in keys]
    assert len(set(all_ends)) == 1
    choose(page, "Class", "8")
    shows(
        page,
        ".columns .field.first",
        field_of(sample(8), MOVING, index_at(MOVING, 20))
        / (OF[MOVING].network().embedding.num_densities if kind == "mean" else 1),
    )


def test_two_models_and_one_slider(site):
    page = site("compare?models=2")
    slider = page.get_by_label("Step of training")
    fields = {key: view(OF[key], sample()).fields for key in (MOVING, FIXED)}
    shows(page, ".columns .field.second", fields[FIXED][-1].sum(0))
    slider.press("ArrowLeft")
    slider.press("ArrowLeft")
    for name, key in (("first", MOVING), ("second", FIXED)):
        shows(page, f".columns .field.{name}", fields[key][-3].sum(0))
    change = fields[FIXED][-3].sum(0) - fields[MOVING][-3].sum(0)
    shows(page, ".columns .change.second", change, 2e-5)
    rests(page, f"field=sum&step={STEPS[-3]}")
    choose(page, "Align runs by", "fraction")
    place = align_steps(OF[MOVING], STEPS, "fraction")[-3]
    expect(page.get_by_label("Fraction of the training")).to_be_visible()
    expect(page.locator(".columns .stage")).to_have_attribute("data-step", f"{place:g}")
    shows(page, ".columns .field.first", fields[MOVING][-3].sum(0))
    rests(page, f"by=fraction&field=sum&fraction={place:g}")
    page.get_by_label("Second model").select_option(MOVING)  # the same: no difference
    shows(page, ".columns .change.second", np.zeros((112, 112)))
    expect(page.locator(".columns .change.second .facts dd")).to_have_text(
        "none: they are the same"
    )


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_all_classes_of_each_model_are_means_on_one_scale(site, kind):
    page = site(f"compare?field={kind}")
    choose(page, "More", "All classes")
    images = as_input(torch.stack([sample(6, 1 + k) for k in range(EXAMPLES)]))
    for index in (-1, -2):
        tops = set()
        for part, key in enumerate((MOVING, FIXED), 1):
            mean, _ = field_statistics(OF[key].model(index), images, 4)
            count = OF[key].network().embedding.num_densities if kind == "mean" else 1
            atlas = f".atlases .part:nth-child({part})"
            shows(page, f"{atlas} figure:nth-child(7)", mean / count)
            expect(page.locator(f"{atlas} figure")).to_have_count(10)
            tops.add(ends(page, atlas))
        assert len(tops) == 1
        page.get_by_label("Step of training").press("ArrowLeft")
    choose(page, "More", "All classes")
    expect(page.locator(".atlases")).to_be_hidden()


def test_models_of_other_classes_and_sizes_are_named(site):
    page = site(f"compare?models=3&second={LETTERS}&third={COLOUR}&open=classes")
    expect(page.locator(".atlases .part")).to_have_count(2)
    expect(page.get_by_text("The third model takes pictures of another size.")).to_be_visible()
    letters = Checkpoint.from_bytes(made("logistic-el-3", (1, 28, 28)))
    shows(page, ".columns .field.second", view(letters, sample()).fields[0].sum(0))
    expect(page.locator(".columns .field")).to_have_count(2)
    expect(page.locator(".columns .legend span")).to_have_count(1)  # other classes
    page.get_by_label("First model").select_option(COLOUR)  # whose pictures are the input then
    expect(page.get_by_text("The second model takes pictures of another size.")).to_be_visible()
    expect(page.locator(".columns .field")).to_have_count(2)
    expect(page.get_by_role("group", name="Input", exact=True)).to_be_hidden()
    page.get_by_label("First model").select_option(MOVING)
    shows(page, ".columns .field.first", field_of(sample()))
    rests(page, f"models=3&second={LETTERS}&third={COLOUR}&field=sum&open=classes")


def test_models_of_other_channels_are_named(site, tmp_path):
    colour = tmp_path / "colour.safetensors"
    colour.write_bytes(made("logistic-el-3", (3, 28, 28)))
    page = site(f"compare?second={MOVING}")
    page.locator("#file").set_input_files(colour)
    expect(page.get_by_text("The second model takes pictures with 1 channel.")).to_be_visible()


def test_columns_are_titled_as_in_python(site):
    """Four models, two of which are one: nothing tells them apart."""
    shown = [MOVING, FIXED, SMALL, MOVING]
    for keys in (shown[:2], shown[:3], shown, [MOVING, MOVING]):
        names = ("first", "second", "third", "fourth")
        link = "&".join(f"{name}={key}" for name, key in zip(names, keys, strict=False))
        page = site(f"compare?models={len(keys)}&{link}")
        wanted = distinguish([("", OF[key]) for key in keys])
        for name, title in zip(names, wanted, strict=False):
            expect(page.locator(f".columns .field.{name} .heading")).to_contain_text(title)


def test_all_classes_of_a_model_without_test_images(site):
    """A field of a blank picture was called the mean over 20 test images per class."""
    page = site(f"compare?first={LETTERS}&open=classes")
    expect(page.locator(".atlases")).to_have_text(
        "There are no test images for the first model, over which the fields could be averaged."
    )
