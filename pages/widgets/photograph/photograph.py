"""The uploaded photograph: the frame that was read, and every digit in it to choose from."""

import base64
import io
from hashlib import sha256

import numpy as np
import streamlit as st
from PIL import Image

from densembed.data import as_input
from densembed.data.content import Polarity
from densembed.data.decode import decode
from densembed.data.photograph import DigitInput, Photograph, read_photograph
from densembed.fields.field import logits
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.data import as_url
from pages.widgets.common.callbacks import callback
from pages.widgets.common.component import component, last_message, order

PREVIEW = 900
"""Longer side of the picture that the browser gets."""
NO_WISH: dict = {"frame": None, "turns": 0, "inverted": False, "digit": 0}
_component = component("pages/photograph/photograph")


def show_photograph(data: bytes, checkpoint: Checkpoint) -> tuple[DigitInput | None, Photograph]:
    """The photograph with what was found in it; returns the chosen digit and the photograph.

    Raises ImageError if the file cannot be decoded.
    """
    name = sha256(data).hexdigest()
    if st.session_state.get("photograph-of") != name:
        st.session_state["photograph-of"] = name
        st.session_state["photograph-wish"] = dict(NO_WISH)
    wish = st.session_state["photograph-wish"]
    size = checkpoint.header.input_shape[1:]
    asked = (name, size, str({**wish, "digit": 0}))
    if st.session_state.get("photograph-read", (None,))[0] != asked:
        st.session_state["photograph-read"] = (asked, *_read(data, wish, size))
    _, photograph, preview = st.session_state["photograph-read"]
    digits = []
    for digit in photograph.digits:
        best = int(logits(checkpoint.network(), as_input(digit.pixels[None]))[0].argmax())
        label = checkpoint.header.classes[best]
        digits.append({"box": digit.box, "label": label, "url": as_url(digit.pixels)})
    _component(
        data={
            "url": preview,
            "digits": digits,
            "frame": photograph.frame,
            "polarity": str(photograph.polarity),
            "paper": _css(photograph.paper),
            "ink": _css(photograph.ink),
            "wish": wish,
            "order": order("photograph"),
        },
        key="photograph",
        on_wish_change=callback(_keep_wish),
    )
    if not photograph.digits:
        return None, photograph
    return photograph.digits[min(wish["digit"], len(photograph.digits) - 1)], photograph


def _read(data: bytes, wish: dict, size: tuple[int, int]) -> tuple[Photograph, str]:
    """The photograph as it is asked for, and the picture for the browser."""
    rgba = decode(data)
    photograph = read_photograph(rgba, size, frame=wish["frame"], quarter_turns=wish["turns"])
    if wish["inverted"]:
        photograph = read_photograph(
            rgba,
            size,
            frame=wish["frame"],
            quarter_turns=wish["turns"],
            light_on_dark=photograph.polarity != Polarity.LIGHT_ON_DARK,
        )
    shown = Image.fromarray(np.rint(255 * np.rot90(rgba, -wish["turns"])).astype(np.uint8))
    shown.thumbnail((PREVIEW, PREVIEW))
    file = io.BytesIO()
    shown.save(file, "WEBP", quality=80)
    return photograph, "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def _css(colour: tuple[float, float, float] | None) -> str | None:
    return colour and "#" + "".join(f"{round(255 * value):02x}" for value in colour)


def _keep_wish() -> None:
    """Keep what the visitor asked for. It comes from a browser, so it is checked."""
    wish = last_message("photograph", "wish")
    try:
        frame = wish["frame"] and tuple(min(1.0, max(0.0, float(edge))) for edge in wish["frame"])
        if frame and not (len(frame) == 4 and frame[0] < frame[2] and frame[1] < frame[3]):
            return
        st.session_state["photograph-wish"] = {
            "frame": frame or None,
            "turns": int(wish["turns"]) % 4,
            "inverted": bool(wish["inverted"]),
            "digit": max(0, int(wish["digit"])),
        }
    except (TypeError, ValueError, KeyError):
        return
