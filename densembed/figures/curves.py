"""How a training goes, as a Plotly figure: test error, loss and learning rate over its steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from densembed.figures.heatmaps import AFTER, BEFORE, FIELD_HEIGHT

MOST_POINTS = 400
"""Points of a curve that are drawn: more are not seen, and a live page sends them every second."""
MOST_MARKS = 60
PANES = (("test error, %", (0.62, 1.0)), ("loss", (0.25, 0.55)), ("rate", (0.0, 0.18)))


@dataclass
class Course:
    """What is known of a training, point by point; members' values in a list for each point."""

    error_steps: list[int] = field(default_factory=list)
    errors: list[list[float]] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    """Of the members, the mean over each epoch."""
    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    """Of all members, the mean since the last point."""
    rates: list[float] = field(default_factory=list)

    @classmethod
    def of_events(cls, events: Sequence[dict]) -> "Course":
        """From a run's events; what is not a number is left out."""
        course = cls()
        for event in events:
            if event["kind"] == "epoch":
                course.error_steps.append(event["step"])
                course.errors.append(event["test_error"])
                course.losses.append(event.get("train_loss") or [])
            if event["kind"] == "progress" and _numbers(event, "loss", "learning_rate"):
                course.steps.append(event["step"])
                course.loss.append(event["loss"])
                course.rates.append(event["learning_rate"])
        return course

    @classmethod
    def of_epochs(cls, epochs: Sequence) -> "Course":
        """From the epochs in a checkpoint's header."""
        return cls(
            [epoch.step for epoch in epochs],
            [epoch.test_error for epoch in epochs],
            [epoch.train_loss for epoch in epochs],
            [epoch.step for epoch in epochs],
            [float(np.mean(epoch.train_loss)) for epoch in epochs],
            [epoch.learning_rate for epoch in epochs],
        )


def _numbers(event: dict, *names: str) -> bool:
    return all(isinstance(event.get(name), int | float) for name in names)


def course_figure(course: Course, log: bool = False) -> go.Figure:
    """Three panes over one axis of steps; several members as their mean and a band of ± one
    standard deviation.

    `log`: error and loss on a logarithmic scale.
    """
    figure = go.Figure()
    _members(figure, course.error_steps, course.errors, "y", "test error", "%")
    _line(figure, course.steps, course.loss, "y2", "loss", BEFORE)
    if all(course.losses):
        _members(figure, course.error_steps, course.losses, "y2", "loss, an epoch's mean", "")
    _line(figure, course.steps, course.rates, "y3", "learning rate", AFTER)
    for number, (title, domain) in enumerate(PANES, 1):
        scale = {"type": "log", "dtick": "D2"} if log and number < 3 else {"rangemode": "tozero"}
        figure.update_layout({
            f"yaxis{number}": {
                "domain": domain, "title": {"text": title, "standoff": 4}, "nticks": 4, **scale
            }
        })  # fmt: skip
    figure.update_xaxes(title="step", rangemode="tozero", anchor="y3")
    figure.update_layout(
        height=FIELD_HEIGHT,
        margin={"l": 8, "r": 8, "t": 8, "b": 40},
        showlegend=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def _thin(count: int) -> list[int]:
    """At most `MOST_POINTS` indices, evenly, the last one among them."""
    if count <= MOST_POINTS:
        return list(range(count))
    return [round(k * (count - 1) / (MOST_POINTS - 1)) for k in range(MOST_POINTS)]


def _line(
    figure: go.Figure, x: Sequence[int], y: Sequence[float], axis: str, name: str, colour: str
) -> None:
    picks = _thin(len(x))
    figure.add_scatter(
        x=[x[k] for k in picks], y=[y[k] for k in picks], yaxis=axis, name=name, mode="lines",
        line={"color": colour, "width": 1.5},
        hovertemplate=name + " %{y:.4g}<br>step %{x:,}<extra></extra>",
    )  # fmt: skip


def _members(
    figure: go.Figure, x: Sequence[int], values: Sequence[Sequence[float]], axis: str, name: str,
    unit: str,
) -> None:  # fmt: skip
    picks = _thin(len(x))
    x, values = [x[k] for k in picks], [values[k] for k in picks]
    middle = [float(np.mean(members)) for members in values]
    figure.add_scatter(
        x=x, y=middle, yaxis=axis, name=name, marker_size=4,
        mode="lines+markers" if len(x) <= MOST_MARKS else "lines",
        line={"color": AFTER, "width": 1.5},
        hovertemplate=name + " %{y:.3g}" + f" {unit}<br>" + "step %{x:,}<extra></extra>",
    )  # fmt: skip
    if values and len(values[0]) > 1:
        spread = [float(np.std(members, ddof=1)) for members in values]
        high = [m + s for m, s in zip(middle, spread, strict=True)]
        # Nothing below zero can be an error or a loss, nor be drawn on a logarithmic scale.
        low = [max(m - s, m / 100) for m, s in zip(middle, spread, strict=True)]
        figure.add_scatter(
            x=[*x, *reversed(x)], y=[*high, *reversed(low)], yaxis=axis, fill="toself",
            fillcolor="rgba(47, 111, 159, 0.2)", line={"width": 0}, mode="lines",
            hoverinfo="skip", name=name + ", ± standard deviation",
        )  # fmt: skip
