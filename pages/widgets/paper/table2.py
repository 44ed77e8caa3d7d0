"""Table 2: colour photographs, and how far the set-up differs from the paper's."""

import streamlit as st

from densembed.data import slug, title
from densembed.experiments.report import deviation, plus_minus
from densembed.runs.gallery import results
from pages.widgets.paper.tables import OWN, is_papers_data, show_table

JPEG = "Our pictures were compressed as JPEG, unlike the paper's. "


def show() -> None:
    tables = [table for table in results("table2-") if is_papers_data("table2", table["dataset"])]
    own = [table for table in tables if table["recipe"] == OWN]
    for table in (own or tables)[:1]:
        st.header(f"Table 2: {title(table['dataset'])}", anchor="table-2")
        st.markdown(
            "The same networks on small colour photographs, with separate densities per channel."
        )
        show_table("table2", slug(table["dataset"]), "recipe2")
        st.markdown(_difference(table))


def _difference(table: dict) -> str:
    """What the linear model, which has no densities, says about the set-ups."""
    jpeg = JPEG if "JPEG" in table["dataset"] else ""
    linear = next((row for row in table["rows"] if row["model"] == "linear"), None)
    if linear is None:
        return jpeg
    points = linear["paper_mean"] - linear["mean"]
    spread = deviation(linear)
    if spread is None:  # of a single training: as large as the paper's
        spread = linear["paper_deviation"]
    if abs(points) <= linear["paper_deviation"] + spread:
        return jpeg
    than = "lower" if points > 0 else "higher"
    return (
        f"{jpeg}The linear model has no densities, and yet its error with recipe "
        f"{table['recipe']} is {abs(points):.1f} points {than} than in the paper "
        f"({plus_minus(linear)} % instead of {plus_minus(linear, 'paper_')} %). So the pictures, "
        "their preparation or the training differ from the paper's, and the errors in this table "
        "cannot be compared with the published ones row by row. The errors of our own trainings "
        "can be compared with each other."
    )
