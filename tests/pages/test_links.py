"""Invalid values in a link are reported once and removed; the page shows the default instead."""

import ast
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pages.widgets.inputs.changes import SLIDERS
from streamlit.testing.v1 import AppTest

from tests.conftest import is_sentence
from tests.pages.conftest import ROOT, settle, visit, warnings

GONE = "20260101-000000-abcdef"
PAIR = {"first": "small", "second": "other"}
DRAWN = {"from": "Draw"}
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
    ({"tab": "picture"}, {"sample": "Example", "mu_t": "μₜ, pixels", "s_t": "sₜ, pixels",
                          "mu_u": "μᵤ, pixels", "s_u": "sᵤ, pixels"}),
]  # fmt: skip
# Page, the rest of the link, the parameter, a value that cannot be, the control as it is called.
LINKS = [
    *(("", {}, key, bad, label) for key, bad, label in [
        ("model", "gone", "Model"), ("from", "Mars", "Input"), ("class", "A", "Class"),
        ("class", "", "Class"), ("example", "99999999", "Example"), ("example", "-3", "Example"),
        ("example", "1.5", "Example"), ("ink", "x", "Picture"), ("ink", "y" * 7000, "Picture"),
        ("step", "x", "Step of training"), ("step", "-1", "Step of training"),
        ("right", "9", "Move to the right"), ("down", "nan", "Move down"), ("size", "0", "Size"),
        ("turn", "x", "Turn clockwise"), ("blur", "-1", "Blur"), ("noise", "1e9", "Noise"),
        ("show", "Mars", "Show"), ("show", "[a](https://b.c) :red[d] *e*", "Show"),
        ("opacity", "2", "Opacity"), ("opacity", "", "Opacity"), ("for", "x", "For class"),
        ("contours", "maybe", "Contours"), ("channel", "red", "Channel"), ("more", "y", "More"),
        ("printed", "three", "Figure for print"),
        ("density", "17", "Density"), ("density", "0", "Density"), ("density", "x", "Density"),
        ("density", "9" * 5000, "Density"), ("divider", "101", "Divider of the swipe"),
        ("shuffle", "x", "Shuffle"), ("tour", "6", "Tour"), ("hide", "Mars", "hide"),
    ]),
    *(("", link, key, bad, label) for link, key, bad, label in [
        (DRAWN, "ink", "x", "Picture"), (DRAWN, "class", "A", "Class"),
        (DRAWN, "example", "x", "Example"), ({"show": "on the input"}, "opacity", "x", "Opacity"),
        ({"show": "densities"}, "for", "x", "For class"),
        ({"show": "swipe"}, "divider", "x", "Divider of the swipe"),
        ({"more": "One density"}, "density", "x", "Density"),
    ]),
    *(("compare", PAIR, key, bad, label) for key, bad, label in [
        ("first", "gone", "First model"), ("second", "gone", "Second model"),
        ("third", "gone", "Third model"), ("fourth", "gone", "Fourth model"),
        ("models", "7", "Models"), ("by", "xyz", "Align runs by"),
        ("field", "x", "Combine densities by"),
        ("step", "x", "Step of training"), ("epoch", "x", "Epoch of training"),
        ("fraction", "7", "Fraction of the training"), ("open", "x", "More"),
        ("printed", "three", "Figure for print"),
    ]),
    *(("compare", {**PAIR, "open": "Where they disagree"}, key, bad, label) for key, bad, label in [
        ("beside", "fifth", "Compare the first with the"), ("handful", "0", "Page"),
    ]),
    *(("paper", {}, key, "x", label) for key, label in [
        ("recipe", "Training"), ("recipe2", "Training"), ("input1", "Input 1"),
        ("input2", "Input 2"), ("input3", "Input 3"),
    ]),
    ("train", {}, "run", GONE, "Run"), ("train", {}, "run", "../..", "Run"),
    ("train", {}, "sweep", GONE, "Sweep"),
    *(("lab", link, key, "x", label) for link, keys in LAB for key, label in keys.items()),
]  # fmt: skip


def shown(app: AppTest) -> list[str]:
    """All that the page draws, as it is sent to be drawn."""
    figures = [element.proto.spec for element in app.get("plotly_chart")]
    return figures + [element.proto.json for element in app.get("bidi_component")]


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
    assert not warnings(app)


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


def test_no_parameter_is_left_out():
    keys = set().union(*map(parameters, FILES))
    assert len(keys) > 40
    assert keys <= {key for _, _, key, _, _ in LINKS}


# Page, the rest of the link, a parameter that the page knows, as a hasty hand may write it.
HASTY = [
    ("", {}, "model", "modle"), ("", DRAWN, "shuffle", "shufle"), ("", {}, "step", "setp"),
    ("compare", PAIR, "fourth", "forth"), ("paper", {}, "input2", "inptu2"),
    ("train", {}, "sweep", "sweeep"), ("lab", {"tab": "picture"}, "mu_t", "mu-t"),
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


def test_what_resembles_nothing_is_named_without_advice(mnist_model):
    app = visit("lab", tab="picture", beta="2")  # of the other tab
    assert warnings(app) == ["This view has no parameter “beta”."]
    app = visit("", **{"[a](b)" * 9: "x"})
    (said,) = warnings(app)
    assert said == f"This view has no parameter “{('[a](b)' * 9)[:40]}…”."


def test_what_the_page_itself_wrote_is_known(mnist_model):
    """As a reload finds it: the link of a view in which much was chosen."""
    link = {"step": str(mnist_model.steps[0]), "show": "densities", "for": "3", "density": "2",
            "more": "One density", "shuffle": "4", "class": "3", "example": "2", "right": "2",
            "tour": "0"}  # fmt: skip
    app = visit("", model="small", **link)
    assert not warnings(app)
    assert set(link) <= {*app.query_params}


def test_values_of_older_links_still_open(mnist_model):
    """They were the texts of buttons, which have changed since."""
    app = visit("", model="small", show="class weight", more="What it computes")
    assert not warnings(app)
    assert app.query_params["show"] in ("class", ["class"])
    assert app.query_params["more"] in ("effect", ["effect"])
    app = visit("compare", **PAIR, open="What they mistake", printed="one column")
    assert not warnings(app)
    assert app.query_params["open"] in ("confusion", ["confusion"])


def test_another_page_s_parameters_are_taken_away_in_silence(mnist_model):
    """The browser's way back may bring them along."""
    app = visit("", model="small")
    app.switch_page("pages/compare.py")
    app.query_params["right"] = "2"
    settle(app.run())
    assert not warnings(app)
    assert "right" not in app.query_params


def test_many_faults_are_counted(mnist_model):
    wrong = ["model", "class", "step", "show", "more", "opacity", "columns"]
    (said,) = warnings(visit("", **dict.fromkeys(wrong, "Mars")))
    lines = said.split("  \n")
    assert len(lines) == 4
    assert len({line for line in lines[:3] if "“Mars”" in line}) == 3
    assert lines[3] == "4 more problems with this link."


def test_the_lab_shares_no_parameter_with_another_page():
    """A control that is on two pages would carry its value from one to the other."""
    lab = {path for path in FILES if path.parent.name == "lab"}
    keys = [set().union(*map(parameters, paths)) for paths in (lab, {*FILES} - lab)]
    keys[1] |= {"step", "epoch", "fraction", *SLIDERS}
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
    "real": ("slider", 0.0, float), "whole": ("number_input", 1, int),
    "one": ("selectbox", "a", {"a": "a", "b": "b", "c": "b"}.get),
    "flag": ("toggle", False, {"true": True, "false": False, "True": True}.get),
    "place": ("select_slider", 25, float),
}  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(sorted(WIDGETS)),
    st.one_of(
        st.text(max_size=60), st.integers(-40, 40).map(str), st.floats(-3, 3).map(repr),
        st.sampled_from(["a", "b", "c", "true", "True", "nan", "inf", "-0", "1_0", "٣", " 2 "]),
    ),
)  # fmt: skip
@example("one", "`](x) $a$ :red[b] <i>")
def test_whatever_is_asked_is_shown_or_named(key, asked):
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
