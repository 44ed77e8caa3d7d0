"""What the figures hold: values, scale, orientation, names."""

import json

import numpy as np
import pytest

from densembed.fields.field import view
from densembed.figures.confusion import confusion_difference_figure, confusion_figure
from densembed.figures.densities import atlas_figure
from densembed.figures.heatmaps import (
    difference_figure,
    field_figure,
    picture_figure,
)

X, Y = (np.arange(12) + 0.5) / 2, (np.arange(8) + 0.5) / 2
VALUES = np.random.default_rng(0).random((1, 8, 12), np.float32)


def is_a_picture(figure, width, height):
    """Square pixels, row 0 at the top, the whole of the domain and no more."""
    assert tuple(figure.layout.xaxis.range) == (0, width)
    assert tuple(figure.layout.yaxis.range) == (height, 0)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.scaleratio == 1
    assert figure.layout.xaxis.constrain == figure.layout.yaxis.constrain == "domain"
    json.loads(figure.to_json())


def test_field_is_shown_as_it_is():
    figure = field_figure(VALUES, X, Y, top=0.7)
    (trace,) = figure.data
    assert trace.type == "heatmap"
    np.testing.assert_array_equal(trace.z, VALUES[0])
    np.testing.assert_array_equal(trace.x, X)
    np.testing.assert_array_equal(trace.y, Y)
    assert (trace.zmin, trace.zmax) == (0, 0.7)
    assert trace.colorbar.title.text == "density per pixel²"
    is_a_picture(figure, 6, 4)


def test_channels_are_added():
    three = np.concatenate((VALUES, 2 * VALUES, 3 * VALUES))
    np.testing.assert_allclose(field_figure(three, X, Y, 1).data[0].z, 6 * VALUES[0], rtol=1e-6)
    np.testing.assert_allclose(
        difference_figure(three, X, Y, 1).data[0].z, 6 * VALUES[0], rtol=1e-6
    )


def test_before_and_after_have_one_scale(trained, digits):
    seen = view(trained, digits.test.images[0], [0, -1])
    before, after = (field_figure(values, seen.x, seen.y, seen.top) for values in seen.fields)
    assert (before.data[0].zmin, before.data[0].zmax) == (after.data[0].zmin, after.data[0].zmax)
    assert before.data[0].colorscale == after.data[0].colorscale
    np.testing.assert_array_equal(after.data[0].z, seen.fields[-1].sum(0))
    is_a_picture(after, 28, 28)


def test_difference_is_symmetric_about_zero():
    figure = difference_figure(VALUES - 0.5, X, Y, bound=0.4)
    (trace,) = figure.data
    assert (trace.zmin, trace.zmax) == (-0.4, 0.4)
    np.testing.assert_array_equal(trace.z, VALUES[0] - 0.5)
    assert "difference" in trace.colorbar.title.text
    is_a_picture(figure, 6, 4)


def test_a_checkpoint_does_not_differ_from_itself(trained, digits):
    first, second = (view(trained, digits.test.images[0], [-1]) for _ in range(2))
    nothing = first.fields[0] - second.fields[0]
    trace = difference_figure(nothing, first.x, first.y, float(np.abs(nothing).max())).data[0]
    assert not np.asarray(trace.z).any()
    assert trace.zmin < 0 < trace.zmax  # a scale of no length would show any colour


@pytest.mark.parametrize(
    ("bar", "labels"),
    [
        (field_figure(VALUES, X, Y, 0.7).data[0].colorbar, ("0", "0.35", "≥ 0.7")),
        (difference_figure(VALUES, X, Y, 0.4).data[0].colorbar, ("≤ −0.4", "0", "≥ 0.4")),
        (
            atlas_figure([VALUES[0]], ["a"], (6, 4), 0.5, "a name").layout.coloraxis.colorbar,
            ("0", "0.25", "≥ 0.5"),
        ),
    ],
)
def test_a_colour_bar_shows_that_its_scale_is_clipped(bar, labels):
    assert bar.ticktext == labels


@pytest.mark.parametrize("most", [1, 2, 7, 250])
def test_a_confusion_matrix_counts_in_whole_numbers(most):
    count = np.array([[5, most], [0, 5]])
    for figure in (
        confusion_figure(count, ["a", "b"], most),
        confusion_difference_figure(-count, ["a", "b"], most),
    ):
        (trace,) = figure.data
        assert trace.colorbar.dtick == int(trace.colorbar.dtick) > 0
        assert trace.zmax / trace.colorbar.dtick <= 3
    assert trace.text[0][1] == f"−{most}"


@pytest.mark.parametrize("name", ["a name", "density per pixel²"])
def test_colour_bars_have_the_name_that_is_given(name):
    for figure in (field_figure(VALUES, X, Y, 1, name), difference_figure(VALUES, X, Y, 1, name)):
        assert figure.data[0].colorbar.title.text == name


def test_a_digit_as_a_picture(digits):
    pixels = digits.test.images[3].numpy()
    figure = picture_figure(pixels)
    (trace,) = figure.data
    np.testing.assert_allclose(trace.z, pixels[0] / 255, rtol=1e-6)
    assert (trace.zmin, trace.zmax) == (0, 1)
    assert (trace.x[0], trace.x[-1], trace.y[0]) == (0.5, 27.5, 0.5)
    assert trace.colorbar.title.text
    is_a_picture(figure, 28, 28)


def test_a_photograph_as_a_picture():
    pixels = np.random.default_rng(1).integers(0, 256, (3, 6, 10), np.uint8)
    figure = picture_figure(pixels)
    (trace,) = figure.data
    assert trace.type == "image"
    np.testing.assert_array_equal(np.asarray(trace.z), np.moveaxis(pixels, 0, -1))
    assert (trace.x0, trace.y0) == (0.5, 0.5)
    is_a_picture(figure, 10, 6)
