"""What differs between these models? The view is `densembed/web/app/compare.js`."""

import streamlit as st

from pages.widgets.common.downloads import PRINTED, copy_link
from pages.widgets.common.link import keep_notices
from pages.widgets.common.page import begin, hide_menu
from pages.widgets.compare.differences import curves, table
from pages.widgets.compare.disagreement import confused, disagree
from pages.widgets.compare.downloads import export_compared
from pages.widgets.compare.models import (
    compared_models,
    default_models,
    moment_of,
    remark_fields,
    remark_inputs,
)
from pages.widgets.inputs.checkpoints import require_models, upload_model
from pages.widgets.inputs.choose import (
    remark,
    strange_drawing,
    takes_pictures,
    upload_picture,
)
from pages.widgets.live.input import explored
from pages.widgets.live.live import follow_link, reported, show_view

DETAILS = {
    "settings": "Models and settings",
    "curves": "Training curves",
    "disagreements": "Where they disagree",
    "confusion": "Confusion matrices",
    "export": "Export",
}

begin(
    "What differs between these models?",
    "One input, one slider and one colour scale: where each model looks, and what it predicts.",
)
hide_menu()
keep_notices()
require_models()
report = reported("compare")
parameters = report.parameters if report else {}
compared = compared_models(parameters)
first = compared[0].checkpoint
images = first.header.scaling is None
picture = upload_picture(first, follow_link) if takes_pictures(parameters) and images else None
shown = report and explored(report, first, picture)
able = {
    f"the {entry.name} model": entry.checkpoint
    for entry in compared
    if shown and entry.takes(shown)
}
if shown and shown.own and images:
    remark(shown, able)
show_view(
    "compare",
    default_models(st.query_params.get("first", "")),
    DETAILS,
    None if picture is None else picture.pixels,
    strange_drawing(shown, able.values()) if images else None,
)
if shown:
    if not shown.own:
        remark(shown, able)  # below the view: the pad must not move
    remark_inputs(compared, shown)
remark_fields(compared)
copy_link()
upload_model("first", compared[0].key, follow_link)

opened = parameters.get("open") if shown else None
moment = moment_of(compared, parameters)
if report and opened != "export":
    PRINTED.drop()
if opened == "settings":
    table(compared)
elif opened == "curves":
    curves(compared, moment.by)
elif opened == "disagreements":
    disagree(compared, moment.indices)
elif opened == "confusion":
    confused(compared, moment.indices)
elif opened == "export":
    export_compared(compared, moment, report)
