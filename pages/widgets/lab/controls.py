"""The lab's controls: each has a sentence and a place in the page's link.

A link holds what differs from the page's defaults. What a link asks for that cannot be is named.
What a control was set to is remembered while it is not on the page, as another layer is chosen.
"""

import math
from collections.abc import Callable, Mapping

import streamlit as st

from pages.widgets.common.link import in_link, name_wrong

MEMORY = "lab"


class Controls:
    """Widgets whose values are URL parameters under their keys.

    Every method shows one control with its caption and returns its value. `write_link` comes
    last: then the URL names the choices on the page and nothing else.
    """

    def __init__(self):
        self.memory = st.session_state.setdefault(MEMORY, {})
        self.link: dict[str, str] = {}
        self.forgotten: set[str] = set()

    def value(self, key: str, label: str, default, read: Callable, expected: str):
        """What the control starts with: its own state, else the link, else memory, else default."""
        asked = in_link(key)
        if key in self.forgotten:
            return default
        if key in st.session_state:
            return st.session_state[key]
        if asked is not None:
            try:
                return read(asked)
            except ValueError:
                name_wrong(label, asked, expected, _shown(default))
                return default
        return self.memory.get(key, default)

    def forget(self, *keys: str) -> None:
        """Let these start from their defaults, whatever they were."""
        self.forgotten.update(keys)

    def keep(self, key: str, value, default) -> None:
        self.memory[key] = value
        if value != default:
            self.link[key] = f"{value:g}" if isinstance(value, float) else str(value)

    def write_link(self) -> None:
        if self.link != st.query_params.to_dict():
            st.query_params.from_dict(self.link)

    def tabs(self, key: str, label: str, options: Mapping[str, str]) -> list:
        """Tabs, of which the open one is computed and the others are not."""
        default = next(iter(options))
        names = {name: option for option, name in options.items()}
        start = self.value(key, label, options[default], _reader(options), _one_of(options))
        start = options.get(start, start)
        tabs = st.tabs(list(names), default=start, key=key, on_change="rerun")
        value = next((name for name, tab in zip(options, tabs, strict=True) if tab.open), default)
        self.keep(key, value, default)
        return tabs

    def choice(
        self, key: str, label: str, options: Mapping[str, str], default: str, caption: str = ""
    ) -> str:
        start = self.value(key, label, default, _reader(options), _one_of(options))
        st.session_state[key] = start if start in options else default
        value = st.selectbox(label, list(options), format_func=options.get, key=key)
        _caption(caption)
        self.keep(key, value, default)
        return value

    def whole(
        self, key: str, label: str, low: int, high: int, default: int, caption: str = "",
        slide: bool = False,
    ) -> int:  # fmt: skip
        def read(text: str) -> int:
            if not low <= int(text) <= high:
                raise ValueError
            return int(text)

        default = min(max(default, low), high)
        start = self.value(key, label, default, read, f"a whole number from {low} to {high}")
        value = min(max(start, low), high)
        if low == high:  # a slider needs somewhere to go
            st.session_state.pop(key, None)
            return value
        st.session_state[key] = value
        value = (st.slider if slide else st.number_input)(label, low, high, key=key, step=1)
        _caption(caption)
        self.keep(key, value, default)
        return value

    def number(
        self, key: str, label: str, low: float, high: float, default: float, step: float,
        caption: str = "",
    ) -> float:  # fmt: skip
        def read(text: str) -> float:
            value = float(text)
            if not math.isfinite(value) or not low <= value <= high:
                raise ValueError
            return value

        default = round(low + round((min(max(default, low), high) - low) / step) * step, 6)
        start = self.value(
            key, label, default, read, f"a number from {_shown(low)} to {_shown(high)}"
        )
        st.session_state[key] = min(max(float(start), low), high)
        value = st.slider(label, low, high, key=key, step=step, format="%.2f")
        value = round(value, 6)  # the browser counts steps in binary fractions
        _caption(caption)
        self.keep(key, value, default)
        return value

    def scale(
        self, key: str, label: str, options: list[float], default: float, caption: str = ""
    ) -> float:
        """A slider over uneven steps."""
        low, high = options[0], options[-1]

        def read(text: str) -> float:
            value = float(text)
            if not low <= value <= high:
                raise ValueError
            return min(options, key=lambda option: abs(option - value))

        start = self.value(
            key, label, default, read, f"a number from {_shown(low)} to {_shown(high)}"
        )
        st.session_state[key] = start if start in options else default
        value = st.select_slider(label, options, key=key, format_func=_shown)
        _caption(caption)
        self.keep(key, value, default)
        return value

    def flag(self, key: str, label: str, caption: str = "") -> bool:
        def read(text: str) -> bool:
            if text not in ("True", "False"):
                raise ValueError
            return text == "True"

        st.session_state[key] = self.value(key, label, False, read, "True or False")
        value = st.toggle(label, key=key)
        _caption(caption)
        self.keep(key, value, False)
        return value

    def text(
        self, key: str, label: str, default: str, read: Callable, expected: str, caption: str = ""
    ) -> str:
        """A line of text. A link's is refused here; a typed one is the page's to judge."""

        def checked(asked: str) -> str:
            read(asked)
            return asked

        start = self.value(key, label, default, checked, expected)
        st.session_state[key] = start
        value = st.text_input(label, key=key, max_chars=1000)
        _caption(caption)
        self.keep(key, value, default)
        return value


def _reader(options: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in options:
            raise ValueError
        return text

    return read


def _one_of(options: Mapping[str, str]) -> str:
    return f"one of {', '.join(options)}"


def _caption(text: str) -> None:
    if text:
        st.caption(text)


def _shown(value) -> str:
    return f"{value:,g}".replace("-", "−") if isinstance(value, float) else str(value)
