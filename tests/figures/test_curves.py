"""The curves of a training, against numbers worked out by hand."""

import numpy as np
import pytest

from densembed.figures.curves import MOST_POINTS, Course, course_figure
from densembed.training.header import EpochMetrics

EVENTS = [
    {"kind": "start"},
    {"kind": "progress", "step": 1, "loss": 2.5, "learning_rate": 0.1},
    {"kind": "progress", "step": 2, "loss": 2.0},
    {"kind": "epoch", "step": 10, "test_error": [1.0, 3.0], "train_loss": [0.5, 0.7]},
    {"kind": "progress", "step": 15, "loss": 1.5, "learning_rate": 0.2},
    {"kind": "epoch", "step": 20, "test_error": [4.0, 4.0], "train_loss": [0.4, 0.4]},
    {"kind": "end", "state": "done"},
]


def traces(figure) -> dict:
    return {trace.name: trace for trace in figure.data}


def test_curves_of_events():
    drawn = traces(course_figure(Course.of_events(EVENTS)))
    assert (list(drawn["loss"].x), list(drawn["loss"].y)) == ([1, 15], [2.5, 1.5])
    assert list(drawn["learning rate"].y) == [0.1, 0.2]
    assert (list(drawn["test error"].x), list(drawn["test error"].y)) == ([10, 20], [2.0, 4.0])
    assert list(drawn["mean loss of the epoch"].y) == pytest.approx([0.6, 0.4])


def test_several_members_are_a_mean_and_a_band():
    """Around the mean one sample standard deviation: up along x and back."""
    band = traces(course_figure(Course.of_events(EVENTS)))["test error, ± standard deviation"]
    assert list(band.x) == [10, 20, 20, 10]
    np.testing.assert_allclose(band.y, [2 + 2**0.5, 4, 4, 2 - 2**0.5])


def test_one_member_has_no_band():
    events = [{"kind": "epoch", "step": 1, "test_error": [3.0], "train_loss": [1.0]}]
    assert not any("±" in name for name in traces(course_figure(Course.of_events(events))))


def test_nothing_yet():
    for log in (False, True):
        assert not any(len(trace.x) for trace in course_figure(Course(), log=log).data)


def test_a_logarithmic_scale_keeps_the_band_above_zero():
    events = [{"kind": "epoch", "step": 1, "test_error": [0.1, 9.0], "train_loss": [1.0, 1.0]}]
    figure = course_figure(Course.of_events(events), log=True)
    assert (figure.layout.yaxis.type, figure.layout.yaxis2.type) == ("log", "log")
    assert figure.layout.yaxis3.type is None
    assert min(traces(figure)["test error, ± standard deviation"].y) > 0


def test_long_curves_are_thinned_and_keep_their_ends():
    events = [
        {"kind": "progress", "step": k, "loss": float(k), "learning_rate": 0.1}
        for k in range(1, 5000)
    ]
    loss = traces(course_figure(Course.of_events(events)))["loss"]
    assert len(loss.x) <= MOST_POINTS
    assert (loss.x[0], loss.x[-1]) == (1, 4999)
    assert list(loss.x) == list(loss.y)


def test_a_checkpoint_s_epochs():
    epochs = [
        EpochMetrics(
            epoch=1,
            step=7,
            train_loss=[1.0, 2.0],
            test_error=[5.0, 6.0],
            learning_rate=0.3,
            seconds=1.0,
        ),
    ]
    drawn = traces(course_figure(Course.of_epochs(epochs)))
    assert list(drawn["loss"].y) == [1.5]
    assert list(drawn["test error"].y) == [5.5]
    assert list(drawn["learning rate"].y) == [0.3]
