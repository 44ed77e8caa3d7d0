"""What widgets do when the visitor uses them, done to the end.

A request of the browser ends the run before it, wherever that run uses `st.session_state` or draws,
and so within a callback, too: Streamlit then does not call it again. A callback of these pages
therefore only notes an action, and the page does it first of all. An action that a request ends is
done again from its beginning by the run for that request.
"""

from collections import deque
from collections.abc import Callable

import streamlit as st

NOTED = "noted-actions"


def callback(action: Callable[..., object], *args) -> Callable[[], None]:
    """A callback for a widget: the page does `action(*args)`, as of its next run.

    The action must be safe to begin again wherever it uses `st.session_state` or `st.query_params`.
    What is not, such as to start a training, comes before that: the action then returns what is
    left to do as another one, which takes its place.
    """
    noted = st.session_state.setdefault(NOTED, deque())
    return lambda: noted.append((action, args))  # without Streamlit's state, so it is not ended


def run_callbacks() -> None:
    """Do what the callbacks noted: first of all in a page, and in a fragment with such widgets."""
    noted = st.session_state.get(NOTED)
    while noted:
        action, args = noted[0]
        try:
            rest = action(*args)
        except Exception:
            noted.popleft()  # begun again, it would fail again
            raise
        if callable(rest):
            noted[0] = (rest, ())
        else:
            noted.popleft()
