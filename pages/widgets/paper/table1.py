"""Table 1: MNIST."""

import streamlit as st

from pages.widgets.paper.tables import show_table


def show() -> None:
    st.header("Table 1: MNIST", anchor="table-1")
    show_table("table1", "mnist")
