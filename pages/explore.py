"""What does this network look at?"""

import streamlit as st

from pages.widgets.common.downloads import PRINTED, copy_link, export_explored
from pages.widgets.common.page import begin, hide_menu
from pages.widgets.explore.tour import tour
from pages.widgets.inputs.checkpoints import first_choice, require_models, upload_model
from pages.widgets.inputs.choose import (
    UPLOAD,
    offer_download,
    remark,
    strange_drawing,
    upload_picture,
)
from pages.widgets.live.input import explored
from pages.widgets.live.live import follow_link, model_of, reported, show_view

begin(
    "What does this network look at?",
    "The network looks where it is bright: its **receptive field** is the sum of its densities "
    "over the picture. With a micro network (mNN) the field moves with the input.",
)
hide_menu()
tour()
default = first_choice(require_models())
report = reported("explore")
parameters = report.parameters if report else st.query_params.to_dict()
key, checkpoint = model_of(parameters, "model", default)
picture = upload_picture(checkpoint) if parameters.get("from") == UPLOAD else None
shown = report and explored(report, checkpoint, picture)
if shown and shown.own:
    remark(shown, {"this model": checkpoint})
show_view(
    "explore", {"model": default}, {"export": "Export"},
    None if picture is None else picture.pixels, strange_drawing(shown, [checkpoint]),
)  # fmt: skip
if shown and not shown.own:
    # Below the view: above it the pad would move when the visitor begins to draw.
    remark(shown, {"this model": checkpoint})
with st.container(horizontal=True, vertical_alignment="center"):
    upload_model("model", key, follow_link)
    offer_download(checkpoint, follow_link)
    copy_link()
if report and shown and parameters.get("more") == "export":
    export_explored(key, checkpoint, shown.pixels, report.parameters)
elif report:
    PRINTED.drop()
