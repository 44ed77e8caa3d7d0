"""The beginning of every page, and the parts that a link may hide."""

import runpy
from html import escape
from pathlib import Path

import streamlit as st

from densembed.figures.web import CONFIG
from densembed.web.modules import FORCED
from pages.widgets.common.callbacks import VISIT, run_callbacks
from pages.widgets.common.link import open_notices

STYLE = """
<style>
[data-testid="stMainBlockContainer"] {max-width: 1340px; padding: 3.5rem 1rem 0.75rem;}
[data-testid="stMainBlockContainer"] h1 {font-size: 2rem; font-weight: 600; padding-bottom: 4px;}
[data-testid="stMainBlockContainer"] h2 {
  font-size: 1.5rem; font-weight: 600; padding: 0.5rem 0 0.75rem;
}
/* The mark of Streamlit is hardly seen in the light theme, and links have none. */
:is(header, section, [data-testid="stMain"]) :is(a, summary, button):focus-visible {
  outline: 2px solid light-dark(#2f6f9f, #7fb3d9) !important; outline-offset: 2px;
}
/* Streamlit's colours of small print and code have too little contrast. */
[data-testid="stCaptionContainer"] {opacity: 0.75 !important;}
[data-testid="stMainBlockContainer"] :is(p, li) code {color: inherit; font-size: 0.9em;}
/* A view answers while the server works, so that it is never stale. */
[data-stale]:has(.view) {opacity: 1 !important; filter: none !important;}
:has(> .st-key-tour) {position: absolute; width: 0;}
/* Streamlit writes white on the light colour of the dark theme. */
[data-testid="stBaseButton-primary"] {color: light-dark(#fff, #14202b) !important;}
/* The largest file that the server takes, where each widget has a limit of its own in its help. */
[data-testid="stFileUploaderDropzoneInstructions"] {display: none;}
[data-testid="stSelectbox"] input {text-overflow: ellipsis;}
/* Streamlit draws these as backgrounds: see forced.css. */
[data-testid="stCheckbox"] label > div:not([data-testid]), [data-testid="stSlider"] [role=group],
[data-testid="stProgress"] [role=progressbar] {forced-color-adjust: none;}
.panel {text-align: center; font-weight: 600; margin: 0 0 -0.75rem 0;}
.panel small {font-weight: 400; opacity: 0.7;}
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] h1 {font-size: 1.4rem;}
  [data-testid="stMainBlockContainer"] :is(h2, h3) {font-size: 1.15rem;}
}
.on-paper table {border-collapse: collapse; width: 100%; font-size: 7pt;}
.on-paper :is(th, td) {
  border-bottom: 1px solid #8886; padding: 2px 4px; text-align: left; vertical-align: top;
  overflow-wrap: break-word; break-inside: avoid;
}
@media screen {
  [data-testid="stElementContainer"]:has(.on-paper) {display: none;}
}
@media print {
  [data-testid="stElementContainer"]:has([data-testid="stPlotlyChart"]),
  [data-testid="stFullScreenFrame"], [data-testid="stPlotlyChart"] {height: auto !important;}
  [data-testid="stElementContainer"]:not(:has(.live)) {break-inside: avoid;}
  [data-testid="stElementContainer"]:has(h1, h2, h3, h4),
  [data-testid="stElementContainer"]:has(+ * [data-testid="stPlotlyChart"]) {break-after: avoid;}
  .st-key-tour, .st-key-copy-link, [class*="st-key-bring"], [class*="-compare-with"],
  [data-testid="stButton"], [data-testid="stDownloadButton"], [data-testid="stPopover"],
  [data-testid="stTextInput"], [data-testid="stElementContainer"]:has([data-testid="stDataFrame"]) {
    display: none;
  }
  .js-plotly-plot, .js-plotly-plot > .plot-container {
    width: 100% !important; height: auto !important;
  }
  .js-plotly-plot .svg-container {
    width: min(100%, var(--wide)) !important; height: auto !important;
    aspect-ratio: var(--shape); margin: 0 auto !important;
  }
  .js-plotly-plot .svg-container > .main-svg {width: 100% !important; height: auto !important;}
}
</style>
"""
ROUTER = Path(__file__).parents[3] / "app.py"
CHART = CONFIG
"""Of Plotly's toolbar only the button that saves the picture, shown under the pointer."""


def hide_menu() -> None:
    """Hide the menu if the link says so, as in `?hide=menu`; the views hide their own parts."""
    if "menu" in st.query_params.get("hide", "").split(","):
        st.html('<style>header, [data-testid="stHeader"] {display: none !important;}</style>')


def begin(question: str, answer: str = "") -> None:
    """Show the page's question as its title, and a sentence, unless a view shows its own."""
    if "routed" not in st.session_state:
        # Until the router has run once, Streamlit itself serves the folder pages: a link to a page
        # as the first request would come without the menu.
        runpy.run_path(str(ROUTER), run_name="__main__")
        st.stop()
    last = st.session_state.get("page")
    if last != question:
        st.session_state[VISIT] = st.session_state.get(VISIT, 0) + 1
    run_callbacks()
    st.session_state["arrived"] = last != question
    if last != question:
        # Before the page is noted: another request may end this run at any time.
        reports = (
            f"{view}-{one}" for view in ("explore", "compare") for one in ("report", "before")
        )
        for key in ("followed", "notices", *reports):  # of another link
            st.session_state.pop(key, None)
    st.session_state["page"] = question
    if last not in (None, question):
        # What the last page wrote late may stand in the address: send the one that counts.
        st.query_params.from_dict(st.query_params.to_dict())
    st.html(f"{STYLE}<style>{FORCED}</style>")
    st.title(question, anchor=False)
    if answer:
        st.markdown(answer)
    open_notices()


def panel(title: str, note: str = "") -> None:
    """A centred heading over a picture, with a line for a note, so that neighbours are aligned."""
    note = escape(note) or "&nbsp;"
    st.html(f'<div class="panel">{escape(title)}<br><small>{note}</small></div>')
