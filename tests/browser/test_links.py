"""The link of a view, read and written by the page."""

import pytest

from densembed.data.codec import to_text
from tests.browser.conftest import (
    expect,
)
from tests.browser.gallery import (
    COLOUR,
    FIXED,
    LETTERS,
    LINEAR,
    MLP,
    MOVING,
    OF,
    SMALL,
    STEPS,
    sample,
)
from tests.browser.views import rests

USUAL = "The default is shown."


INK = to_text(sample(5))


def invalid(label: str, value: str, expected: str, meant: str = "") -> str:
    hint = meant and f" Did you mean “{meant}”?"
    return f"The link sets “{label}” to “{value}”, which is not {expected}.{hint} {USUAL}"


def moved(step: int, to: int) -> str:
    return (
        f"The link sets “Step of training” to “{step}”, at which nothing was saved. The nearest "
        f"step, {to:,}, is shown."
    )


def unknown(name: str, meant: str = "") -> str:
    return f"This view has no parameter “{name}”." + (meant and f" Did you mean “{meant}”?")


WITHOUT = "This page has no test images for this model. In place of them is a blank picture."
DAMAGED = "The input in the link is damaged, or it is that of another model."


DIGITS = "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"


WAYS = "one of field, overlay, difference, swipe, pixels, densities, class"


EXPLORED = [  # link, the link that the view writes, problems
    ("class=3&example=2", "class=3&example=2", []),
    ("class=Z&example=2", "example=2", [invalid("Class", "Z", DIGITS)]),
    ("example=1.5&class=3", "class=3", [invalid("Example", "1.5", "a whole number from 1 to 20")]),
    ("example=21", "example=1", [invalid("Example", "21", "a whole number from 1 to 20")]),
    (f"model={SMALL}&class=3", f"model={SMALL}&class=3", []),
    ("model=nothing&class=3", "class=3", [invalid("Model", "nothing", "one of "
     f"{MOVING}, {FIXED}, {SMALL}, {LINEAR}, {MLP}, {COLOUR}, {LETTERS}")]),
    (f"step={STEPS[4]}", f"step={STEPS[4]}", []),
    (f"step={STEPS[4] + 1}", f"step={STEPS[4]}", [moved(STEPS[4] + 1, STEPS[4])]),
    (f"step={STEPS[5] - 1}", f"step={STEPS[5]}", [moved(STEPS[5] - 1, STEPS[5])]),
    ("step=-1", "", [invalid("Step of training", "-1", f"a number from 0 to {STEPS[-1]:,}")]),
    ("show=on the input&opacity=0.3", "show=overlay&opacity=0.3", []),
    ("show=per pixel", "show=pixels", []),
    ("show=weight for a class&for=its answer", "show=class", []),
    ("show=nothing&class=3", "class=3", [invalid("Show", "nothing", WAYS)]),
    ("opacity=2", "", [invalid("Opacity", "2", "a number from 0 to 1")]),
    ("show=class&for=5", "show=class&for=5", []),
    ("grid=14&class=3", "grid=14&class=3", []),
    ("grid=28", "", []),
    ("grid=9", "", [invalid("Resolution", "9", "one of 7, 10, 14, 20, 28, 42, 56, 112")]),
    (f"model={COLOUR}&grid=14x25", f"model={COLOUR}&grid=14x25", [WITHOUT]),
    ("contours=1", "contours=true", []),
    ("contours=true", "contours=true", []),
    ("contours=maybe", "", [invalid("Contours", "maybe", "true or false")]),
    ("more=One density&density=3", "more=density&density=3", []),
    ("more=What it computes", "more=effect", []),
    ("more=density&density=0", "more=density",
     [invalid("Density", "0", "a whole number from 1 to 100")]),
    (f"from=draw&more=density&density=5&model={LINEAR}",
     f"from=draw&model={LINEAR}",
     [invalid("More", "density", "one of story, about, effect, classes"),
      invalid("Density", "5", "1")]),
    ("more=Take it away&class=3", "class=3",
     [invalid("More", "Take it away", "one of story, about, density, effect, classes")]),
    ("more=story&chapter=3", "more=story&chapter=3", []),
    ("more=story&chapter=6", "more=story",
     [invalid("Chapter", "6", "a whole number from 1 to 5")]),
    ("more=about&unit=67", "more=about&unit=67", []),
    ("more=about&unit=0", "more=about",
     [invalid("Followed unit", "0", "a whole number from 1 to 1,000,000")]),
    ("from=Samples&class=3", "class=3", []),
    (f"from=Draw&ink={INK}", f"from=draw&ink={INK}", []),
    (f"from=draw&ink={INK[:-4]}", "from=draw", [DAMAGED]),
    ("from=draw&ink=a b", "from=draw", [invalid("Picture", "a b", "a complete picture")]),
    ("from=Upload", "example=1", [invalid("Input", "Upload", "one of samples, draw")]),
    ("shuffle=4", "shuffle=4", []),
    ("shuffle=-1", "example=1", [invalid("Shuffle", "-1", "a whole number from 0 to 1,000,000")]),
    ("to=3&between=0.25", "to=3&between=0.25", []),
    ("to=Z&between=2", "example=1", [invalid("Morph into", "Z", DIGITS),
                            invalid("Between", "2", "a number from 0 to 1")]),
    ("right=2&down=-1.5&size=1.2&turn=-30&blur=1&noise=0.2",
     "right=2&down=-1.5&size=1.2&turn=-30&blur=1&noise=0.2", []),
    ("right=−2", "right=-2", []),
    ("right=9&turn=5", "turn=5", [invalid("Move to the right", "9", "a number from −8 to 8")]),
    ("hide=before,predictions", "hide=before,predictions", []),
    ("hide=everything&class=3", "class=3", [invalid("Hide", "everything", "a list of menu, "
     "sidebar, change, ways, more, predictions, before, numbers, steps")]),
    ("show=swipe&divider=30", "show=swipe&divider=30", []),
    ("divider=101", "", [invalid("Divider of the swipe", "101", "a whole number from 0 to 100")]),
    (f"model={COLOUR}&channel=red", f"model={COLOUR}&channel=red", [WITHOUT]),
    ("channel=red&class=3", "class=3", [invalid("Channel", "red", "one of together")]),
    ("modle=linear&class=3", "class=3", [unknown("modle", "model")]),
    ("show=feild", "", [invalid("Show", "feild", WAYS, "field")]),
    ("model=logistic-el-mn-10-5-digits", "", [invalid("Model", "logistic-el-mn-10-5-digits",
     f"one of {MOVING}, {FIXED}, {SMALL}, {LINEAR}, {MLP}, {COLOUR}, {LETTERS}", MOVING)]),
    ("model=20261201-021324-d714f0&class=3", "class=3", [
        "The link sets “Model” to the run “20261201-021324-d714f0”, which was deleted or has no "
        f"readable checkpoint. {USUAL}"]),
    ("x=1&x=2&class=3", "class=3", [unknown("x")]),
    ("x=" + "y" * 50 + "&class=<b>", "example=1", [invalid("Class", "<b>", DIGITS), unknown("x")]),
]  # fmt: skip


COMPARED = [
    # A link without the way in which densities are combined is from when that was their sum.
    (f"models=3&second={SMALL}&third={LINEAR}&class=3",
     f"models=3&second={SMALL}&third={LINEAR}&class=3&field=sum", []),
    # Those that the link names are shown.
    (f"second={SMALL}&third={LINEAR}",
     f"models=3&second={SMALL}&third={LINEAR}&field=sum", []),
    (f"fourth={MLP}&class=3", f"models=4&fourth={MLP}&class=3&field=sum", []),
    (f"models=2&third={LINEAR}&class=3", "class=3&field=sum",
     ["The link sets “third model” while “Models” is 2, so it is not shown."]),
    ("models=5&class=3", "class=3&field=sum", [invalid("Models", "5", "one of 2, 3, 4")]),
    ("by=epoch&epoch=20", "by=epoch&field=sum&epoch=20", []),
    ("by=fraction&fraction=0.5&field=mean", "by=fraction&field=mean&fraction=0.5", []),
    ("by=year&step=-1", "field=sum", [
        invalid("Align runs by", "year", "one of step, epoch, fraction"),
        invalid("Step of training", "-1", f"a number from 0 to {STEPS[-1]:,}"),
    ]),
    ("step=999999&class=3", "class=3&field=sum",
     [invalid("Step of training", "999999", f"a number from 0 to {STEPS[-1]:,}")]),
    ("by=epoch&epoch=1000", "by=epoch&field=sum",
     [invalid("Epoch of training", "1000", f"a number from 0 to {OF[MOVING].config.epochs}")]),
    ("by=fraction&fraction=2&field=mean", "by=fraction&field=mean",
     [invalid("Fraction of the training", "2", "a number from 0 to 1")]),
    ("field=mean", "field=mean", []),
    ("field=most", "field=mean", [invalid("Combine densities by", "most", "one of mean, sum")]),
    (f"from=Draw&ink={INK}", f"from=draw&ink={INK}&field=mean", []),
    ("hide=differences", "field=mean&hide=differences", []),
    ("modle=linear&right=2", "right=2&field=mean", [unknown("modle", "models")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "links"), [("explore", EXPLORED), ("compare", COMPARED)])
def test_a_link_opens_its_state_and_names_what_is_invalid(site, name, links):
    page = site(name)
    rests(page, "" if name == "explore" else "field=mean")
    for link, written, problems in links:
        page.evaluate("link => { location.hash = link; }", f"{name}?{link}")
        expect(page.locator("#notices p")).to_have_text(problems)
        expect(page.locator("#notices")).to_be_visible(visible=bool(problems))
        rests(page, written)


@pytest.mark.parametrize("from_disk", [False, True])
def test_parameters_before_a_hash_are_those_of_explore(site, address, built, from_disk):
    """As in a link of the app."""
    start = f"{built.as_uri()}/" if from_disk else address
    page = site(at=start)
    step = OF[SMALL].steps[4]
    for link, written, problems in (
        (f"?model={SMALL}&step={step}", f"model={SMALL}&step={step}", []),
        ("?class=Z", "example=1", [invalid("Class", "Z", DIGITS)]),
        ("?class=3#explore?class=4", "class=4", []),  # what follows a # counts
    ):
        page.goto(f"{start}index.html{link}")
        expect(page.locator("#notices p")).to_have_text(problems)
        rests(page, written)
        assert ("?" in page.url.partition("#")[0]) is ("#" in link)
