"""Models and settings in a table, and training curves."""

from html import escape

import streamlit as st

from densembed.fields.agreement import align_steps, summary
from densembed.figures.curves import curves_figure
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART, panel
from pages.widgets.compare.models import SLIDERS, TYPICAL, ComparedModel

STYLE = """
<style>
.facts {overflow-x: auto;}
.facts table {border-collapse: collapse; width: 100%; font-size: 0.95rem;}
.facts th {text-align: left; font-weight: 400; opacity: 0.7; min-width: 8em;}
.facts thead th {font-weight: 600; opacity: 1;}
.facts th, .facts td {
  padding: 5px 12px 5px 6px; border-bottom: 1px solid #8883; vertical-align: top;
}
.facts td {min-width: 8em;}
.facts td.differs {font-weight: 600;}
.facts tr.differs th::before {content: "≠ "; color: #d1892b; font-weight: 600;}
</style>
"""


def table(compared: list[ComparedModel]) -> None:
    """Facts about the models; differences from the first are marked."""
    columns = [summary(entry.checkpoint) for entry in compared]
    head = "".join(
        f'<th scope="col">{escape(entry.model)}<br><small>{entry.name}</small></th>'
        for entry in compared
    )
    rows = "".join(_row(name, [column[name] for column in columns]) for name in columns[0])
    st.html(
        f'{STYLE}<div class="facts"><table><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    st.caption(
        "≠ marks rows that differ; values that differ from the first model are bold. Test errors "
        "over several seeds are mean ± standard deviation."
    )


def _row(name: str, values: list[str]) -> str:
    cells = "".join(
        f'<td class="{"differs" if value != values[0] else ""}">{escape(value)}</td>'
        for value in values
    )
    mark = "differs" if len(set(values)) > 1 else ""
    return f'<tr class="{mark}"><th scope="row">{escape(name)}</th>{cells}</tr>'


def curves(compared: list[ComparedModel], by: str) -> None:
    """Test error and training loss of all models over the training."""
    kinds = (
        ("test error", "test error, %", lambda epoch: epoch.test_error),
        ("training loss", "training loss, nats", lambda epoch: epoch.train_loss),
    )
    for column, (name, axis, of) in zip(st.columns(2, gap="medium"), kinds, strict=True):
        lines = []
        for entry in compared:
            epochs = entry.checkpoint.header.epochs
            places = align_steps(entry.checkpoint, [epoch.step for epoch in epochs], by)
            lines.append((escape(entry.model), places, [of(epoch) for epoch in epochs]))
        with column:
            panel(name, "at the end of each epoch")
            st.plotly_chart(
                curves_figure(lines, x_title=SLIDERS[by].lower(), y_title=axis),
                key=f"curve-{name}",
                config=CHART,
                alt=f"The {name} of each model over its training",
            )
    several = any(entry.checkpoint.members > 1 for entry in compared)
    band = (
        f" The line is the mean over the members, the band ± one standard deviation. {TYPICAL}"
        if several
        else ""
    )
    data = {entry.checkpoint.header.provenance.dataset_title for entry in compared}
    apart = (
        " The models were trained and tested on different data "
        f"({', '.join(map(plain, sorted(data)))}), "
        "so their errors cannot be compared."
        if len(data) > 1
        else ""
    )
    if not all(entry.checkpoint.header.epochs for entry in compared):
        apart += " A model without a complete epoch has no curve."
    if text := (band + apart).strip():
        st.caption(text)
