"""The router: which pages there are."""

import streamlit as st

page = st.navigation(
    [
        st.Page("pages/explore.py", title="Explore", default=True),
        st.Page("pages/train.py", title="Train"),
        st.Page("pages/compare.py", title="Compare"),
    ],
    position="top",
)
page.run()
