"""How every page begins, and links that carry a view."""

import streamlit as st

STYLE = """
<style>
[data-testid="stMainBlockContainer"] {max-width: 1240px; padding-top: 4.5rem;}
[data-testid="stMainBlockContainer"] h1 {font-size: 2rem; font-weight: 600; padding-bottom: 0;}
.panel {text-align: center; font-weight: 600; margin: 0 0 -0.75rem 0;}
.panel small {font-weight: 400; opacity: 0.7;}
/* On a phone: the input, the field after training, the opinion, and then the rest. */
@media (max-width: 640px) {
  .st-key-panels [data-testid="stHorizontalBlock"] > :nth-child(2) {order: 9;}
}
</style>
"""
CHART = {"displayModeBar": False}


def begin(question: str, answer: str) -> None:
    """The page's question as its title, and one sentence."""
    st.html(STYLE)
    st.title(question, anchor=False)
    st.markdown(answer)


def panel(title: str, note: str = "") -> None:
    """A centred heading over a picture, with a line for a note so that neighbours align."""
    st.html(f'<div class="panel">{title}<br><small>{note or "&nbsp;"}</small></div>')


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
    choice = st.selectbox(label, list(options), format_func=options.get, key=key, **kwargs)
    st.query_params[key] = choice
    return choice
