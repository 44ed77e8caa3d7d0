"""What differs between these models?"""

import streamlit as st

from densembed.figures import COLOURS, difference_figure, field_figure, opinion_figure
from pages.widgets.compared_files import TAKE, take_compared
from pages.widgets.computed import seen_by
from pages.widgets.differences import ATLAS, CURVES, TABLE, atlases, curves, table
from pages.widgets.disagreement import CONFUSED, DISAGREE, confused, disagree
from pages.widgets.inputs import pick_input, remark, show_input
from pages.widgets.link import check_link
from pages.widgets.page import CHART, begin, panel
from pages.widgets.sides import Side, pick_moment, pick_sides
from pages.widgets.take import copy_link

STYLE = """
<style>
/* Pictures are as high as their column is wide, with room for the colour bar; a phone has two
   in a row. */
.st-key-fields [data-testid="stColumn"], .st-key-changes [data-testid="stColumn"] {
  container-type: inline-size;
}
.st-key-fields .stPlotlyChart, .st-key-changes .stPlotlyChart {
  height: min(calc(100cqw + 56px), 360px) !important;
}
[data-testid="stPopoverButton"] > div > :last-child {display: none;}
.st-key-changes .st-key-opinion .stPlotlyChart {height: 340px !important;}
@media (max-width: 640px) {
  .st-key-moment > :first-child {flex: 1 1 100% !important;}
  .st-key-models-chosen [data-testid="stCaptionContainer"] {display: none;}
  .st-key-fields [data-testid="stHorizontalBlock"],
  .st-key-changes [data-testid="stHorizontalBlock"] {flex-wrap: wrap; column-gap: 8px;}
  .st-key-fields [data-testid="stColumn"], .st-key-changes [data-testid="stColumn"] {
    min-width: calc(50% - 8px) !important; flex: 1 1 calc(50% - 8px) !important;
    max-width: calc(50% - 4px);
  }
  .st-key-changes [data-testid="stColumn"]:has(.st-key-opinions),
  .st-key-fields [data-testid="stColumn"]:has(.st-key-drawn) {
    min-width: 100% !important; max-width: 100%;
  }
  .st-key-fields .panel, .st-key-changes .panel {
    min-height: 4.5em; display: flex; flex-direction: column; justify-content: end;
  }
  .st-key-fields .panel br, .st-key-changes .panel br {display: none;}
}
</style>
"""

begin(
    "What differs between these models?",
    "One input, one slider, one colour scale: where each of them looks, and what it says.",
)
st.html(STYLE)
sides = pick_sides()
first = sides[0].checkpoint
given = pick_input(first)
remark(given, *(side.checkpoint for side in sides))

above = st.container(key="fields")
moment = pick_moment(sides)
below = st.container(key="changes")
seen = {side.name: seen_by(side.checkpoint, given.pixels) for side in sides if side.takes(given)}
shares = {side.name: 1 / side.densities if moment.mean else 1.0 for side in sides}
top = max(one.top * shares[name] for name, one in seen.items())
fields = {
    side.name: seen[side.name].fields[index].sum(0, keepdims=True) * shares[side.name]
    for side, index in zip(sides, moment.indices, strict=True)
    if side.name in seen
}
unit = "mean density per pixel²" if moment.mean else "density per pixel²"
x, y = seen["first"].x, seen["first"].y


def cannot(side: Side) -> None:
    """Say why a model is not among those that are shown this input."""
    panel(side.model, side.name)
    channels, height, width = side.checkpoint.header.input_shape
    colour = "colour" if channels == 3 else f"{channels}-channel" if channels > 1 else "grey"
    st.info(
        f"The {side.name} model takes {colour} pictures of {height} × {width}, so it cannot be "
        "shown this input. Its curves and its recipe compare below."
    )


def draw(side: Side, index: int) -> None:
    when = side.moment(index)
    if side.name not in seen:
        return cannot(side)
    panel(side.model, f"{side.name}, {when}")
    figure = field_figure(fields[side.name], x, y, top, unit)
    st.plotly_chart(
        figure, key=f"{side.name}-field", config=CHART, height="stretch",
        alt=f"Receptive field of the {side.name} model, {side.model}, {when}",
    )  # fmt: skip


def draw_change(side: Side) -> None:
    if side.name not in seen:
        return
    panel(f"{side.name} − first", f"red: more in the {side.name}")
    change = fields[side.name] - fields["first"]
    st.plotly_chart(
        difference_figure(change, x, y, top, f"difference, {unit}"), key=f"{side.name}-change",
        config=CHART, height="stretch",
        alt=f"Receptive field of the {side.name} model less that of the first",
    )  # fmt: skip


def opinions() -> None:
    classes = first.header.classes
    asked = [side for side in sides if side.name in seen]
    able = [side for side in asked if side.checkpoint.header.classes == classes]
    if given.seen == "no ink":
        return panel("what they say", "nothing: there is no ink")
    others = [side.name for side in asked if side not in able]
    panel(
        "what they say",
        f"at the slider; the {' and the '.join(others)} knows other classes"
        if others
        else "at the slider’s place",
    )
    bars = [
        (side.name, seen[side.name].probabilities[index], colour)
        for side, index, colour in zip(sides, moment.indices, COLOURS, strict=False)
        if side in able
    ]
    st.plotly_chart(
        opinion_figure(bars, classes, given.label), key="opinion", config=CHART, height="stretch",
        alt="Probability of each class according to each model at the chosen step",
    )  # fmt: skip


pair = len(sides) == 2  # then one row has room for their difference, too
with above:
    picture, *columns = st.columns(4 if pair else len(sides) + 1, gap="small")
with below:
    opinion, *changes = st.columns([1] if pair else [2] + [1] * (len(sides) - 1), gap="small")
with picture, st.container(key="drawn" if given.source == "drawing" else "given"):
    show_input(given, first, "stretch")
for column, side, index in zip(columns, sides, moment.indices, strict=False):
    with column:
        draw(side, index)
for column, side in zip(columns[2:] if pair else changes, sides[1:], strict=True):
    with column:
        draw_change(side)
with opinion, st.container(key="opinions"):
    opinions()
even = [side.name for side in sides if not side.checkpoint.has_densities]
if even:
    above.caption(
        f"Fully connected: the {' and the '.join(even)}. A weight for each pixel is the special "
        "case of one even density on each, so such a field is the same everywhere, at any step."
    )

options = [TABLE, CURVES, DISAGREE, CONFUSED, ATLAS, TAKE]
check_link("open", "More", options, "none of them")
with st.container(horizontal=True, horizontal_alignment="distribute"):
    shown = st.pills(
        "More", options, key="open", bind="query-params", label_visibility="collapsed"
    )  # fmt: skip
    copy_link()
if shown == TABLE:
    table(sides)
elif shown == CURVES:
    curves(sides, moment.by)
elif shown == DISAGREE:
    disagree(sides, moment.indices)
elif shown == CONFUSED:
    confused(sides, moment.indices)
elif shown == ATLAS:
    atlases(sides, moment.indices)
elif shown == TAKE:
    take_compared(sides, moment.indices, given.pixels, seen)
