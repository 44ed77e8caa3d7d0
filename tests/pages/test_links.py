"""What a link asks for that cannot be: named once, taken out of the address, the usual shown."""

import ast
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.widgets.inputs.changes import SLIDERS
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
        ("opacity", "2", "Opacity"), ("opacity", "", "Opacity"), ("for", "x", "For the class"),
        ("contours", "maybe", "Contours"), ("channel", "red", "Channel"), ("more", "y", "More"),
        ("printed", "three", "Printed figure"),
        ("density", "17", "Density"), ("density", "0", "Density"), ("density", "x", "Density"),
        ("density", "9" * 5000, "Density"), ("divider", "101", "Divider of the swipe"),
        ("shuffle", "x", "Shuffle"), ("tour", "6", "Tour"), ("hide", "Mars", "hide"),
    ]),
    *(("", link, key, bad, label) for link, key, bad, label in [
        (DRAWN, "ink", "x", "Picture"), (DRAWN, "class", "A", "Class"),
        (DRAWN, "example", "x", "Example"), ({"show": "on the input"}, "opacity", "x", "Opacity"),
        ({"show": "densities"}, "for", "x", "For the class"),
        ({"show": "swipe"}, "divider", "x", "Divider of the swipe"),
        ({"more": "One density"}, "density", "x", "Density"),
    ]),
    *(("compare", PAIR, key, bad, label) for key, bad, label in [
        ("first", "gone", "First model"), ("second", "gone", "Second model"),
        ("third", "gone", "Third model"), ("fourth", "gone", "Fourth model"),
        ("models", "7", "Models"), ("by", "xyz", "The slider moves by"),
        ("field", "x", "A field is the"),
        ("step", "x", "Step of training"), ("epoch", "x", "Epoch of training"),
        ("fraction", "7", "Fraction of the training"), ("open", "x", "More"),
        ("printed", "three", "Printed figure"),
    ]),
    *(("compare", {**PAIR, "open": "Where they disagree"}, key, bad, label) for key, bad, label in [
        ("beside", "fifth", "Compare the first with the"), ("handful", "0", "Page, of 8"),
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
    """A link is never followed in part without a word of what was dropped."""
    if page == "paper":
        monkeypatch.setenv("DENSEMBED_GALLERY", str(ROOT / "checkpoints/paper"))
    rest = {name: value for name, value in link.items() if name != key}
    without = (page, *rest.items())
    if without not in usual:
        usual[without] = shown(visit(page, **rest))
    app = visit(page, **{**link, key: bad})
    (said,) = warnings(app)
    assert f"“{label}” is “{' '.join(bad[:40].split())}" in said
    assert is_sentence(said)
    assert bad not in app.query_params.get(key, []) or not bad
    if key != "sweep":  # a link to a sweep opens the other tab
        assert shown(app) == usual[without]
    settle(app.run())
    assert not warnings(app)


def bound(path: Path) -> set[str]:
    """The URL parameters that a file names."""
    keys = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            words = {word.arg: word.value for word in node.keywords}
            if "bind" in words and isinstance(words["key"], ast.Constant):
                keys.add(words["key"].value)
            place = ast.unparse(node.func)
            asks = (
                "in_link",
                "controls.whole",
                "controls.choice",
                "controls.number",
                "controls.flag",
                "controls.scale",
                "controls.text",
                "controls.tabs",
            )
            if place in asks and node.args and isinstance(node.args[0], ast.Constant):
                keys.add(node.args[0].value)
    return keys


FILES = sorted((ROOT / "pages").rglob("*.py"))


def test_no_parameter_is_left_out():
    keys = set().union(*map(bound, FILES))
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
    assert warnings(app) == [f"This view of the page knows no “{written}”; did you mean “{meant}”?"]
    assert written not in app.query_params
    settle(app.run())
    assert not warnings(app)


def test_what_resembles_nothing_is_named_without_advice(mnist_model):
    app = visit("lab", tab="picture", beta="2")  # of the other tab
    assert warnings(app) == ["This view of the page knows no “beta”."]
    app = visit("", **{"[a](b)" * 9: "x"})
    (said,) = warnings(app)
    assert said == f"This view of the page knows no “{('[a](b)' * 9)[:40]}…”."


def test_what_the_page_itself_wrote_is_known(mnist_model):
    """As a reload finds it: the link of a view in which much was chosen."""
    link = {"step": str(mnist_model.steps[0]), "show": "densities", "for": "3", "density": "2",
            "more": "One density", "shuffle": "4", "class": "3", "example": "2", "right": "2",
            "tour": "0"}  # fmt: skip
    app = visit("", model="small", **link)
    assert not warnings(app)
    assert set(link) <= {*app.query_params}


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
    assert lines[3] == "And 4 more of the kind."


def test_the_lab_shares_no_parameter_with_another_page():
    """A control that is on two pages would carry its value from one to the other."""
    lab = {path for path in FILES if path.stem.startswith("lab")}
    keys = [set().union(*map(bound, paths)) for paths in (lab, {*FILES} - lab)]
    keys[1] |= {"step", "epoch", "fraction", *SLIDERS}
    assert not keys[0] & keys[1]


def script() -> None:
    import streamlit as st

    from pages.widgets.common.link import FLAG, Numbers, check_link, linked_number, open_notices

    open_notices()
    check_link("real", "Real", Numbers(-2.0, 2.0), 0)
    check_link("one", "One", ("a", "b"), "a")
    check_link("flag", "Flag", FLAG, False)
    check_link("place", "Place", (0, 5, 25), 25)
    st.slider("Real", -2.0, 2.0, 0.0, key="real", bind="query-params")
    linked_number("Whole", 9, "whole")
    st.selectbox("One", ("a", "b"), key="one", bind="query-params")
    st.toggle("Flag", key="flag", bind="query-params")
    st.select_slider("Place", (0, 5, 25), 25, key="place", bind="query-params")


WIDGETS = {
    "real": ("slider", 0.0, float), "whole": ("number_input", 1, int),
    "one": ("selectbox", "a", str),
    "flag": ("toggle", False, {"true": True, "false": False}.get),
    "place": ("select_slider", 25, int),
}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(WIDGETS)),
    st.one_of(
        st.text(max_size=60), st.integers(-40, 40).map(str), st.floats(-3, 3).map(repr),
        st.sampled_from(["a", "b", "true", "false", "nan", "inf", "-0", "1_0", "٣", " 2 "]),
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
        assert sentence.startswith(f"In the link, “{key.capitalize()}” is “")
        assert value == usual
        assert key not in app.query_params
    else:
        assert value == read(asked)
