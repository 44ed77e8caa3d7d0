"""What does this network look at? The view is `densembed/web/app/explore.js`."""

import streamlit as st

from pages.widgets.common.downloads import PRINTED, copy_link, export_explored
from pages.widgets.common.link import keep_notices
from pages.widgets.common.page import begin, hide_menu
from pages.widgets.explore.tour import tour
from pages.widgets.inputs.checkpoints import first_choice, require_models, titles, upload_model
from pages.widgets.inputs.choose import (
    remark,
    strange_drawing,
    takes_pictures,
    upload_picture,
)
from pages.widgets.inputs.compare_with import compare_with
from pages.widgets.inputs.download import offer_download
from pages.widgets.live.input import explored
from pages.widgets.live.live import follow_link, model_of, reported, show_view

begin("What does this network look at?")
hide_menu()
keep_notices()
default = first_choice(require_models())
report = reported("explore")
parameters = report.parameters if report else st.query_params.to_dict()
key, checkpoint = model_of(parameters, "model", default)
images = checkpoint.header.scaling is None
if images:
    tour(checkpoint)
picture = upload_picture(checkpoint, follow_link) if takes_pictures(parameters) and images else None
shown = report and explored(report, checkpoint, picture)
if shown and shown.own and images:
    remark(shown, {"this model": checkpoint})
show_view(
    "explore",
    {"model": default},
    {"export": "Export"},
    None if picture is None else picture.pixels,
    strange_drawing(shown, [checkpoint]) if images else None,
)
if shown and not shown.own:
    # Below the view: above it the pad would move when the visitor begins to draw.
    remark(shown, {"this model": checkpoint})
with st.container(horizontal=True, vertical_alignment="center"):
    compare_with(key)
    offer_download(checkpoint, follow_link)
    copy_link()
upload_model("model", key, follow_link)
if report and shown and parameters.get("more") == "export":
    export_explored(key, checkpoint, shown.pixels, report.parameters, titles([key]))
elif report:
    PRINTED.drop()
