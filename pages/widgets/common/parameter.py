"""State in a page's link: a `Parameter` draws its widget, and reads, checks and writes its value.

Values in a link are slugs such as `overlay`, so that the text of a button can change. Streamlit's
`bind="query-params"` is not used: it writes the text of a button, drops an invalid value without a
message, and loses a parameter that two pages share when the browser goes back. The parameters of
Explore and Compare are in `densembed/web/app/parameters.js` and the files that it names.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from densembed.markup import for_markdown as plain
from densembed.text import ascii_minus
from pages.widgets.common.link import in_link, name_wrong, notice, quoted

FEW = 10


class Options(ABC):
    """The values of a parameter; `str` says what a link may contain."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value that a link's text stands for. Raises ValueError for an invalid text."""

    def write(self, value: Any) -> str:
        """The text of a value in a link."""
        return value

    def fit(self, value: Any) -> Any:
        """A value of an earlier run, if it is still valid, or the nearest one; else None."""
        return value

    def arguments(self) -> tuple[tuple, dict]:
        """Arguments of the widget after its label."""
        return (), {}

    def text(self, value: Any) -> str:
        """The value as the page shows it."""
        return value


class Slugs(Options):
    """One of several slugs, each with the text of its button.

    Args:
        options: text by slug, or slugs that are their own text.
        old: slug by a value of older links that are still accepted.
    """

    def __init__(
        self, options: Mapping[str, str] | Iterable[str], old: Mapping[str, str] | None = None
    ):
        self.texts = options if isinstance(options, Mapping) else {each: each for each in options}
        self.old = old or {}

    def read(self, text: str) -> str:
        slug = text if text in self.texts else self.old.get(text, text)
        if slug not in self.texts:
            raise ValueError
        return slug

    def fit(self, value: str) -> str | None:
        return value if value in self.texts else None

    def arguments(self) -> tuple[tuple, dict]:
        return (list(self.texts),), {"format_func": self.text}

    def text(self, slug: str | None) -> str:
        return "none of them" if slug is None else self.texts.get(slug, slug)

    def __str__(self) -> str:
        return f"one of {plain(', '.join(self.texts))}" if 0 < len(self.texts) <= FEW else ""


class Numbers(Options):
    """Numbers from `low` to `high`; whole numbers if the bounds are."""

    def __init__(self, low: float, high: float):
        self.low, self.high, self.kind = low, high, type(low)

    def read(self, text: str) -> float:
        value = self.kind(ascii_minus(text))
        if "_" in text or not self.low <= value <= self.high:
            raise ValueError
        return value

    def write(self, value: float) -> str:
        return f"{value:.10g}"

    def fit(self, value: float) -> float:
        return self.kind(min(max(value, self.low), self.high))

    def arguments(self) -> tuple[tuple, dict]:
        return (self.low, self.high), {}

    def text(self, value: float) -> str:
        return f"{value:,g}".replace("-", "−")

    def __str__(self) -> str:
        form = ",d" if self.kind is int else ",g"
        low, high = (f"{end:{form}}".replace("-", "−") for end in (self.low, self.high))
        if low == high:
            return low
        return f"a {'whole ' if self.kind is int else ''}number from {low} to {high}"


class OneOf(Numbers):
    """Some numbers in ascending order.

    Args:
        nearest: whether another number within their range stands for the nearest one.
    """

    def __init__(self, numbers: Collection[float], nearest: bool = False):
        self.numbers, self.nearest = list(numbers), nearest
        super().__init__(self.numbers[0], self.numbers[-1])

    def read(self, text: str) -> float:
        value = float(ascii_minus(text))
        if "_" in text or not (self.nearest or value in self.numbers):
            raise ValueError
        if not self.low <= value <= self.high:
            raise ValueError
        return min(self.numbers, key=lambda number: abs(number - value))

    def fit(self, value: float) -> float | None:
        return value if value in self.numbers else None

    def arguments(self) -> tuple[tuple, dict]:
        return (self.numbers,), {"format_func": self.text}

    def __str__(self) -> str:
        return super().__str__() if self.nearest else ""


class Flag(Options):
    """True or false."""

    def read(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"

    def write(self, value: bool) -> str:
        return str(value).lower()

    def text(self, value: bool) -> str:
        return "on" if value else "off"

    def __str__(self) -> str:
        return "true or false"


class Text(Options):
    """A line of text. An invalid one is refused in a link; the page judges one that is typed.

    Args:
        check: raises ValueError for an invalid text.
        expected: what the text should be.
    """

    def __init__(self, check: Callable[[str], object], expected: str):
        self.check, self.expected = check, expected

    def read(self, text: str) -> str:
        self.check(text)
        return text

    def __str__(self) -> str:
        return self.expected

    def wrong(self, text: str) -> str:
        """What the text should be, and why it is not."""
        try:
            self.check(text)
        except ValueError as error:
            reason = str(error).rstrip(".")
            return f"{self.expected}: {plain(reason[:1].lower() + reason[1:])}"
        return self.expected


@dataclass(frozen=True)
class Parameter:
    """A value in the page's link under `key`, and the state of the widget with that key.

    The default stands for a link without the parameter.

    Args:
        label: the name of the widget.
        options: its values.
        default: its value without the link.
        expected: what a link may contain, after "which is not", instead of the options' own text.
        instead: what the page shows without the link, after "Showing", instead of the default.
    """

    key: str
    label: str
    options: Options
    default: Any = None
    expected: str = ""
    instead: str = ""

    def linked(self) -> Any:
        """The value in the link; None without a valid one."""
        text = in_link(self.key)
        try:
            return None if text is None else self.options.read(text)
        except ValueError:
            return None

    def check(self) -> None:
        """Report an invalid value in the link, and remove it, unless the session has a value.

        A number for which the nearest one stands is reported, too.
        """
        text = in_link(self.key)
        if text is None or self.key in st.session_state:
            return
        if (linked := self.linked()) is not None:
            if isinstance(self.options, OneOf) and linked != float(ascii_minus(text)):
                notice(
                    f"The link sets “{self.label}” to {quoted(text)}, which it cannot have. "
                    f"Showing the nearest, {self.options.text(linked)}."
                )
            return
        del st.query_params[self.key]
        expected = self.expected or str(self.options)
        if isinstance(self.options, Text):
            expected = self.options.wrong(text)
        name_wrong(self.label, text, expected, self.instead or self.options.text(self.default))

    def value(self) -> Any:
        """The value in the session, else in the link, else the default."""
        state = st.session_state
        if self.key in state and not turned_back():
            value = state[self.key]
            fitted = None if value is None else self.options.fit(value)
            if value is None or fitted is not None:
                return fitted
        linked = self.linked()
        return self.default if linked is None else linked

    def draw(self, widget: Callable, *, text: str = "", caption: str = "", **kwargs) -> Any:
        """Draw the widget and its caption; returns its value, which is also written to the link.

        Args:
            text: label of the widget, if it says more than `label`.
        """
        self.check()
        value = self.value()
        positional, named = self.options.arguments()
        if isinstance(self.options, Numbers) and self.options.low == self.options.high:
            st.session_state.pop(self.key, None)  # a slider needs two values
            self.drop()
            return self.options.low
        state = st.session_state
        # On another page the browser has not met the widget and would show its default.
        if state["arrived"] or self.key not in state or state[self.key] != value:
            state[self.key] = value
        value = widget(text or self.label, *positional, key=self.key, **named, **kwargs)
        if isinstance(value, float):
            value = round(value, 6)  # the browser counts steps in binary fractions
        if caption:
            st.caption(caption)
        self.write(value)
        return value

    def write(self, value: Any) -> None:
        """Write the value to the link."""
        in_link(self.key)
        if value in (None, self.default):
            st.query_params.pop(self.key, None)
            return
        st.query_params[self.key] = self.options.write(value)

    def drop(self) -> None:
        """Check the value in the link, and remove it: the widget is not on the page now."""
        self.check()
        st.query_params.pop(self.key, None)


def turned_back() -> bool:
    """Whether the browser's Back or Forward caused this run: then the link alone counts."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
