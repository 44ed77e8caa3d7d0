"""The answer in short, and the contents of the page."""

from collections.abc import Iterator

import streamlit as st

from densembed.data import slug, title
from densembed.runs.gallery import result, results
from pages.widgets.paper.tables import ARXIV, OWN, compared, results_of


def question() -> str:
    return (
        f"In 2020 Cicala and Bortolussi proposed [layers that learn where to look]({ARXIV}). We "
        "trained every model of their tables several times from scratch."
    )


def show() -> None:
    lines = [*_answers()]
    if lines:
        st.markdown("\n".join(f"- {line}" for line in lines))
    st.markdown("On this page: " + " · ".join(f"[{name}](#{to})" for to, name in _contents()))


def _answers() -> Iterator[str]:
    """How many rows of each table have a lower error than published, with each recipe."""
    for table, name, dataset in _tables():
        by_recipe = compared(results_of(table, slug(dataset)))
        counts = []
        for recipe, of in by_recipe.items():
            below = sum(row["mean"] < row["paper_mean"] for row in of["rows"])
            words = "with the paper's own recipe" if recipe == OWN else f"with recipe {recipe}"
            counts.append(f"**{below} of {len(of['rows'])}** {words}")
        if counts:
            yield (
                f"{name}, {title(dataset)}: models with a lower error than published: "
                f"{', '.join(counts)}."
            )


def _tables() -> Iterator[tuple[str, str, str]]:
    """Each table with results: its name for `reproduce`, its name in words, and its data set."""
    for table, name in (("table1", "Table 1"), ("table2", "Table 2")):
        if files := results(f"{table}-"):
            yield table, name, files[0]["dataset"]


def _contents() -> Iterator[tuple[str, str]]:
    """The sections that are shown: their anchors and titles."""
    tables = [name for name, *_ in _tables()]
    sections = (
        ("table-1", "Table 1", True),
        ("table-2", "Table 2", "table2" in tables),
        ("figure-1", "Figure 1", True),
        ("times", "Training time", bool(result("times-mnist"))),
        ("families", "Which density?", bool(results("families-"))),
        ("parameters", "Few parameters", bool(results("frontier-"))),
        ("robustness", "Does the field follow the digit?", bool(results("robustness-"))),
        ("frames", "What if the densities follow the ink?", bool(results("frames-"))),
        ("resolution", "One network, any resolution", bool(results("resolution-"))),
        ("signals", "One axis", bool(results("signals-"))),
        ("departures", "Where we depart from the printed text", True),
    )
    yield from ((anchor, name) for anchor, name, shown in sections if shown)
