"""What differs between these models?"""

import streamlit as st

from pages.widgets.common.downloads import PRINTED, copy_link
from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin, hide
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.compare.columns import PARTS, show_columns
from pages.widgets.compare.differences import atlases, curves, table
from pages.widgets.compare.disagreement import confused, disagree
from pages.widgets.compare.downloads import export_compared
from pages.widgets.compare.models import pick_models, pick_moment, remark_fields, remark_inputs
from pages.widgets.inputs.choose import pick_input, remark, show_input

STYLE = """
<style>
[data-testid="stPopoverButton"] > div > :last-child {display: none;}
@media (max-width: 1200px) {
  .st-key-by button {padding: 0 8px;}
}
@media (max-width: 640px) {
  .st-key-models-chosen
    [data-testid="stElementContainer"]:has([data-testid="stCaptionContainer"]) {display: none;}
  .st-key-which {flex-wrap: wrap;}
  .st-key-which > :has(.st-key-models-chosen) {flex: 1 1 100%;}
  /* The picture is beside the alignment of the slider. */
  .st-key-aside {flex-flow: row wrap; column-gap: 8px;}
  .st-key-aside > * {flex: 1 1 calc(50% - 8px); min-width: 160px;}
  .st-key-aside > :has(.st-key-pad) {flex-basis: 100%;}
}
</style>
"""

DETAILS = {
    "settings": "Models and settings",
    "curves": "Training curves",
    "disagreements": "Where they disagree",
    "confusion": "Confusion matrices",
    "classes": "All classes",
    "export": "Export",
}
OLD_DETAILS = {text: slug for slug, text in DETAILS.items()} | {
    "Model and recipe": "settings",
    "How they learned": "curves",
    "What they mistake": "confusion",
    "Take it away": "export",
}

begin(
    "What differs between these models?",
    "One input, one slider and one colour scale: where each model looks, and what it predicts.",
)
st.html(STYLE)
hidden = hide(PARTS)
with st.container(key="choices"):
    compared = pick_models()
    first = compared[0].checkpoint
    given = pick_input(first)
remark(
    given, {f"the {entry.name} model": entry.checkpoint for entry in compared if entry.takes(given)}
)
remark_inputs(compared, given)

# Each of the columns, three or four, is as wide as the input's.
picture, fields = st.columns([20, 61 if len(compared) == 3 else 82], gap="small")
with picture, st.container(key="aside"):
    with st.container(key="input"):
        show_input(given, first)
    with st.container(key="showing"):
        moment = pick_moment(compared)
with fields:
    show_columns(compared, given, moment, hidden)
remark_fields(compared)

with st.container(horizontal=True, horizontal_alignment="distribute"):
    opened = Parameter("open", "More", Slugs(DETAILS, OLD_DETAILS)).draw(
        st.pills, label_visibility="collapsed", wrap=True
    )
    copy_link()
if opened != "export":
    PRINTED.drop()
if opened == "settings":
    table(compared)
elif opened == "curves":
    curves(compared, moment.by)
elif opened == "disagreements":
    disagree(compared, moment.indices)
elif opened == "confusion":
    confused(compared, moment.indices)
elif opened == "classes":
    atlases(compared, moment)
elif opened == "export":
    export_compared(compared, moment, given)
close_link()
