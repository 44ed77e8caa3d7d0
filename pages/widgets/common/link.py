"""A page's link: what it asks for that cannot be is named, and taken out of the address.

Who reads a parameter, by `in_link` or what builds on it, makes it known to the page.
Streamlit's `bind="query-params"` drops such a value without a word, and says nothing of one whose
widget is not on the page.
"""

import difflib
from collections.abc import Callable, Collection, Container, Iterable, Sequence

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from densembed.markup import for_markdown as plain

LONGEST = 40
FEW = 10
LINES = 4
FLAG = ("true", "false")


class Numbers(Container):
    """Numbers from `low` to `high` as a link writes them; whole ones where the bounds are."""

    def __init__(self, low: float, high: float):
        self.low, self.high, self.kind = low, high, type(low)

    def __contains__(self, text) -> bool:
        try:
            return "_" not in text and self.low <= self.kind(text) <= self.high
        except ValueError:
            return False

    def __str__(self) -> str:
        form = ",d" if self.kind is int else "g"
        bounds = f"{self.low:{form}} to {self.high:{form}}".replace("-", "−")
        return f"a {'whole ' if self.kind is int else ''}number from {bounds}"


class OneOf(Container):
    """Some numbers, however a link writes them: 17 is 17.0."""

    def __init__(self, numbers: Collection[float]):
        self.numbers = numbers

    def __contains__(self, text) -> bool:
        try:
            return "_" not in text and float(text) in self.numbers
        except ValueError:
            return False


def quoted(text: str) -> str:
    """A stranger's words between quotation marks, cut where they are long."""
    return f"“{plain(text if len(text) <= LONGEST else text[:LONGEST] + '…')}”"


def open_notices() -> None:
    """Make room, here, for what is wrong with the page's link: one message, however much it is."""
    st.session_state["notices"] = {"room": st.container(), "said": []}
    st.session_state["link"] = {"came": list(st.query_params), "known": set()}


def in_link(key: str, default: str | None = None) -> str | None:
    """What the link says of a parameter, which the page thereby knows."""
    st.session_state["link"]["known"].add(key)
    return st.query_params.get(key, default)


def close_link() -> None:
    """Take what no part of the page knew out of the address; name it, where a person wrote it.

    To be called when the page is complete. Later than the first page of a session it is nobody's
    mistake: Streamlit carries parameters from one page to another.
    """
    came, known = st.session_state["link"]["came"], st.session_state["link"]["known"]
    for key in came:
        if key in known:
            continue
        st.query_params.pop(key, None)
        if "link-read" not in st.session_state:
            # Slips are seldom in the first letter: “tour” is no “fourth”.
            alike = sorted(name for name in known if name[0] == key[:1])
            near = difflib.get_close_matches(key, alike, 1)
            hint = f"; did you mean “{near[0]}”?" if near else "."
            notice(f"This view of the page knows no {quoted(key)}{hint}")
    st.session_state["link-read"] = True


def notice(sentence: str) -> None:
    """Say something about the page's link, where `open_notices` made room."""
    notices = st.session_state["notices"]
    if not notices["said"]:
        notices["place"] = notices["room"].empty()  # not before: even an empty place has a height
    notices["said"].append(sentence)
    lines, more = notices["said"], len(notices["said"]) - LINES
    if more > 0:
        lines = [*lines[: LINES - 1], f"And {more + 1} more of the kind."]
    notices["place"].warning("  \n".join(lines))


def name_wrong(label: str, asked: str, expected: str, instead: str) -> None:
    """Say that a control cannot be what the link asks for.

    Args:
        label: the control's name as a person reads it.
        expected: what it can be, after "which is not".
        instead: what is shown now, after "Showing".
    """
    notice(
        f"In the link, “{label}” is {quoted(asked)}, which is not {expected}. "
        f"Showing {plain(instead)}."
    )


def check_link(
    key: str, label: str, options: Container, instead: object, expected: str | None = None
) -> None:
    """Name the URL parameter `key`, and take it away, where it is none of the options.

    To be called before the widget of that key, whether or not the widget is on the page now.

    Args:
        options: values, compared as the link writes them, or `Numbers`.
        instead: what the control shows without the link.
        expected: what it can be, in words; the options where there are few.
    """
    asked = in_link(key)
    if key in st.session_state or asked is None:
        return
    names = [str(option) for option in options] if isinstance(options, Iterable) else options
    if asked in names:
        return
    if expected is None:
        few = isinstance(names, list) and 0 < len(names) <= FEW
        expected = (
            f"one of {plain(', '.join(names))}" if few else "here" if names is not options
            else str(options)
        )  # fmt: skip
    del st.query_params[key]
    name_wrong(label, asked, expected, str(instead))


def linked_number(label: str, high: int, key: str, **kwargs) -> int:
    """A field for a whole number from 1 to `high` that is the URL parameter `key`.

    Not by `bind`: Streamlit takes "2.9" for 2, and an infinite number is an error.
    """
    check_link(key, label, Numbers(1, high), 1)
    linked = in_link(key, "1")
    if turned_back():
        wanted = int(linked) if linked in Numbers(1, high) else 1
    else:
        wanted = st.session_state.get(key) or int(linked)
    st.session_state[key] = min(max(wanted, 1), high)
    number = st.number_input(label, 1, high, key=key, persist_state="session", **kwargs)
    if number == 1:
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = str(number)
    return number


def carry(key: str) -> None:
    """Bring the value of a bound widget along from the page before.

    To be called before the widget. Streamlit keeps the value, by `persist_state`, but the browser,
    which has not met the widget on this page, would show its default and keep it out of the link.
    """
    if st.session_state["arrived"] and key in st.session_state:
        st.session_state[key] = st.session_state[key]


def turned_back() -> bool:
    """Whether the browser's Back or Forward asks for this run: the link alone then counts."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def linked_choice(
    widget: Callable, label: str, options: Sequence[str], key: str, default: str, **kwargs
) -> str:
    """Buttons, of which the chosen one is the URL parameter `key`; on several pages.

    Not by `bind`: of a link that Back returns to, Streamlit drops what is bound on both pages, and
    it would write a shown name, which may be escaped, to the link. Call `check_link` before.
    """
    if turned_back() or st.session_state.get(key) not in options:  # or of another model's data
        linked = in_link(key)
        st.session_state[key] = linked if linked in options else default
    carry(key)
    choice = widget(label, options, key=key, required=True, persist_state="session", **kwargs)
    choice = choice or default
    if choice == default:
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = choice
    return choice


def asked(key: str) -> str:
    """What the URL parameter `key` of a `linked_select` asks for: the last choice, or a new link's.

    A link from another page brings a word that no choice left in the address: it goes before what
    was chosen when this page was last open.
    """
    linked = in_link(key, "")
    if linked and linked != st.session_state.get(f"{key}-linked"):
        st.session_state.pop(key, None)
    return st.session_state.get(key, linked)


def linked_select(label: str, options: dict[str, str], key: str, default: str, **kwargs) -> str:
    """A select box whose choice is the URL parameter `key`.

    `options` maps what stands in the link to what a person reads. A link to something that is
    not there (any more) is named, and the default shown.
    """
    wanted = asked(key)
    check_link(key, label, options, options[default], "here")
    if st.session_state.get(key) not in options:
        st.session_state[key] = wanted if wanted in options else default
    choice = st.selectbox(
        label, list(options), format_func=options.get, key=key, persist_state="session", **kwargs
    )
    st.query_params[key] = st.session_state[f"{key}-linked"] = choice
    return choice
