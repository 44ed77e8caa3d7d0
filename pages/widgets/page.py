"""How every page begins, and links that carry a view."""

import runpy
from collections.abc import Collection
from html import escape
from pathlib import Path

import streamlit as st

STYLE = """
<style>
[data-testid="stMainBlockContainer"] {max-width: 1340px; padding: 3.5rem 1rem 0.75rem;}
[data-testid="stMainBlockContainer"] h1 {font-size: 2rem; font-weight: 600; padding-bottom: 4px;}
:has(> .st-key-tour) {position: absolute; width: 0;}
.panel {text-align: center; font-weight: 600; margin: 0 0 -0.75rem 0;}
.panel small {font-weight: 400; opacity: 0.7;}
</style>
"""
ROUTER = Path(__file__).parents[2] / "app.py"
CHART = {
    "modeBarButtons": [["toImage"]],
    "displaylogo": False,
    "toImageButtonOptions": {"format": "svg", "filename": "densembed"},
}
"""Of Plotly's toolbar only what saves the picture, and that only under the pointer."""


HIDDEN = {
    "menu": 'header, [data-testid="stHeader"]',
    "sidebar": ".st-key-choices",
    "change": ".st-key-change",
    "ways": ".st-key-showing",
    "more": ".st-key-more, .st-key-open, .st-key-copy-link",
}
"""What a link may hide of Explore and of Compare, by CSS; and of what moves in the browser:"""
MOVING = ("predictions", "before", "numbers", "steps")


def hide(moving: Collection[str] = MOVING) -> list[str]:
    """Hide what the link says, `?hide=sidebar,predictions`, so that a class sees one thing.

    Args:
        moving: names of the parts of the page's moving figures.

    Returns those of them to leave out; an unknown name is named.
    """
    asked = {name.strip() for name in st.query_params.get("hide", "").split(",")} - {""}
    known = {*HIDDEN, *moving}
    for name in sorted(asked - known):
        st.warning(
            f"The link asks to hide “{name[:40]}”, which is not here; what can be hidden: "
            f"{', '.join(sorted(known))}."
        )
    if rules := ", ".join(HIDDEN[name] for name in HIDDEN if name in asked):
        st.html(f"<style>{rules} {{display: none !important;}}</style>")
    return [name for name in moving if name in asked]


def begin(question: str, answer: str) -> None:
    """The page's question as its title, and one sentence."""
    if "routed" not in st.session_state:
        # Until the router has run once in a server, Streamlit serves a folder called pages by
        # itself: a link to a page, as the first request, would come without the menu.
        runpy.run_path(str(ROUTER))
        st.stop()
    st.html(STYLE)
    st.title(question, anchor=False)
    st.markdown(answer)


def panel(title: str, note: str = "") -> None:
    """A centred heading over a picture, with a line for a note so that neighbours align."""
    note = escape(note) or "&nbsp;"
    st.html(f'<div class="panel">{escape(title)}<br><small>{note}</small></div>')


def name_wrong_link(key: str, options: Collection) -> None:
    """Say it when the URL parameter `key` asks for something that is not among the options.

    To be called before the widget of that key: Streamlit drops such a value without a word.
    """
    asked = st.query_params.get(key)
    if asked is not None and key not in st.session_state and asked not in map(str, options):
        st.warning(f"The link asks for the {key} “{asked[:40]}”, which is not here.")


def linked_select(label: str, options: dict[str, str], key: str, default: str, **kwargs) -> str:
    """A select box whose choice is the URL parameter `key`.

    `options` maps what stands in the link to what a person reads. A link to something that is
    not there (any more) is named, and the default shown.
    """
    wanted = st.query_params.get(key, default)
    if wanted not in options:
        if key not in st.session_state:
            st.warning(
                f"The link asks for “{wanted[:80]}”, which is not here. Showing another one."
            )
        wanted = default
    if st.session_state.get(key) not in options:
        st.session_state[key] = wanted
    choice = st.selectbox(
        label, list(options), format_func=options.get, key=key, persist_state="session", **kwargs
    )
    st.query_params[key] = choice
    return choice
