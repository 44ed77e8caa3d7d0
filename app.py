"""The router: which pages there are."""

import streamlit as st
import torch

from densembed import plugins

st.session_state.routed = True  # see pages.widgets.page.begin
torch.set_num_threads(1)  # A page computes little, and a second thread would wait for training's.
page = st.navigation(
    [
        st.Page("pages/explore.py", title="Explore", default=True),
        st.Page("pages/train.py", title="Train"),
        st.Page("pages/compare.py", title="Compare"),
        st.Page("pages/paper.py", title="Paper"),
        st.Page("pages/lab.py", title="Lab"),
    ],
    position="top",
)
try:
    plugins.load()
except plugins.PluginError as error:
    st.error(str(error))
page.run()
