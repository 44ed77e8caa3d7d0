"""How does a receptive field learn?"""

import streamlit as st

from densembed import gallery
from densembed.models import describe
from densembed.runs import Run, read_only
from densembed.training_figures import Course
from pages.widgets.models import first_choice, titles
from pages.widgets.page import begin
from pages.widgets.run_list import run_list
from pages.widgets.run_view import pictures, run_view
from pages.widgets.train_form import train_form


def main() -> None:
    begin(
        "How does a receptive field learn?",
        "Start a training and watch the densities find their places. It goes on when you leave.",
    )
    if read_only():
        st.info("This is a public demonstration: nothing is trained or deleted here.")
    else:
        train_form()
    identifier = st.query_params.get("run", "")
    if run := Run.find(identifier):
        run_view(run)
    else:
        if identifier:
            st.warning(f"The link asks for “{identifier[:40]}”, which is not here any more.")
        _example()
    run_list(identifier)


def _example() -> None:
    """A training that ships, so that the page shows what it is about before the first click."""
    options = titles()
    if not options:
        return
    checkpoint = gallery.find(first_choice(options)).open()
    st.subheader(f"For example: {describe(checkpoint.config.model)}", anchor=False)
    pictures(checkpoint, Course.of_epochs(checkpoint.header.epochs))


main()
