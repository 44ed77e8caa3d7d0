"""The answer in short, and the contents of the page."""

from collections.abc import Iterator

import streamlit as st

from densembed.data import slug, title
from densembed.experiments.paper import TABLES as PUBLISHED
from densembed.experiments.reproduce import other_data
from densembed.markup import for_markdown
from densembed.runs.gallery import result, results
from pages.widgets.paper.tables import (
    ARXIV,
    OWN,
    compared,
    is_papers_data,
    papers_data,
    results_of,
    trainings,
)

TABLES = {"table1": "Table 1", "table2": "Table 2"}
"""The names of the paper's tables, by that for `reproduce`."""


def question() -> str:
    return (
        "In 2020 Cicala and Bortolussi proposed "
        f"[layers that learn where to look]({ARXIV}).{_trained()}"
    )


def _trained() -> str:
    """How many models of the paper's tables have results, and how often each was trained."""
    names, rows, missing = [], [], 0
    for table, name in TABLES.items():
        for dataset in _datasets(table)[0][:1]:
            own = [row for of in results_of(table, slug(dataset)).values() for row in of["rows"]]
            published = {row.model for row in PUBLISHED[papers_data(table)]}
            missing += len(published - {row["model"] for row in own})
            names.append(name)
            rows += own
    if not rows:
        return ""
    which = "their tables" if len(names) == len(TABLES) else f"their {names[0]}"
    models = f"some models of {which}" if missing else f"every model of {which}"
    least, *more = trainings(rows)
    times = "several times" if least > 1 else "once or several times" if more else "once"
    return f" We trained {models} {times} from scratch."


def show() -> None:
    lines = [*_answers()]
    if lines:
        st.markdown("\n".join(f"- {line}" for line in lines))
    st.markdown("On this page: " + " · ".join(f"[{name}](#{to})" for to, name in _contents()))


def _answers() -> Iterator[str]:
    """How many rows of each table have a lower error than published, with each recipe."""
    for table, name in TABLES.items():
        own, other = _datasets(table)
        for dataset in own[:1]:
            counts = []
            for recipe, of in compared(results_of(table, slug(dataset))).items():
                below = sum(row["mean"] < row["paper_mean"] for row in of["rows"])
                words = "with the paper's own recipe" if recipe == OWN else f"with recipe {recipe}"
                counts.append(f"**{below} of {len(of['rows'])}** {words}")
            if counts:
                yield (
                    f"{name}, {title(dataset)}: models with a lower error than published: "
                    f"{', '.join(counts)}."
                )
        for dataset in other:
            yield (
                f"{name}, {for_markdown(title(dataset))}: the results are not compared with the "
                f"paper's.{other_data(dataset, papers_data(table))}"
            )


def _datasets(table: str) -> tuple[list[str], list[str]]:
    """The data sets of a table's results: those of the paper's table, and all others."""
    every = list(dict.fromkeys(file["dataset"] for file in results(f"{table}-")))
    own = [dataset for dataset in every if is_papers_data(table, dataset)]
    return own, [dataset for dataset in every if dataset not in own]


def _contents() -> Iterator[tuple[str, str]]:
    """The sections that are shown: their anchors and titles."""
    sections = (
        ("table-1", "Table 1", True),
        ("table-2", "Table 2", bool(_datasets("table2")[0])),
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
