"""One sweep: a table and a plot of its results; and the list of all sweeps."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from densembed.figures.sweep import sweep_figure
from densembed.models.names import describe
from densembed.runs import read_only
from densembed.runs.sweep import Row, Sweep, all_sweeps
from densembed.text import counted, setting
from pages.widgets.common.callbacks import run_callbacks
from pages.widgets.common.link import base_path, plain
from pages.widgets.common.page import CHART
from pages.widgets.common.table import data_table
from pages.widgets.inputs.download import download_progress
from pages.widgets.train.cluster import ELSEWHERE, WORDS, cluster, watch
from pages.widgets.train.listing import show_list
from pages.widgets.train.run_actions import action_button
from pages.widgets.train.sweep_summary import caption, extent, heading

CHANGED = "sweep-changed"
DECIMALS = st.column_config.NumberColumn(format="%.2f")
OPENS = "typical run"
LINK = st.column_config.LinkColumn(
    display_text="open in Explore", help="The training whose error is closest to the mean."
)


def sweep_view(sweep: Sweep) -> None:
    """Show a sweep, updated while it is running."""
    st.session_state.pop(CHANGED, None)  # the whole page is being redrawn anyway
    before = _changeable(sweep)
    live = before[0]
    st.fragment(_follow, run_every=2.0 if live else None)(sweep, before)
    if not live:
        watch(lambda: _changeable(sweep), before)


def _changeable(sweep: Sweep) -> tuple[bool, str, bool]:
    """What another tab or the sweep itself may change on the page."""
    return _is_live(sweep), sweep.state(), sweep.plan is None


def _is_live(sweep: Sweep) -> bool:
    here = any(cluster().ahead(group) is not None for group in sweep.groups())
    return here or sweep.state() == "running"


def _follow(sweep: Sweep, before: tuple[bool, str, bool]) -> None:
    run_callbacks()
    now = _changeable(sweep)
    if st.session_state.pop(CHANGED, False) or now != before or sweep.plan is None:
        st.rerun()  # the whole page, with the list
    live, state, _ = now
    rows = sweep.rows()
    over = sum(len(row.errors) + row.diverged for row in rows)
    total = sum(row.seeds for row in rows)
    st.header(heading(sweep.plan), anchor=False)
    st.caption(caption(sweep.plan))
    if live:
        text = f"{WORDS[state]} · {over:,} of {total:,} trainings are finished"
        st.progress(*(_download(sweep) or (sweep.share(), text)))
    elif state == "done":
        st.success(f"Done: {counted(total, 'training')}.")
    else:
        kept = f"{over:,} of {total:,} trainings are finished and saved."
        told = f"{WORDS[state].capitalize()}: {plain(sweep.reason())}".rstrip()
        st.info(f"{ELSEWHERE if state == 'queued' else told} {kept}")
    if not read_only():
        _buttons(sweep, live, state, some=over > 0)
    if over:
        table, plot = st.columns(2, gap="medium")
        with table:
            data_table(
                _table(sweep, rows),
                {"test error, %": DECIMALS, "±": DECIMALS, OPENS: LINK},
                height="content",
                key="sweep-table",
            )
            _compare(sweep, rows)
        plot.plotly_chart(
            sweep_figure(rows),
            key="sweep-plot",
            config=CHART,
            alt="Test error of each combination against its parameters",
        )
    elif live or state == "queued":
        st.caption("Results appear here as each group finishes.")


def _download(sweep: Sweep) -> tuple[float, str] | None:
    """Share and text for the progress bar while a group waits for its data."""
    for group in sweep.groups():
        last, config = group.last, group.config
        if config and last and last["kind"] == "download":
            return download_progress(config.dataset, last["received"], last["size"])
    return None


def _compare(sweep: Sweep, rows: list[Row]) -> None:
    """A link to the two models with the lowest errors in Compare."""
    best = sorted((row for row in rows if row.errors), key=lambda row: row.errors.mean)[:2]
    if len(best) == 2:
        first, second = (sweep.key(row.typical) for row in best)
        st.page_link(
            "pages/compare.py",
            label="Compare the two best",
            icon=":material/arrow_forward:",
            query_params={"first": first, "second": second, "field": "mean"},
        )


def _buttons(sweep: Sweep, live: bool, state: str, some: bool) -> None:
    row = st.container(horizontal=True, vertical_alignment="center")
    if live:
        action_button(row, "Stop", sweep.stop, changed=CHANGED, key="stop-sweep")
    elif state != "done":
        action_button(
            row, "Resume", lambda: sweep.submit(cluster()), changed=CHANGED, key="resume-sweep"
        )
    if some:
        row.download_button(
            "Download as CSV",
            sweep.as_csv,
            f"sweep-{sweep.identifier}.csv",
            "text/csv",
            key="sweep-csv",
            on_click="ignore",
        )
    if not live:
        with row.popover("Delete"):
            st.write("The trained models will be deleted.")
            action_button(
                st,
                "Delete permanently",
                lambda: _delete(sweep),
                changed=CHANGED,
                key="delete-sweep",
            )


def _delete(sweep: Sweep) -> Callable[[], object]:
    sweep.delete()
    return partial(st.query_params.pop, "sweep", None)


def _table(sweep: Sweep, rows: list[Row]) -> list[dict]:
    return [
        {
            **{
                name.replace("_", " "): describe(value) if name == "model" else setting(value)
                for name, value in row.change.items()
            },
            "parameters": row.parameters,
            "test error, %": round(row.errors.mean, 2) if row.errors else None,
            "±": round(row.errors.deviation, 2) if len(row.errors) > 1 else None,
            "finished": _finished(row),
            OPENS: f"{base_path()}/?model={sweep.key(row.typical)}" if row.typical else None,
        }
        for row in rows
    ]


def _finished(row: Row) -> str:
    text = f"{len(row.errors) + row.diverged} of {row.seeds}"
    return f"{text}, {row.diverged} diverged" if row.diverged else text


def sweep_list(shown: str) -> None:
    st.header("Sweeps", anchor=False)
    if not show_list("sweep", all_sweeps, _name, shown):
        hint = "" if read_only() else " They appear here as soon as you start one."
        st.caption(f"No sweeps yet.{hint}")


def _name(sweep: Sweep) -> str:
    plan = sweep.plan
    return f"{heading(plan)} · {extent(plan)}" if plan else ""
