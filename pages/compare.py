"""What differs between these models?"""

import streamlit as st

from densembed.figures.printed import WIDTHS
from pages.widgets.common.downloads import copy_link
from pages.widgets.common.link import check_link, close_link
from pages.widgets.common.page import begin, hide
from pages.widgets.compare.columns import PARTS, show_columns
from pages.widgets.compare.differences import ATLAS, CURVES, TABLE, atlases, curves, table
from pages.widgets.compare.disagreement import CONFUSED, DISAGREE, confused, disagree
from pages.widgets.compare.downloads import TAKE, take_compared
from pages.widgets.compare.models import pick_moment, pick_sides, remark_fields, remark_sides
from pages.widgets.inputs.choose import pick_input, remark, show_input

STYLE = """
<style>
[data-testid="stPopoverButton"] > div > :last-child {display: none;}
@media (max-width: 1200px) {
  .st-key-by button {padding: 0 8px;}
}
@media (max-width: 640px) {
  .st-key-models-chosen [data-testid="stCaptionContainer"] {display: none;}
  .st-key-which {flex-wrap: wrap;}
  .st-key-which > :has(.st-key-models-chosen) {flex: 1 1 100%;}
  /* The picture beside what the slider moves by. */
  .st-key-aside {flex-flow: row wrap; column-gap: 8px;}
  .st-key-aside > * {flex: 1 1 calc(50% - 8px); min-width: 160px;}
  .st-key-aside > :has(.st-key-pad) {flex-basis: 100%;}
}
</style>
"""

begin(
    "What differs between these models?",
    "One input, one slider, one colour scale: where each of them looks, and what it says.",
)
st.html(STYLE)
hidden = hide(PARTS)
with st.container(key="choices"):
    sides = pick_sides()
    first = sides[0].checkpoint
    given = pick_input(first)
remark(given, {f"the {side.name} model": side.checkpoint for side in sides if side.takes(given)})
remark_sides(sides, given)

# Each of the columns, three or four, is as wide as the input's.
picture, fields = st.columns([20, 61 if len(sides) == 3 else 82], gap="small")
with picture, st.container(key="aside"):
    with st.container(key="input"):
        show_input(given, first)
    with st.container(key="showing"):
        moment = pick_moment(sides)
with fields:
    show_columns(sides, given, moment, hidden)
remark_fields(sides)

options = [TABLE, CURVES, DISAGREE, CONFUSED, ATLAS, TAKE]
check_link("open", "More", options, "none of them")
check_link("printed", "Printed figure", WIDTHS, "two columns")
with st.container(horizontal=True, horizontal_alignment="distribute"):
    shown = st.pills(
        "More", options, key="open", bind="query-params", label_visibility="collapsed", wrap=True
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
    atlases(sides, moment)
elif shown == TAKE:
    take_compared(sides, moment, given)
close_link()
