"""What explains Explore: the chain, the five steps, the glossary, and the first sight."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import logistic

from densembed.data import as_input, load_dataset
from densembed.figures.theme import FOR
from densembed.runs.gallery import Entry
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import write_site
from tests.browser.conftest import choose, drag, expect, numbers, painted, until
from tests.browser.gallery import COLOUR, FIXED, LINEAR, MLP, MOVING, OF, PAPER, made, sample
from tests.training import files

CHAIN = ".part.chain"


def features(checkpoint: Checkpoint, picture: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The readings Γx after training, and the weights of the classes, by torch."""
    model, x = checkpoint.model(-1).double(), as_input(picture[None], torch.float64)
    with torch.inference_mode():
        return model.embedding(x)[0].flatten().numpy(), model.classifier.weight.numpy()


def test_the_chain_follows_a_density_with_the_numbers_of_torch(site):
    page = site("explore?more=about")
    readings, weights = features(OF[MOVING], sample())
    np.testing.assert_allclose(painted(page, f"{CHAIN} .readings").ravel(), readings, 0, 1e-5)
    terms = readings * weights[7]
    np.testing.assert_allclose(numbers(page, f"{CHAIN} .terms").ravel(), terms, 0, 1e-5)
    best = int(terms.argmax())
    summed = page.locator(f"{CHAIN} .sum > .heading")
    expect(summed).to_contain_text(f"Density {best + 1} of 100")
    mass = numbers(page, f"{CHAIN} .sum .mass")
    product = numbers(page, f"{CHAIN} .sum .product")
    ink = sample()[0].numpy() / 255
    np.testing.assert_allclose(product, mass * ink, 0, 1e-6)
    assert product.sum() == pytest.approx(readings[best], abs=1e-4)
    expect(page.locator(f"{CHAIN} .equals")).to_contain_text(f"{readings[best]:.3f}")
    row = page.locator(f"{CHAIN} .weights tbody tr").nth(3).locator("td")
    expect(row.nth(1)).to_have_text(signed(weights[3][best] * readings[best]))


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def test_a_square_is_chosen_by_click_and_by_keyboard(site):
    page = site("explore?more=about&unit=1")
    painted(page, f"{CHAIN} .readings")
    heading = page.locator(f"{CHAIN} .sum > .heading")
    expect(heading).to_contain_text("Density 1 of 100")
    plot = page.locator(f"{CHAIN} .terms .plot")
    box = plot.bounding_box()
    plot.click(position={"x": box["width"] * 0.25, "y": box["height"] * 0.35})
    expect(heading).to_contain_text("Density 33 of 100")
    page.locator(f"{CHAIN} .readings .plot").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(heading).to_contain_text("Density 67 of 100")
    until(page, lambda: "unit=67" in page.url)


def test_a_class_shows_its_evidence_while_it_is_pointed_at(site):
    page = site("explore?more=about")
    readings, weights = features(OF[MOVING], sample())
    painted(page, f"{CHAIN} .terms")
    row = page.locator(f"{CHAIN} .classes button").nth(1)
    for start, end in (
        (row.hover, lambda: page.mouse.move(1, 1)),
        (row.focus, lambda: page.keyboard.press("Shift+Tab")),
    ):
        start()
        heading = page.locator(f"{CHAIN} .terms .heading")
        expect(heading).to_contain_text("Score of 1")
        terms = numbers(page, f"{CHAIN} .terms").ravel()
        np.testing.assert_allclose(terms, readings * weights[1], 0, 1e-5)
        end()
    row.click()
    until(page, lambda: "for=1" in page.url)


@pytest.mark.parametrize(
    ("model", "title", "words"),
    [
        (f"{FIXED}&step=0", "225 fixed densities", "Only training moves it"),
        (f"{LINEAR}&step=0", "Weights for", "which training sets"),
        (MLP, "Hidden unit", "no densities"),
        (COLOUR, "27 densities", "reads the picture first"),
    ],
)
def test_each_kind_of_network_has_its_own_chain(site, model, title, words):
    page = site(f"explore?more=about&model={model}")
    painted(page, f"{CHAIN} .terms")
    expect(page.locator(f"{CHAIN} .units .heading")).to_contain_text(title)
    expect(page.locator(f"{CHAIN} .flow")).to_contain_text(words)
    expect(page.locator(f"{CHAIN} .link.micro")).to_be_visible(visible=model == COLOUR)
    if model.startswith(FIXED):
        expect(page.locator(".details .text")).to_contain_text("before training, with all values")
        expect(page.locator(".details .text")).to_contain_text("Training sets the places")


def test_one_of_a_thing_is_in_the_singular(site, tmp_path):
    page = site("explore?more=about")
    name, flow, summed = ".choices .glossed", f"{CHAIN} .flow", f"{CHAIN} .sum"
    lead = ".lead p"
    texts = {
        "logistic-el-mnn-1-1": [
            (name, "1 density (B = 1), placed by a micro network (mNN) with 1 density (B₀ = 1)."),
            (flow, "with 1 small density. A linear map turns this reading into 1 place."),
            (flow, "3: 1 density"),
            (summed, "The density of the micro network moves it (orange line); its reading is"),
            (
                lead,
                "its one density lies there, and reads the mean ink under it. A micro network "
                "moves it with the input.",
            ),
        ],
        "logistic-el-1": [
            (flow, "2: 1 fixed density"),
            (flow, " by 1 density (+"),
            (lead, "It is fixed; a micro network would move it with the input."),
        ],
        "mlp-1": [("select", "MLP with 1 hidden unit"), (flow, "3: 1 hidden unit")],
        "stages-1-logistic-el-1": [
            ("select", "One adaptive stage of 1 map,"),
            (flow, "1 map, each read by 1 density:"),
        ],
    }
    for model, wanted in texts.items():
        own = tmp_path / f"{model}.safetensors"
        own.write_bytes(made(model, (1, 28, 28), lambda _, value: abs(value), "0123456789"))
        page.locator("#file").set_input_files(own)
        for place, words in wanted:
            expect(page.locator(place).first).to_contain_text(words, use_inner_text=True)


@pytest.mark.parametrize(
    ("chapter", "words"),
    [
        (3, "The network has 1 bump, which is its receptive field: bright is where"),
        (4, "it computes where the bump of the network goes. "),
        (5, "At first, the bump lies at a random place and all weights are random"),
        (5, "In each step, the network sees up to 128 pictures with their right answers."),
    ],
)
def test_the_story_of_a_network_with_one_density(site, tmp_path, chapter, words):
    page = site(f"explore?more=story&chapter={chapter}")
    own = tmp_path / "one.safetensors"
    own.write_bytes(made("logistic-el-mnn-1-1", (1, 28, 28)))
    page.locator("#file").set_input_files(own)
    text = page.locator(".story .words > p").first
    expect(text).to_contain_text(words, use_inner_text=True)


def test_where_one_density_starts_on_a_grid(site, tmp_path):
    page = site("explore?more=story&chapter=5")
    for model, place in (("logistic-el-1", "in the middle"), ("logistic-el-mnn-1-1", "near the m")):
        own = Checkpoint.from_bytes(made(model, (1, 28, 28)))
        config = own.config.model_copy(update={"location_start": "grid"})
        path = tmp_path / f"{model}.safetensors"
        header = own.header.model_copy(update={"config": config})
        Checkpoint(header, own.tensors).save(path)
        page.locator("#file").set_input_files(path)
        text = page.locator(".story .words > p").first
        expect(text).to_contain_text(f"At first, the bump lies {place}", use_inner_text=True)


def test_densities_of_several_channels_are_counted_together(site):
    page = site(f"explore?model={COLOUR}")
    expect(page.locator(".choices .glossed")).to_have_text(
        "Logistic-EL: 3 × 3 densities per channel, 27 in all (B = 3), placed by a micro network "
        "(mNN) with 2 × 2 densities per channel (B₀ = 2).",
        use_inner_text=True,
    )


@pytest.mark.parametrize(
    ("highest", "words"),
    [
        (10, "All scores are equal, so no class is preferred."),
        (2, "2 classes share the highest score: the first of them, 0, counts as the prediction."),
    ],
)
def test_scores_that_are_equal_are_told_as_what_they_are(site, tmp_path, highest, words):
    def tied(name: str, value: torch.Tensor) -> torch.Tensor:
        if name.startswith("classifier"):
            value = torch.zeros_like(value)
            if name.endswith("bias"):
                value[..., :highest] = 1.0
        return value

    path = tmp_path / "tied.safetensors"
    path.write_bytes(made("logistic-el-1", (1, 28, 28), tied, "0123456789"))
    for link in ("about", "story&chapter=3"):
        page = site(f"explore?more={link}")
        page.locator("#file").set_input_files(path)
        expect(page.locator(".details")).to_contain_text(words, use_inner_text=True)


def test_which_of_several_members_is_shown(site, tmp_path):
    path = tmp_path / "three.safetensors"
    files.made(members=3).save(path)
    page = site("explore")
    page.locator("#file").set_input_files(path)
    facts = page.locator(".note", has_text="(3 members) error")
    expect(facts).to_contain_text("30.00 ± 2.00 % (3 members) error")
    expect(facts).to_contain_text("Shown is the member whose error is nearest to the mean.")


def test_the_channels_of_colours_are_named(site, tmp_path):
    page = site(f"explore?more=about&model={COLOUR}&unit=10")  # of 9 densities per channel
    summed = page.locator(f"{CHAIN} .sum")
    for words in ("how it reads the green channel", "mass × green", "The sum of mass × green"):
        expect(summed).to_contain_text(words)
    expect(page.locator(f"{CHAIN} .link.picture .caption")).to_contain_text(
        "12 × 21 pixels, each with the amounts of red, green and blue ink", use_inner_text=True
    )
    own = {}
    for model in ("linear", "mlp-1"):
        own[model] = tmp_path / f"{model}.safetensors"
        own[model].write_bytes(made(model, (3, 12, 21)))
    page.locator("#file").set_input_files(own["linear"])
    expect(page.locator(f"{CHAIN} .units .caption")).to_contain_text(
        "Its channels lie one below the other: red, green, blue."
    )
    weights = Checkpoint.open(own["linear"]).model(-1).classifier.weight.numpy()
    shown = numbers(page, f"{CHAIN} .units")
    assert shown.shape == (36, 21)
    assert abs(weights - shown.ravel()).max(1).min() < 1e-6
    page.locator("#file").set_input_files(own["mlp-1"])
    expect(summed).to_contain_text("over all pixels and channels")
    expect(summed.locator(".product")).to_be_hidden()


def test_the_receptive_field_of_stages_is_a_gradient(site, tmp_path):
    key = "frontier-stages-4-5-7-logistic-el-2"
    page = site("explore?more=about")
    page.locator("#file").set_input_files(PAPER / f"{key}.safetensors")
    expect(page.locator(f"{CHAIN} .units .heading")).to_contain_text("Receptive field")
    page.locator(f"{CHAIN} .readings .plot").focus()
    for key_pressed in ("ArrowRight", "Enter"):
        page.keyboard.press(key_pressed)
    until(page, lambda: "unit=" in page.url)
    unit = int(page.url.split("unit=")[1].split("&")[0]) - 1
    model = Checkpoint.open(PAPER / f"{key}.safetensors").model(-1).double()
    x = as_input(sample()[None], torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(model.embedding(x).flatten()[unit], x)
    wanted = gradient[0, 0].numpy()
    found = numbers(page, f"{CHAIN} .units")
    np.testing.assert_allclose(found, wanted, 0, 1e-5 * abs(wanted).max())


def test_a_term_is_explained_to_pointer_and_keyboard(site):
    page = site("explore?more=about")
    term = page.locator(f"{CHAIN} .micro .term").first
    meaning = page.locator(f"{CHAIN} .micro .meaning").first
    expect(meaning).to_be_hidden()
    term.hover()
    expect(meaning).to_contain_text("reads the picture first")
    page.mouse.move(1, 1)
    expect(meaning).to_be_hidden()
    term.focus()
    expect(meaning).to_be_visible()
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()


def test_the_meaning_of_a_term_is_within_a_phone(site):
    page = site("explore", 320, is_phone=True)
    terms = page.locator(".lead .term")
    expect(terms.first).to_be_visible()
    for term in terms.all():
        term.tap()
        meaning = page.locator(".lead .meaning").filter(visible=True)
        expect(meaning).to_have_count(1)
        left, right = meaning.evaluate(
            "each => [each.getBoundingClientRect().left, each.getBoundingClientRect().right]"
        )
        assert 0 <= left < right <= 320
        page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (
            MOVING,
            "Logistic-EL: 10 × 10 densities (B = 10), placed by a micro network (mNN) with "
            "5 × 5 densities (B₀ = 5).",
        ),
        (FIXED, "Logistic-EL: 15 × 15 densities (B = 15)."),
        (LINEAR, ""),
    ],
)
def test_the_name_of_a_model_is_explained(site, key, wanted):
    page = site(f"explore?model={key}")
    parts = page.locator(".choices .glossed")
    expect(parts).to_have_text(wanted, use_inner_text=True)
    if wanted:
        parts.get_by_role("button", name="Logistic-EL").hover()
        expect(parts.get_by_role("tooltip")).to_contain_text("embedding layer")


@pytest.mark.parametrize("view", ["explore", "compare"])
def test_the_numbers_of_a_field_are_explained(site, view):
    page = site(view)
    page.locator(".scene .glossed").get_by_role("button", name="entropy").focus()
    expect(page.get_by_role("tooltip")).to_contain_text("log₂ 784 = 9.6 bits")
    assert np.log2(28 * 28) == pytest.approx(9.6, abs=0.05)
    page = site(f"{view}?hide=numbers")
    expect(page.locator(".scene .glossed")).to_be_hidden()


def logistic_bump(across: float, down: float, width: float) -> np.ndarray:
    """The mass of a logistic density in each pixel, by SciPy; numbers in shares of 28 pixels."""
    rows, columns = (
        np.diff(logistic.cdf(np.arange(29), 28 * place, 28 * width)) for place in (down, across)
    )
    return np.outer(rows, columns)


def test_the_bump_of_the_five_steps_reads_what_scipy_computes(site):
    page = site("explore?more=story&chapter=2")
    mass = logistic_bump(0.5, 0.36, 0.06)
    ink = sample()[0].numpy() / 255
    figures = ".story .stills figure"
    np.testing.assert_allclose(painted(page, f"{figures}:nth-child(1)"), mass, 0, 1e-6)
    said = page.locator(".story .said")
    expect(said).to_contain_text(f"{(mass * ink).sum():.3f}")
    slider = page.get_by_role("slider", name="From left to right")
    slider.fill("0.2")
    moved = logistic_bump(0.2, 0.36, 0.06)
    expect(said).to_contain_text(f"{(moved * ink).sum():.3f}")
    drag(page, f"{figures}:nth-child(1) .plot", [(0.2, 0.2), (0.75, 0.5)])
    expect(slider).to_have_value("0.75")


def test_the_five_steps_are_walked_by_keyboard_and_link(site):
    page = site("explore")
    page.get_by_role("button", name="How it works, in five steps").click()
    heading = page.locator(".story h2")
    titles = ["One bump", "Its reading", "A hundred bumps", "They move", "They learn"]
    for number, title in enumerate(titles, 1):
        expect(heading).to_have_text(f"{number}. {title}")
        until(page, lambda: "more=story" in page.url)
        page.locator(".story .deeper summary").click()
        expect(page.locator(".story .deeper code")).to_be_visible()
        page.locator(".story .deeper summary").click()
        page.locator(".story .next").focus()
        page.keyboard.press("Enter")
    expect(page.locator(f"{CHAIN} .terms .heading")).to_contain_text("Score of 7")
    page = site("explore?more=story&chapter=4")
    expect(page.locator(".story h2")).to_have_text("4. They move")


def test_each_kind_of_network_has_its_own_five_steps(site):
    page = site(f"explore?more=story&chapter=4&model={FIXED}")
    expect(page.locator(".story")).to_contain_text("In this model the bumps stay")
    page = site(f"explore?more=story&chapter=4&model={MLP}")
    expect(page.locator(".story")).to_contain_text("This model has no bumps")
    page = site(f"explore?more=story&chapter=3&model={MLP}")
    expect(page.locator(".story")).to_contain_text("has no densities")


def test_a_bump_over_several_maps_shows_all_that_it_adds_to_the_score(site):
    key = "frontier-stages-4-5-7-logistic-el-2"
    page = site("explore?more=story&chapter=3")
    page.locator("#file").set_input_files(PAPER / f"{key}.safetensors")
    bumps = page.locator(".story .stills figure:first-child circle[data-number]")
    expect(bumps).to_have_count(4)
    readings, weights = features(Checkpoint.open(PAPER / f"{key}.safetensors"), sample())
    shares = (readings * weights).reshape(10, 7, 4).sum(1)  # class, map, density
    shown = bumps.evaluate_all(
        "all => all.map(each => ({r: +each.getAttribute('r'), fill: each.getAttribute('fill')}))"
    )
    sizes = np.array([((each["r"] - 0.28) / 0.36) ** 2 for each in shown])
    np.testing.assert_allclose(sizes, abs(shares[7]) / abs(shares).max(), 0, 1e-4)
    assert [each["fill"] == FOR for each in shown] == list(shares[7] >= 0)


def test_an_incomplete_training_is_told_as_one(site, tmp_path):
    page = site("explore?more=story&chapter=5")
    said, whole = page.locator(".story .said"), OF[FIXED].steps[-1]
    expect(page.locator(".story")).to_contain_text("Afterwards, it misreads")
    expect(said).to_contain_text("after training.")
    header = OF[FIXED].header.model_copy(update={"steps": OF[FIXED].steps[:8]})
    last = header.steps[-1]
    for outcome, words in (
        ("stopped", "The training was stopped after"),
        ("diverged", "The training diverged; its last good snapshot is that after"),
        ("running", "The last snapshot of the training is that after"),
    ):
        own = tmp_path / f"{outcome}.safetensors"
        tensors = {name: values[:8].clone() for name, values in OF[FIXED].tensors.items()}
        Checkpoint(header.model_copy(update={"outcome": outcome}), tensors).save(own)
        page.locator("#file").set_input_files(own)
        for place in (".story", ".choices .note >> nth=0"):
            expect(page.locator(place)).to_contain_text(f"{words} {last:,} of {whole:,} steps.")
        expect(said).to_contain_text(f"after {last:,} steps.")
    change = "after epoch 1: 80 training images before, 200 now"
    own = tmp_path / "changed.safetensors"
    Checkpoint(header.model_copy(update={"data_changes": [change]}), tensors).save(own)
    page.locator("#file").set_input_files(own)
    note = page.locator(".choices .note >> nth=0")
    expect(note).to_contain_text(f"The data set changed {change}.")


def test_the_bump_reads_all_channels(site, tmp_path):
    """The reading is the mean over the channels; a picture without red had no ink."""
    for name in "abcde":
        folder = tmp_path / "pictures" / name
        folder.mkdir(parents=True)
        for k in range(5):
            Image.new("RGB", (21, 12), (0, 255, 255)).save(folder / f"{k}.png")
    own = tmp_path / "colour.safetensors"
    own.write_bytes(made("logistic-el-3", (3, 12, 21)))
    data = load_dataset(f"folder:{tmp_path / 'pictures'}@3x12x21")
    write_site(tmp_path / "out", [Entry(COLOUR, own)], [data])
    page = site("explore?more=story&chapter=2", at=f"{(tmp_path / 'out').as_uri()}/")
    figures = ".story .figure"
    mass, ink, product = (painted(page, f"{figures}:nth-child({k})") for k in (1, 2, 3))
    np.testing.assert_allclose(ink, 2 / 3, 1e-6)
    np.testing.assert_allclose(product, mass * ink, 0, 1e-6)
    expect(page.locator(".story .said")).to_contain_text(f"{product.sum():.3f}")


def test_a_model_without_densities_has_no_fixed_ones(site):
    page = site(f"explore?more=classes&model={MLP}")
    expect(page.locator(".details")).to_contain_text("this model has no densities, so it is the")


def test_drawing_starts_the_model_that_reads_drawings_unless_one_was_chosen(site):
    model = "logistic-el-mnn-10-5"
    page = site("explore")
    shown = page.get_by_role("combobox", name="Model")
    expect(shown).to_have_value(MOVING)
    page.locator("#file").set_input_files(PAPER / f"{model}.safetensors")  # is chosen, so it stays
    expect(shown).to_have_value(f"file-{model}")
    choose(page, "Input", "Draw")
    expect(page.locator(".draw_pad")).to_be_visible()
    expect(shown).to_have_value(f"file-{model}")


@pytest.mark.parametrize("model", [MOVING, FIXED, LINEAR, MLP])
def test_no_model_opens_on_a_wrong_answer(site, model):
    page = site(f"explore?model={model}")
    heading = page.locator(".pair .opinion .heading")
    expect(heading).to_contain_text("Prediction")
    expect(heading.locator("small")).to_contain_text("7 (")


def test_the_film_has_a_speed_steps_and_repeats(site):
    page = site("explore")
    painted(page, ".pair .after")
    steps = OF[MOVING].steps
    stage = page.locator(".pair .stage")
    expect(stage).to_have_attribute("data-step", str(steps[-1]))
    page.get_by_role("button", name="One step back").click()
    expect(stage).to_have_attribute("data-step", str(steps[-2]))
    page.get_by_role("button", name="One step forward").click()
    expect(stage).to_have_attribute("data-step", str(steps[-1]))
    page.get_by_role("combobox", name="Speed").select_option("2")
    page.get_by_role("button", name="Repeat").click()
    page.get_by_role("button", name="Watch it learn").click()
    expect(stage).to_have_attribute("data-step", str(steps[0]))
    last = f"[data-step='{steps[-1]}']"
    page.wait_for_selector(f".pair .stage{last}")
    page.wait_for_selector(f".pair .stage:not({last})")  # it has begun again
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_play_is_within_ten_tab_stops(site):
    page = site("explore")
    painted(page, ".pair .after")
    focused = "() => document.activeElement.textContent"
    for _ in range(10):
        page.keyboard.press("Tab")
        if "Watch it learn" in page.evaluate(focused):
            return
    pytest.fail("“Watch it learn” was not reached.")


def test_a_drawing_starts_on_the_model_that_reads_it_best_and_says_so(visit):
    page = visit("/?tour=0")
    painted(page, ".pair .after")
    model = page.get_by_role("combobox", name="Model", exact=True)
    expect(model).to_have_value(MOVING)
    choose(page, "Input", "Draw")
    expect(model).to_have_value("logistic-el-mnn-10-5")
    expect(page.locator(".choices .note")).to_contain_text("Selected for drawings and photographs")
    choose(page, "Input", "Test images")
    expect(model).to_have_value(MOVING)
    model.select_option(FIXED)
    choose(page, "Input", "Draw")
    expect(page.locator(".draw_pad")).to_be_visible()
    expect(model).to_have_value(FIXED)
    assert page.title() == "Explore – densembed"
    expect(page.get_by_text("About: densembed implements")).to_be_visible()
