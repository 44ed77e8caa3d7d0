"""The lab page without a browser."""

import numpy as np
import pytest

from densembed import lab
from tests.conftest import is_sentence
from tests.pages.conftest import charts, settle, values, visit, warnings

LAYER_METRICS = {
    "density": ["F.adaptive_avg_pool1d"],
    "linear": ["nn.Linear"],
    "conv": ["F.conv1d"],
    "adaptive-conv": ["F.conv1d"],
    "pool": ["min", "F.avg_pool1d", "F.max_pool1d"],
    "micro": ["F.adaptive_avg_pool1d"],
}


def differences(app) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def gamma(app) -> np.ndarray:
    strips = charts(app)["strips"]
    trace = next(k for k, data in enumerate(strips["data"]) if data["type"] == "heatmap")
    return values(strips, "z", trace)


def test_the_picture_is_there_at_first_sight():
    app = visit("lab")
    assert app.title[0].value == "How does a density become a layer?"
    strips = charts(app)["strips"]
    assert {trace.get("xaxis", "x") for trace in strips["data"]} == {"x"}
    assert len({trace.get("yaxis", "y") for trace in strips["data"]}) == 4
    assert gamma(app).shape == (6, 24)
    assert not app.warning
    assert not app.query_params


@pytest.mark.parametrize("layer", lab.LAYERS)
def test_each_layer_shows_its_torch_layer(layer):
    app = visit("lab", layer=layer)
    assert list(differences(app)) == LAYER_METRICS[layer]
    assert gamma(app).shape[1] == 24
    assert all(caption.value.endswith(".") for caption in app.caption)


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ({"layer": "linear"}, "nn.Linear"),
        ({"layer": "conv", "k": "5", "s": "3"}, "F.conv1d"),
        ({"layer": "adaptive-conv", "p": "3"}, "F.conv1d"),
        ({"layer": "pool", "beta": "0"}, "F.avg_pool1d"),
        ({"family": "uniform"}, "F.adaptive_avg_pool1d"),
    ],
)
def test_no_difference_where_the_paper_says_so(link, name):
    assert differences(visit("lab", **link))[name] == "0"


def test_a_link_opens_its_state_and_stays():
    link = {"layer": "adaptive-conv", "p": "6.25", "k": "4", "signal": "ramp", "pixels": "12"}
    app = visit("lab", **link)
    assert dict(app.query_params) == link
    assert app.slider(key="p").value == 6.25
    assert gamma(app).shape == (4, 12)
    app.slider(key="p").set_value(4.0)
    settle(app.run())
    assert differences(app) == {"F.conv1d": "0"}


@pytest.mark.parametrize(
    "link",
    [
        {"layer": "nonsense"},
        {"tab": "nonsense"},
        {"signal": "nonsense"},
        {"pixels": "1000"},
        {"pixels": "many"},
        {"mu": "nan"},
        {"scale": "-1"},
        {"family": "<script>"},
        {"truncate": "perhaps"},
        {"layer": "adaptive-conv", "p": "1e9"},
        {"layer": "pool", "beta": "abc"},
        {"signal": "own", "values": "1 a"},
        {"tab": "picture", "mu_t": "99"},
    ],
)
def test_a_bad_link_is_named(link):
    app = visit("lab", **link)
    (warning,) = warnings(app)
    bad = list(link.values())[-1]
    assert f"“{bad}”" in warning
    assert is_sentence(warning)
    assert charts(app)


@pytest.mark.parametrize(("beta", "shown"), [("6.5", "7"), ("-4.1", "−5"), ("20.0", ""), ("7", "")])
def test_a_number_between_the_choices_is_named(beta, shown):
    """It became the nearest one silently."""
    app = visit("lab", layer="pool", beta=beta)
    said = [f"The link sets “β” to “{beta}”, which it cannot have. Showing the nearest, {shown}."]
    assert warnings(app) == (said if shown else [])
    assert app.select_slider(key="beta").value == float(shown.replace("−", "-") or beta)
    assert not warnings(settle(app.run()))


@pytest.mark.parametrize(
    ("link", "key", "value"),
    [
        ({"layer": "pool", "beta": "−5"}, "beta", -5),
        ({"layer": "micro", "gain": "−1.5"}, "gain", -1.5),
    ],
)
def test_a_link_may_have_the_minus_sign_of_the_page(link, key, value):
    app = visit("lab", **link)
    assert not warnings(app)
    assert app.session_state[key] == value


def test_bad_values_in_a_link_are_explained():
    (warning,) = warnings(visit("lab", signal="own", values="1 a"))
    assert "which is not a signal: value 2, “a”, is not a number. Showing" in warning


@pytest.mark.parametrize("typed", ["", "1", "1 a", "1 " * 65])
def test_bad_values_are_answered_with_one_line(typed):
    app = visit("lab", signal="own")
    app.text_input(key="values").set_value(typed)
    settle(app.run())
    (error,) = app.error
    assert is_sentence(error.value)


def test_typed_values_are_the_signal():
    app = visit("lab", signal="own", layer="linear", values="0 0.5, 1")
    assert gamma(app).shape == (3, 3)
    assert values(charts(app)["strips"], "y", 1).tolist() == [0, 0.5, 1]


def test_the_density_taken_up_starts_from_the_grid():
    app = visit("lab")
    app.slider(key="mu").set_value(3.0)
    settle(app.run())
    assert app.slider(key="mu").value == 3
    app.slider(key="row").set_value(6)
    settle(app.run())
    assert app.slider(key="mu").value == 22
    assert dict(app.query_params) == {"row": "6"}
    app.number_input(key="count").set_value(1)
    settle(app.run())
    assert gamma(app).shape == (1, 24)


def test_another_family_keeps_the_spread():
    app = visit("lab")
    app.slider(key="scale").set_value(1.0)
    settle(app.run())
    app.selectbox(key="family").set_value("gaussian")
    settle(app.run())
    assert app.slider(key="scale").value == pytest.approx(1.81, abs=0.01)


def test_every_extreme_has_a_picture():
    for link in (
        {"pixels": "2", "layer": "adaptive-conv", "p": "16"},
        {"pixels": "64", "layer": "linear"},
        {"pixels": "2", "layer": "pool", "beta": "-1000"},
        {"pixels": "64", "count": "64", "scale": "0.01", "mu": "64", "family": "triangular"},
        {"signal": "digit", "line": "1", "layer": "pool"},
    ):
        assert np.isfinite(gamma(visit("lab", **link))).all()


def test_a_picture_adds_up():
    app = visit("lab", tab="picture", mu_t="14", s_u="3")
    shown = charts(app)
    overlay = values(shown["product"], "z", 1)
    columns, rows = values(shown["product"], "y", 2), values(shown["product"], "x", 3)
    assert np.allclose(overlay, np.outer(rows, columns))
    total = values(shown["parts"]).sum()
    assert differences(app)["R(x)"] == f"{total:.4f}"
    assert any("difference of 0 " in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"layer": "density"}, "mean of x (0 outside) per density"),
        ({"layer": "density", "truncate": "True"}, "mean of x under each density"),
        ({"layer": "linear"}, "mean of x under each density"),
        ({"layer": "pool"}, "mean of x under each density"),
        ({"layer": "adaptive-conv"}, "sum of x weighted by rows of Γ"),
        (
            {"layer": "adaptive-conv", "normalised": "True"},
            "mean of x under each density",
        ),
    ],
)
def test_a_mean_is_one_and_a_sum_is_called_a_sum(link, words):
    strips = charts(visit("lab", **link))["strips"]
    titles = [note["text"] for note in strips["layout"]["annotations"]]
    assert f"<b>Γx</b>, {words}" in titles
    x = max(values(strips, "y", 1))
    bars = max(values(strips, "y", [t["type"] for t in strips["data"]].index("bar")))
    if "mean" in words:
        assert bars <= x + 1e-9
    else:
        assert bars > x


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        # Both readings are equal, by symmetry, and their weights are opposite.
        ({"values": "1 0 0 1"}, "moves no density"),
        ({"values": "1 0 0 0.99", "gain": "0.05"}, "moves density 2 by less than 0.01 pixels"),
        ({"values": "0 0 0 1"}, "moves density 2 by +"),
        ({"values": "1 0 0 0"}, "moves density 2 by −"),
        # The readings of narrow densities at both ends are −0.001, which reads as 0.
        ({"values": "-0.001 -0.001 -0.001 -0.001"}, "reads 0.00, 0.00 and moves no density"),
    ],
)
def test_what_does_not_move_is_not_said_to_move(link, sentence):
    app = visit("lab", layer="micro", signal="own", inner="2", count="3", **link)
    text = " ".join(caption.value for caption in app.caption)
    assert sentence in text
    assert "0.00 pixels" not in text
