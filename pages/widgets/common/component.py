"""Components of the pages: their HTML, CSS and JavaScript are files."""

import math
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from densembed.web.modules import FOLDER, FORCED

FOLDERS = {"densembed": FOLDER, "pages": Path(__file__).parents[1]}
"""The folders of files by the first part of the names under which modules import them."""


def component(name: str, *styles: str, isolate_styles: bool = True) -> Callable:
    """A component of Streamlit: the default export of a module, with its HTML and CSS.

    The module is part of the script that `shell.routes` serve.

    Args:
        name: of the module without suffix, as `densembed/panels/pair`. Files of this name with the
            suffixes .html and .css are used where they exist.
        styles: names of CSS files that come before its own.
        isolate_styles: whether it is in a shadow root.
    """

    def read(name: str) -> str:
        first, _, rest = name.partition("/")
        file = FOLDERS[first] / rest
        return file.read_text("utf-8") if file.exists() else ""

    draw = st.components.v2.component(
        name.rpartition("/")[2],
        html=read(f"{name}.html") or None,
        css="".join(map(read, (*styles, f"{name}.css"))) + FORCED,
        # In two lines: Streamlit takes one line with a slash for a path.
        js=f'import {{ modules }} from "densembed";\nexport default modules["{name}.js"].default;',
        isolate_styles=isolate_styles,
    )

    def show(*, data=None, **options):
        return draw(data=as_json(data), **options)

    return show


def last_message(key: str, state: str):
    """The value of a component's last message, in the callback of the state that it sets.

    The next data of the component hold its number, `order(key)`: see messages.js.
    """
    message = st.session_state[key][state]
    st.session_state[f"{key}-order"] = message["order"]
    return message["value"]


def order(key: str) -> int:
    """The number of the component's last message that was read, and 0 without one."""
    return st.session_state.get(f"{key}-order", 0)


def as_json(value):
    """Data for a component, with null for numbers that JSON cannot represent."""
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
