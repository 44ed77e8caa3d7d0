"""A pad to draw a digit on with a mouse or a finger, with undo and clear."""

import base64

import streamlit as st

from pages.widgets.common.component import component

MAX_URL = 5 * 2**20
PREFIX = "data:image/png;base64,"
_pad = component("densembed/panels/draw_pad")


def pad(image: str, base: str | None) -> None:
    """The pad with the current drawing; `drawn` returns the drawing.

    Args:
        image: the model's input that results from the drawing, as a data URL.
        base: a picture under the strokes, which can be undone, as a data URL.
    """

    def keep() -> None:
        drawing = st.session_state["pad"].drawing
        st.session_state["drawing"] = drawing
        if not drawing["base"]:
            st.session_state.pop("linked", None)

    strokes = (st.session_state.get("drawing") or {}).get("strokes", [])
    _pad(
        data={"input": image, "base": base, "strokes": strokes}, key="pad",
        on_drawing_change=keep,
    )  # fmt: skip


def drawn() -> bytes | None:
    """The drawing as PNG, untrusted like any upload; None if nothing was drawn."""
    drawing = st.session_state.get("drawing")
    url = drawing.get("png") if isinstance(drawing, dict) else None
    if not isinstance(url, str) or not url.startswith(PREFIX) or len(url) > MAX_URL:
        return None
    try:
        return base64.b64decode(url[len(PREFIX) :], validate=True)
    except ValueError:
        return None
