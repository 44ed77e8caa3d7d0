"""Invalid values in a link are reported once and removed; the page shows the default instead."""

import ast
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.conftest import is_sentence
from tests.pages.conftest import ROOT, live, report, sample, settle, views_own, visit, warnings

GONE = "20260101-000000-abcdef"
LAB = [  # the rest of the link, and the controls that it shows
    ({}, {"tab": "tab", "layer": "Layer", "signal": "Signal", "pixels": "Pixels N",
          "row": "Density i", "family": "Family", "count": "Densities B",
          "truncate": "Truncate to the signal", "mu": "Location μ of density 3, pixels",
          "scale": "Scale s of density 3, pixels"}),
    ({"signal": "noise"}, {"seed": "Seed"}),
    ({"signal": "digit"}, {"digit": "Digit", "line": "Row"}),
    ({"signal": "own"}, {"values": "Values"}),
    ({"layer": "adaptive-conv"}, {"p": "Amplitude p, pixels", "normalised": "Normalised",
                                  "k": "Kernel K", "s": "Stride S", "w": "Kernel w",
                                  "l": "Position l"}),
    ({"layer": "pool"}, {"beta": "β", "window": "Window k", "stride": "Stride"}),
    ({"layer": "micro"}, {"inner": "Densities B₀ of the micro network", "gain": "Gain"}),
    ({"tab": "picture"}, {"sample": "Example", "mu_t": "μₜ, pixels", "s_t": "sₜ, pixels",
                          "mu_u": "μᵤ, pixels", "s_u": "sᵤ, pixels"}),
]  # fmt: skip
# Page, the rest of the link, the parameter, an invalid value, the name of the control. What Explore
# and Compare read in the browser is checked there.
LINKS = [
    ("", {}, "tour", "6", "Tour"), ("", {}, "tour", "x", "Tour"), ("", {}, "tour", "-1", "Tour"),
    *(("paper", {}, key, "x", label) for key, label in [
        ("recipe", "Recipe"), ("recipe2", "Recipe"), ("input1", "Input 1"),
        ("input2", "Input 2"), ("input3", "Input 3"),
    ]),
    ("train", {}, "run", GONE, "Run"), ("train", {}, "run", "../..", "Run"),
    ("train", {}, "sweep", GONE, "Sweep"), ("train", {}, "training", "x", "Training"),
    *(("lab", link, key, "x", label) for link, keys in LAB for key, label in keys.items()),
]  # fmt: skip


def shown(app: AppTest) -> list[str]:
    """All that the page draws, as it is sent to be drawn; without the versions of models."""
    figures = [element.proto.spec for element in app.get("plotly_chart")]
    sent = [element.proto.json for element in app.get("bidi_component")]
    return figures + [each for each in sent if '"models"' not in each]


@pytest.fixture(scope="module")
def usual() -> dict[tuple, list[str]]:
    """What pages show by links without a fault."""
    return {}


@pytest.mark.parametrize(("page", "link", "key", "bad", "label"), LINKS)
def test_a_bad_value_is_named_and_forgotten(
    page, link, key, bad, label, usual, mnist_model, monkeypatch
):
    """The page reports every part of a link that it does not follow."""
    if page == "paper":
        monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    rest = {name: value for name, value in link.items() if name != key}
    without = (page, *rest.items())
    if without not in usual:
        usual[without] = shown(visit(page, **rest))
    app = visit(page, **{**link, key: bad})
    (said,) = warnings(app)
    assert f"“{label}” to “{' '.join(bad[:40].split())}" in said
    assert is_sentence(said)
    assert bad not in app.query_params.get(key, []) or not bad
    if key != "sweep":  # a link to a sweep opens the other tab
        assert shown(app) == usual[without]
    settle(app.run())
    # Explore runs again as soon as its view has opened.
    assert warnings(app) == ([said] if key == "tour" else [])


def parameters(path: Path) -> set[str]:
    """The URL parameters that a file names."""
    calls = ("in_link", "Parameter", "number")
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in calls
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


FILES = sorted((ROOT / "pages").rglob("*.py"))
# View, a detail that the server shows below it, the parameter, an invalid value, the control.
DETAILS = [
    ("explore", {"more": "export"}, "printed", "three", "Figure for print"),
    ("explore", {}, "printed", "three", "Figure for print"),
    ("compare", {"open": "export"}, "printed", "three", "Figure for print"),
    ("compare", {"open": "settings"}, "printed", "three", "Figure for print"),
    ("compare", {"open": "disagreements", "models": "3"}, "beside", "fifth",
     "Compare the first with the"),
    ("compare", {"open": "disagreements"}, "handful", "0", "Page"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "detail", "key", "bad", "label"), DETAILS)
def test_a_bad_value_of_a_detail_is_named_and_forgotten(view, detail, key, bad, label, mnist_model):
    app = visit(view, **detail, **{key: bad})
    assert not warnings(app)
    report(app, view, sample(), "7", **detail)
    (said,) = warnings(app)
    assert f"“{label}” to “{bad}”" in said
    assert is_sentence(said)
    assert key not in app.query_params
    assert not warnings(settle(app.run()))


def test_no_parameter_is_left_out():
    keys = set().union(*map(parameters, FILES))
    assert len(keys) > 30
    # Of a run's test image on Train, whose tests are in test_train.py.
    picture = {"class", "example", "shuffle"}
    assert keys <= {key for _, _, key, _, _ in [*LINKS, *DETAILS]} | picture


# Page, the rest of the link, a parameter of the page, and a misspelling of it.
HASTY = [
    ("paper", {}, "input2", "inptu2"), ("train", {}, "sweep", "sweeep"),
    ("lab", {"tab": "picture"}, "mu_t", "mu-t"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "link", "meant", "written"), HASTY)
def test_an_unknown_parameter_is_named_and_forgotten(
    page, link, meant, written, mnist_model, monkeypatch
):
    if page == "paper":
        monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    app = visit(page, **link, **{written: "small"})
    assert warnings(app) == [f"This view has no parameter “{written}”. Did you mean “{meant}”?"]
    assert written not in app.query_params
    settle(app.run())
    assert not warnings(app)


def test_a_parameter_without_a_similar_name_gets_no_suggestion(mnist_model):
    app = visit("lab", tab="picture", beta="2")  # of the other tab
    assert warnings(app) == ["This view has no parameter “beta”."]
    app = visit("lab", **{"[a](b)" * 9: "x"})
    (said,) = warnings(app)
    assert said == f"This view has no parameter “{('[a](b)' * 9)[:40]}…”."


@pytest.mark.parametrize(
    ("page", "key", "texts"),
    [("lab", "layer", ["pool", "micro"]), ("", "model", ["small", "other", "mars"])],
)
def test_the_first_of_several_values_is_used(page, key, texts, mnist_model):
    app = visit(page, **{key: texts})
    assert warnings(app) == [f"The link sets “{key}” more than once: the first is used."]
    assert "".join(app.query_params[key]) == texts[0]
    if key == "model":
        assert f"model={texts[0]}" in live(app)["link"]
    else:
        assert not warnings(settle(app.run()))


@pytest.mark.parametrize(
    ("view", "link", "says"),
    [
        ("explore", {"model": ["small", "other"]}, "The link sets “model” more than once: the "),
        ("compare", {"first": ["small", "other"]}, "The link sets “first” more than once: the "),
        ("explore", {"tour": "7"}, "The link sets “Tour” to “7”, which is not a whole number "),
    ],
)
def test_what_is_wrong_with_a_link_is_read_after_the_view_has_opened(view, link, says, mnist_model):
    """The page then runs again, with a link without the fault."""
    app = visit("" if view == "explore" else view, **link)
    (said,) = warnings(app)
    assert said.startswith(says)
    for kind in ("field", "overlay"):
        report(app, view, sample(), "7", **({"show": kind} if view == "explore" else {}))
        assert warnings(app) == [said]
    settle(app.switch_page("pages/lab.py").run())
    settle(app.switch_page(f"pages/{view}.py").run())
    assert not warnings(app)


def test_a_width_of_older_links_still_opens(mnist_model):
    """It was the text of a button."""
    app = visit("compare", printed="one column")
    report(app, "compare", sample(), "7", open="export")
    assert not warnings(app)
    assert "".join(app.query_params["printed"]) == "one-column"


def test_many_faults_are_counted(small_gallery):
    wrong = ["layer", "signal", "pixels", "family", "count", "truncate", "mars"]
    (said,) = warnings(visit("lab", **dict.fromkeys(wrong, "Mars")))
    lines = said.split("  \n")
    assert len(lines) == 4
    assert len({line for line in lines[:3] if "“Mars”" in line}) == 3
    assert lines[3] == "4 more problems with this link."


def test_the_lab_shares_no_parameter_with_another_page():
    """A control that is on two pages would carry its value from one to the other."""
    lab = {path for path in FILES if path.parent.name == "lab"}
    keys = [set().union(*map(parameters, paths)) for paths in (lab, {*FILES} - lab)]
    keys[1] |= views_own()
    assert not keys[0] & keys[1]


def script() -> None:
    import streamlit as st

    from pages.widgets.common.link import open_notices
    from pages.widgets.common.parameter import Flag, Numbers, OneOf, Parameter, Slugs

    st.session_state["arrived"] = False
    open_notices()
    Parameter("real", "Real", Numbers(-2.0, 2.0), 0.0).draw(st.slider)
    Parameter("whole", "Whole", Numbers(1, 9), 1).draw(st.number_input)
    Parameter("one", "One", Slugs({"a": "first", "b": "last"}, {"c": "b"}), "a").draw(st.selectbox)
    Parameter("flag", "Flag", Flag(), False).draw(st.toggle)
    Parameter("place", "Place", OneOf((0, 5, 25)), 25).draw(st.select_slider)


WIDGETS = {
    "real": ("slider", 0.0, float),
    "whole": ("number_input", 1, int),
    "one": ("selectbox", "a", {"a": "a", "b": "b", "c": "b"}.get),
    "flag": ("toggle", False, lambda text: {"true": True, "false": False}.get(text.lower())),
    "place": ("select_slider", 25, float),
}


@settings(max_examples=80)
@given(
    st.sampled_from(sorted(WIDGETS)),
    st.one_of(
        st.text(max_size=60),
        st.integers(-40, 40).map(str),
        st.floats(-3, 3).map(repr),
        st.sampled_from(["a", "b", "c", "true", "True", "nan", "inf", "-0", "1_0", "٣", " 2 "]),
    ),
)
@example("one", "`](x) $a$ :red[b] <i>")
def test_every_link_is_shown_or_reported(key, asked):
    app = AppTest.from_function(script)
    app.query_params[key] = asked
    settle(app.run())
    kind, usual, read = WIDGETS[key]
    value = app.get(kind)[0].value if kind != "toggle" else app.toggle[0].value
    said = warnings(app)
    if said:
        (sentence,) = said
        assert sentence.startswith(f"The link sets “{key.capitalize()}” to “")
        assert value == usual
        assert key not in app.query_params
    else:
        assert value == read(asked)
