"""The router: the pages of the app."""

import os

import streamlit as st
import torch

from densembed.cache import prepare_server
from densembed.models import plugins
from pages.widgets.common.link import plain

PAPER = "https://arxiv.org/abs/2006.12779"
CODE = "https://github.com/francescocicala/density-embedding-layers"


def main() -> None:
    st.session_state.routed = True  # see pages.widgets.common.page.begin
    torch.set_num_threads(1)  # pages compute little, and more threads would compete with training
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
    st.set_page_config(page_title=f"{page.title} – densembed")
    try:
        plugins.load()
    except plugins.PluginError as error:
        st.error(plain(str(error)))
    if os.environ.get("DENSEMBED_RESUME"):
        from pages.widgets.train.cluster import cluster

        cluster()  # resumes unfinished runs, whichever page is visited first
    st.set_page_config(page_title=f"{page.title} – densembed")
    page.run()
    about()


def about() -> None:
    """The last line of every page: what this is, and where to read more."""
    st.caption(
        f"About: densembed implements [Density-embedding layers]({PAPER}) (Cicala and Bortolussi, "
        f"2020), and shows where such networks look. The [authors’ code]({CODE}) is on GitHub."
    )


if __name__ == "__main__":  # Streamlit runs this file for every view of a page
    main()
elif __name__ != "__mp_main__":  # the server imports it once; so does a worker process
    from pages.widgets.common.answers import keep_answers
    from pages.widgets.common.shell import routes

    prepare_server()
    keep_answers()
    app = st.App(__file__, routes=routes(["", "train", "compare", "paper", "lab"]))
