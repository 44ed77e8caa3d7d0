"""The static site: Explore and Compare in a browser without a server of ours."""

import base64
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from densembed.cli.main import main
from densembed.cli.site import USUAL
from densembed.data import load_dataset
from densembed.fields.field import field, view
from densembed.runs.gallery import Entry
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError
from densembed.web.site import write_site
from tests.browser.conftest import (
    choose,
    expect,
    painted,
    shows,
)
from tests.browser.gallery import (
    COLOUR,
    FIELD,
    FIXED,
    INPUT,
    LINEAR,
    MOVING,
    OF,
    PAPER,
    SMALL,
    made,
    sample,
)
from tests.browser.test_links import WITHOUT
from tests.browser.views import field_of


@pytest.mark.parametrize("way", ["button", "drop"])
@pytest.mark.parametrize("start", ["explore?class=3", "compare?class=3&field=sum"])
def test_a_checkpoint_of_ones_own(site, tmp_path, way, start):
    own = tmp_path / "my own.safetensors"
    own.write_bytes((PAPER / f"{SMALL}.safetensors").read_bytes())
    damaged = tmp_path / "bad.safetensors"
    damaged.write_bytes(own.read_bytes()[:-9])
    with pytest.raises(CheckpointError) as error:
        Checkpoint.from_bytes(damaged.read_bytes(), damaged.name)
    page = site(start)
    canvas = FIELD if start.startswith("explore") else ".columns .field.first"
    shows(page, canvas, field_of(sample(3)))
    bring(page, way, [damaged])
    expect(page.locator("#notices p")).to_have_text([str(error.value)])
    shows(page, canvas, field_of(sample(3)))
    bring(page, way, [own])
    shows(page, canvas, field_of(sample(3), SMALL))
    expect(page.locator("#notices")).to_be_hidden()
    label = "Model" if start.startswith("explore") else "First model"
    expect(page.get_by_label(label, exact=True)).to_have_value("file-my own")
    option = page.locator("select option", has_text="your file my own.safetensors")
    expect(option.first).to_be_attached()
    page.reload()
    expect(page.locator("#notices p")).to_contain_text(["which is kept only in the tab in which"])


def test_a_model_of_signals_of_ones_own(site, tmp_path):
    """The site has no test signals for it: the mean of its training signals is shown."""
    own = tmp_path / "signals.safetensors"
    own.write_bytes(made("logistic-el-5", (1, 40)))
    page = site()
    bring(page, "button", [own])
    checkpoint = Checkpoint.open(own)
    shows(page, INPUT, np.full((1, 40), checkpoint.header.scaling.mean))
    shows(page, FIELD, field(checkpoint.network()).values[0])
    expect(page.locator(".pair .opinion .heading small")).to_have_text("none: no signal")
    expect(page.get_by_text("Example", exact=True)).to_be_hidden()  # there are no test signals
    expect(page.get_by_role("button", name="Shuffle")).to_be_hidden()
    expect(page.locator("#notices p")).to_have_text(
        [
            "This page has no test signals for this model. In place of them is a blank signal, the "
            "mean of its training data."
        ]
    )
    page.get_by_label("Model", exact=True).select_option(SMALL)
    expect(page.locator("#notices")).to_be_hidden()


def test_a_sentence_about_test_images_is_that_of_the_first_model(site):
    page = site(f"compare?first={COLOUR}&second={SMALL}")
    said, first = page.locator("#notices"), page.get_by_label("First model", exact=True)
    expect(said).to_have_text(WITHOUT)
    first.select_option(SMALL)
    expect(said).to_be_hidden()
    first.select_option(COLOUR)
    expect(said).to_have_text(WITHOUT)


def test_models_and_test_signals_of_mnist1d(site, tmp_path):
    paths = [str(PAPER / f"{key}.safetensors") for key in USUAL]
    assert main(["site", str(tmp_path / "out"), *paths]) == 0
    at = f"{(tmp_path / 'out').as_uri()}/"
    data = load_dataset("mnist1d")
    signal = data.test.images[data.test.labels == 3][1]
    first, second = (key for key in USUAL if key.endswith("mnist1d"))
    shown = {key: Checkpoint.open(PAPER / f"{key}.safetensors") for key in (first, second)}
    page = site(f"compare?first={first}&second={second}&class=3&example=2&field=sum", at=at)
    measured = data.scaling.measured(signal.double()).numpy()
    shows(page, INPUT, measured)
    for place, key in (("first", first), ("second", second)):
        shows(page, f".columns .field.{place}", view(shown[key], signal, [-1]).fields[0])
    page.get_by_role("link", name="Explore").click()
    page.get_by_label("Model", exact=True).select_option(second)
    choose(page, "Class", "3")
    page.get_by_label("Example", exact=True).fill("2")
    page.get_by_label("Example", exact=True).press("Enter")
    shows(page, FIELD, view(shown[second], signal, [-1]).fields[0])
    page.get_by_label("Model", exact=True).select_option(MOVING)
    shows(page, INPUT, sample(3, 2)[0].numpy() / 255)


def bring(page: Page, way: str, paths: list[Path]) -> None:
    if way == "button":
        page.get_by_label("Open a checkpoint").set_input_files(paths)
        return
    contents = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths]
    page.evaluate(
        """files => {
          const dataTransfer = new DataTransfer();
          for (const [name, content] of files)
            dataTransfer.items.add(new File(
              [Uint8Array.from(atob(content), letter => letter.charCodeAt(0))], name));
          document.body.dispatchEvent(
            new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        contents,
    )


@pytest.mark.parametrize("way", ["button", "drop"])
def test_several_files_are_opened_at_once(site, tmp_path, way):
    """The browser empties its list of files while the first one is read."""
    names = ["one", "two", "three"]
    paths = [tmp_path / f"{name}.safetensors" for name in names]
    for path in paths:
        path.write_bytes(made("logistic-el-3", (1, 28, 28)))
    page = site()
    bring(page, way, paths)
    model = page.get_by_label("Model", exact=True)
    expect(model).to_have_value("file-three")
    values = model.locator("option").evaluate_all("options => options.map(each => each.value)")
    assert {f"file-{name}" for name in names} <= set(values)


@pytest.mark.parametrize("link", ["explore?show=class", "explore?more=about", "compare"])
@pytest.mark.parametrize("width", [320, 1440])
def test_classes_of_long_names_leave_the_page_its_width(site, tmp_path, link, width):
    own = tmp_path / "long.safetensors"
    own.write_bytes(made("logistic-el-3", (1, 28, 28), classes=["a" * 120, "b" * 120]))
    page = site(link, width)
    bring(page, "button", [own])
    page.wait_for_url("**file-long*")
    if link != "compare":
        painted(page, FIELD)
    expect(page.locator(".opinion .bars li")).to_have_count(2)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_the_site_opens_from_the_disk(site, built):
    page = site("explore?class=3", at=f"{built.as_uri()}/")
    shows(page, FIELD, field_of(sample(3)))
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What differs between these models?")
    mean = field_of(sample(), FIXED) / OF[FIXED].network().embedding.num_densities
    shows(page, ".columns .field.second", mean)
    page.get_by_role("link", name="Explore").click()
    page.get_by_label("Model", exact=True).select_option(LINEAR)
    shows(page, FIELD, field_of(sample(), LINEAR))


def test_a_drawing_on_the_default_site_starts_on_a_model_trained_on_mnist(site, tmp_path):
    entries = [Entry(key, PAPER / f"{key}.safetensors") for key in USUAL]
    files = write_site(tmp_path, entries, [load_dataset("digits")])
    assert sum(path.stat().st_size for path in files) < 5e6
    page = site(at=f"{tmp_path.as_uri()}/")
    model = page.get_by_label("Model", exact=True)
    expect(model).to_have_value(MOVING)
    choose(page, "Input", "Draw")
    expect(model).to_have_value("logistic-el-mnn-8-4")
    expect(page.locator(".choices .note")).to_contain_text("Selected for drawings and photographs")


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
@pytest.mark.parametrize(
    ("figure", "name"),
    [(FIELD, f"after-training-epoch-{OF[MOVING].config.epochs}"), (INPUT, "the-input-28-28")],
)
def test_a_figure_is_saved(site, kind, figure, name):
    page = site("explore?show=overlay")
    shows(page, FIELD, field_of(sample()))
    page.locator(figure).hover()
    with page.expect_download() as waiting:
        page.locator(figure).get_by_role("button", name=kind).click()
    start = {"SVG": b"<svg", "PNG": b"\x89PNG"}[kind]
    assert waiting.value.path().read_bytes().startswith(start)
    assert waiting.value.suggested_filename == f"densembed-{name}.{kind.lower()}"


NAMES = ("cat [tabby]", "a*b", "[ink]", "back\\slash", "none", "predicted", "3", "1")


def test_names_of_classes_are_text_in_their_own_order(site, tmp_path):
    own = tmp_path / "names.safetensors"
    own.write_bytes(made("logistic-el-4", (1, 28, 28), classes=NAMES))
    page = site("explore?more=about")
    bring(page, "button", [own])
    of_class = page.get_by_label("for class")
    page.get_by_role("button", name="weight for a class").click()
    expect(of_class.locator("option")).to_have_text(["predicted", *NAMES])
    caption = page.locator(".part.chain .terms")
    for number, name in enumerate(NAMES, 1):
        of_class.select_option(index=number)  # a value could be the text of another one
        expect(of_class).to_have_value(name)
        expect(caption).to_contain_text(f" of {name} is raised by")
    for chapter in (3, 5):
        page.goto(
            f"{page.url.partition('#')[0]}#explore?model=file-names&more=story&chapter={chapter}"
        )
        expect(page.locator(".story .said")).to_be_visible()


@pytest.mark.parametrize("more", ["story&chapter=1", "story&chapter=2", "density", "about"])
def test_details_on_the_finest_grid(site, more):
    page = site(f"explore?model={SMALL}&grid=112&more={more}")
    expect(
        page.locator(":is(.story, .details, .chain) figure >> visible=true").first
    ).to_be_visible()
    expect(page.locator("#notices")).to_be_hidden()


def test_a_model_without_test_images_gets_no_answers(site, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes(made("logistic-el-4", (1, 20, 20)))
    page = site("explore?noise=0.5&more=classes")
    bring(page, "button", [own])
    answer = page.locator(".pair .opinion .heading small")
    page.goto(f"{page.url.partition('#')[0]}#explore?model=file-own&noise=0.5&more=classes")
    expect(answer).to_have_text("none: no picture")
    expect(page.get_by_text("There are no test images for this model, over which")).to_be_visible()


def test_a_signal_that_is_too_long_for_the_link(site, tmp_path):
    own = tmp_path / "long.safetensors"
    own.write_bytes(made("logistic-el-5", (1, 3000)))
    page = site("explore?from=upload")
    bring(page, "button", [own])
    page.get_by_role("button", name="Numbers").click()
    numbers = " ".join(f"{value:.5f}" for value in np.random.default_rng(0).random(3000))
    page.locator(".numbers textarea").fill(numbers)
    expect(page.get_by_text("This signal is too large for the link of the page")).to_be_visible()
    page.locator(".numbers textarea").fill("0 1 2")
    expect(page.get_by_text("This signal is too large")).to_be_hidden()


def test_links_that_say_too_much(site):
    page = site("train?class=3")
    expect(page.locator("#notices p")).to_have_text(
        ["There is no page “train”, so Explore is shown."]
    )
    page = site("explore?class=3&class=4")
    expect(page.locator("#notices p")).to_have_text(
        ["The link sets “Class” more than once: the first is used."]
    )
    page = site("COMPARE?class=3")
    expect(page.get_by_role("heading", name="What differs between these models?")).to_be_visible()
    expect(page.locator("#notices")).to_be_hidden()


def test_files_of_one_name_are_kept_side_by_side(site, tmp_path):
    page = site("explore")
    for folder, model in (("one", "logistic-el-4"), ("two", "logistic-el-3")):
        own = tmp_path / folder / "own.safetensors"
        own.parent.mkdir()
        own.write_bytes(made(model, (1, 28, 28)))
        bring(page, "button", [own])
    files = page.locator("select option", has_text="your file own.safetensors")
    expect(files).to_have_text(
        [
            "Logistic-EL, B = 4 · your file own.safetensors",
            "Logistic-EL, B = 3 · your file own.safetensors (2)",
        ]
    )


def test_a_file_changes_the_model_and_nothing_of_the_link(site, tmp_path):
    own = tmp_path / "own.safetensors"
    own.write_bytes((PAPER / f"{LINEAR}.safetensors").read_bytes())
    page = site("explore?show=densities&more=density&density=90&class=3&tour=1")
    expect(page.locator("#notices")).to_be_hidden()
    bring(page, "button", [own])
    expect(page.locator("select option:checked", has_text="own.safetensors")).to_be_attached()
    expect(page.locator("#notices")).to_be_hidden()
    page = site(f"compare?first={SMALL}&second={FIXED}&class=3")
    bring(page, "button", [own])
    first = page.get_by_label("First model").locator("option:checked")
    expect(first).to_have_text("Linear classifier · your file own.safetensors")
    expect(page.locator("#notices")).to_be_hidden()


def test_the_first_example_is_kept_where_the_view_would_open_on_another(site):
    page = site(f"explore?model={SMALL}")
    example = page.get_by_role("spinbutton", name="Example")
    expect(example).not_to_have_value("1")
    example.fill("1")
    example.press("Enter")
    page.wait_for_url(re.compile("example=1$"))
    page.reload()
    expect(example).to_have_value("1")


def test_the_menu_leads_to_the_other_view_with_the_input_of_this_one(site):
    page = site("explore?class=3&example=2&turn=20&step=0&more=about")
    menu = page.get_by_role("navigation", name="Views")
    menu.get_by_text("Compare").click()
    expect(page).to_have_url(re.compile(r"#compare\?class=3&example=2&turn=20$"))
    choose(page, "Class", "5")
    expect(page).to_have_url(re.compile("class=5"))
    menu.get_by_text("Explore").click()
    expect(page).to_have_url(re.compile("#explore[?].*class=5.*step=0.*more=about"))
    expect(page.locator("#notices")).to_be_hidden()


def test_a_prediction_for_an_empty_pad_is_one_for_a_blank_picture(site):
    page = site("explore?from=draw&more=about")
    words = "Even for a blank picture, the highest score wins:"
    expect(page.locator(".details")).to_contain_text(words, use_inner_text=True)


def test_no_model_is_recommended_that_is_not_there(site, address, tmp_path):
    entries = [Entry(key, PAPER / f"{key}.safetensors") for key in (LINEAR, "mlp-50")]
    write_site(tmp_path / "plain", entries, [load_dataset("digits")])
    plain = f"{(tmp_path / 'plain').as_uri()}/"
    for chapter, advice in ((3, "choose a model with EL"), (4, "Choose one above")):
        for start, visible in ((address, True), (plain, False)):
            page = site(f"explore?more=story&chapter={chapter}&model={LINEAR}", at=start)
            expect(page.locator(".story .words > p").first).to_be_visible()
            expect(page.locator(".story", has_text=advice)).to_have_count(int(visible))
            lead = page.get_by_text("Choose a model with EL in its name to see where")
            expect(lead).to_have_count(int(visible))


def test_a_signal_is_printed_at_least_as_wide_as_its_field(site, tmp_path):
    for link in ("explore", "compare?field=mean"):
        page = site(link)
        bring(page, "button", [PAPER / f"{key}.safetensors" for key in USUAL[-2:]])
        expect(page.locator(INPUT).first).to_be_visible()
        expect(page.locator(".live.signals")).to_be_visible()
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 720, "height": 1000})
        field = ".pair figure" if link == "explore" else ".columns .field"
        widths = [page.locator(part).first.bounding_box()["width"] for part in (INPUT, field)]
        assert widths[0] >= 0.95 * widths[1]


def test_colour_scales_are_printed(site):
    """They are backgrounds, which browsers leave out by default."""
    page = site()
    shows(page, FIELD, field_of(sample()))
    assert page.pdf().count(b"ShadingType") == 3  # of the input and both fields
