"""Curves: the course of a training over its steps, and quantities with a band over the members."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
import plotly.graph_objects as go

from densembed.figures.theme import AFTER, BEFORE, LEGEND, SERIES, themed, translucent

MOST_POINTS = 400
"""Points per curve: more are not visible, and a live page sends them every second."""
MOST_MARKS = 60
PANES = (("test error, %", (0.62, 1.0)), ("loss", (0.25, 0.55)), ("learning rate", (0.0, 0.18)))


@dataclass
class Course:
    """The curves of a training. Values of several members are lists, one per point."""

    error_steps: list[int] = field(default_factory=list)
    errors: list[list[float]] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)
    """The mean loss of each member over each epoch."""
    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    """The mean loss of all members since the last point."""
    rates: list[float] = field(default_factory=list)

    @classmethod
    def of_events(cls, events: Sequence[dict]) -> "Course":
        """From the events of a run; values that are not numbers are left out."""
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


def course_figure(course: Course, *, log: bool = False) -> go.Figure:
    """Test error, loss and learning rate over the steps.

    Several members are drawn as their mean with a band of ± one standard deviation.

    Args:
        log: use a logarithmic scale for error and loss.
    """
    figure = go.Figure()
    _members(figure, course.error_steps, course.errors, "y", "test error", "%")
    _line(figure, course.steps, course.loss, "y2", "loss", BEFORE)
    if all(course.losses):
        _members(figure, course.error_steps, course.losses, "y2", "mean loss of the epoch", "")
    _line(figure, course.steps, course.rates, "y3", "learning rate", AFTER)
    for number, (title, domain) in enumerate(PANES, 1):
        scale = {"type": "log", "dtick": "D2"} if log and number < 3 else {"rangemode": "tozero"}
        heading = {"text": title, "standoff": 4}
        pane = {"domain": domain, "title": heading, "nticks": 4, **scale}
        figure.update_layout({f"yaxis{number}": pane})
    figure.update_layout(yaxis3={"exponentformat": "power"})  # Plotly's own has 50n for 5e-8
    figure.update_xaxes(title="step", rangemode="tozero", anchor="y3")
    return themed(figure, bottom=40, showlegend=False)


def _thin(count: int) -> list[int]:
    """At most `MOST_POINTS` evenly spaced indices, including the last one."""
    if count <= MOST_POINTS:
        return list(range(count))
    return [round(k * (count - 1) / (MOST_POINTS - 1)) for k in range(MOST_POINTS)]


def _line(
    figure: go.Figure, x: Sequence[int], y: Sequence[float], axis: str, name: str, colour: str
) -> None:
    picks = _thin(len(x))
    figure.add_scatter(
        x=[x[k] for k in picks],
        y=[y[k] for k in picks],
        yaxis=axis,
        name=name,
        mode="lines",
        line={"color": colour, "width": 1.5},
        hovertemplate=name + " %{y:.4g}<br>step %{x:,}<extra></extra>",
    )


def _members(
    figure: go.Figure,
    x: Sequence[int],
    values: Sequence[Sequence[float]],
    axis: str,
    name: str,
    unit: str,
) -> None:
    picks = _thin(len(x))
    x, values = [x[k] for k in picks], [values[k] for k in picks]
    middle = [float(np.mean(members)) for members in values]
    figure.add_scatter(
        x=x,
        y=middle,
        yaxis=axis,
        name=name,
        marker_size=4,
        mode="lines+markers" if len(x) <= MOST_MARKS else "lines",
        line={"color": AFTER, "width": 1.5},
        hovertemplate=name + " %{y:.3g}" + f" {unit}<br>" + "step %{x:,}<extra></extra>",
    )
    _band(figure, x, values, AFTER, yaxis=axis, name=name + ", ± standard deviation")


def _band(
    figure: go.Figure,
    x: Sequence[float],
    values: Sequence[Sequence[float]],
    colour: str,
    **properties: Any,
) -> None:
    """Add a band of ± one standard deviation over the members, if there are several."""
    if not values or len(values[0]) < 2:
        return
    middle = np.array([np.mean(members) for members in values])
    spread = np.array([np.std(members, ddof=1) for members in values])
    # Errors and losses are positive, and a logarithmic scale needs positive values.
    low = np.maximum(middle - spread, middle / 100)
    figure.add_scatter(
        x=[*x, *reversed(x)],
        y=[*(middle + spread), *reversed(low)],
        fill="toself",
        fillcolor=translucent(colour, 0.2),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        **properties,
    )


def curves_figure(
    curves: Sequence[tuple[str, Sequence[float], Sequence[Sequence[float]]]],
    *,
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Curves with a band of ± one standard deviation over the members.

    Args:
        curves: for each curve its name, its x, and the members' values at each x.
    """
    figure = go.Figure()
    for (name, x, values), colour in zip(curves, cycle(SERIES), strict=False):
        figure.add_scatter(
            x=list(x),
            y=[float(np.mean(members)) for members in values],
            name=name,
            mode="lines+markers",
            marker_size=5,
            line_color=colour,
            hovertemplate="%{x:,}: %{y:.4g}<extra>" + name + "</extra>",
        )
        _band(figure, list(x), values, colour, showlegend=False)
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return themed(figure, top=28, showlegend=len(curves) > 1, legend=LEGEND)
