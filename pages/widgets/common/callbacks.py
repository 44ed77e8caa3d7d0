"""What widgets do when the visitor uses them, done to the end.

A request of the browser ends the run before it, wherever that run uses `st.session_state` or draws,
and so within a callback, too: Streamlit then does not call it again. A callback of these pages
therefore only notes an action, and the page does it first of all. An action that a request ends is
done again from its beginning by the run for that request.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

NOTED = "noted-actions"
PRESSED = "pressed-button"
VISIT = "visit"
"""In the session: the number of pages that were opened so far."""


@dataclass(frozen=True)
class Action:
    """What is to be done, and the visit to a page that it belongs to, None for any."""

    do: Callable[[], object]
    visit: int | None


def callback(action: Callable[..., object], *args, anywhere: bool = False) -> Callable[[], None]:
    """A callback for a widget: the page does `action(*args)`, as of its next run.

    Args:
        action: is safe to begin again wherever it uses `st.session_state` or `st.query_params`.
            What is not, such as to start a training, comes before that: the action then returns
            what is left to do as another one.
        anywhere: whether it is done even if the visitor opens another page, which does not have the
            state of the widgets.
    """
    noted = st.session_state.setdefault(NOTED, deque())
    own = Action(lambda: action(*args), None if anywhere else st.session_state.get(VISIT, 0))
    return lambda: noted.append(own)  # without Streamlit's state, so that it is not ended


def run_callbacks() -> None:
    """Do what the callbacks noted: first of all in a page, and in a fragment with such widgets."""
    noted, visit = st.session_state.get(NOTED), st.session_state.get(VISIT, 0)
    while noted:
        action = noted[0]
        rest = None
        try:
            if action.visit in (None, visit):
                rest = action.do()
        except Exception:
            noted.popleft()  # begun again, it would fail again
            raise
        if callable(rest):
            noted[0] = Action(rest, action.visit)
        else:
            noted.popleft()


def pressed(place, label: str, key: str, **options) -> bool:
    """Draw the button of a form; returns whether it was pressed since the page last came to an end.

    Streamlit's own button is forgotten if a request ends the run before it comes to the button. An
    action that was noted before the form is read would not know what the visitor typed last.
    """
    press = callback(st.session_state.__setitem__, PRESSED, key)
    place.button(label, key=key, on_click=press, **options)
    return st.session_state.get(PRESSED) == key


def forget_press() -> None:
    """At the end of a page with such buttons, and first of all in the action of one."""
    st.session_state.pop(PRESSED, None)
