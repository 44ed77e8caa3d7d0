"""A page's link: invalid values and unknown parameters are reported, and removed from it.

A page adds a parameter with `Parameter` of `parameter.py`, Explore and Compare in `parametersOf` of
their JavaScript.
"""

import difflib

import streamlit as st

from densembed.markup import for_markdown as plain

LONGEST = 40
LINES = 4


def quoted(text: str) -> str:
    """A text of a visitor between quotation marks, shortened if it is long."""
    return f"“{plain(text if len(text) <= LONGEST else text[:LONGEST] + '…')}”"


def base_path() -> str:
    """The path below which the server has the pages: "", or for example "/fields"."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def open_notices() -> None:
    """Reserve the place for one message about everything that is wrong with the page's link."""
    kept = st.session_state.get("notices", {}).get("kept", [])
    st.session_state["notices"] = {"room": st.container(), "sentences": [], "kept": kept}
    for sentence in kept:
        notice(sentence)
    st.session_state["link"] = {"received": list(st.query_params), "read": set()}
    for key in st.query_params:
        first, *others = st.query_params.get_all(key)
        if others:
            st.query_params[key] = first
            notice(f"The link sets {quoted(key)} more than once: the first is used.")


def in_link(key: str, default: str | None = None) -> str | None:
    """The text of a parameter in the link; the page then counts as reading this parameter."""
    st.session_state["link"]["read"].add(key)
    return st.query_params.get(key, default)


def close_link() -> None:
    """Remove parameters that the page does not read; report them on the first page of a session.

    To be called at the end of the page. Later pages report nothing, because Streamlit carries
    parameters from one page to another.
    """
    received, read = st.session_state["link"]["received"], st.session_state["link"]["read"]
    for key in received:
        if key in read:
            continue
        st.query_params.pop(key, None)
        if "link-read" not in st.session_state:
            # The first letter is seldom mistyped, and “tour” should not suggest “fourth”.
            alike = sorted(name for name in read if name[0] == key[:1])
            near = difflib.get_close_matches(key, alike, 1)
            hint = f" Did you mean “{near[0]}”?" if near else ""
            notice(f"This view has no parameter {quoted(key)}.{hint}")
    st.session_state["link-read"] = True


def notice(sentence: str) -> None:
    """Add a sentence to the message about the link, at the place of `open_notices`."""
    notices = st.session_state["notices"]
    if sentence in notices["sentences"]:
        return  # kept
    if not notices["sentences"]:
        notices["place"] = notices["room"].empty()  # not before: even an empty place has a height
    notices["sentences"].append(sentence)
    lines, more = notices["sentences"], len(notices["sentences"]) - LINES
    if more > 0:
        lines = [*lines[: LINES - 1], f"{more + 1} more problems with this link."]
    notices["place"].warning("  \n".join(lines))


def keep_notices() -> None:
    """Show until the visitor leaves the page what is noticed when it is opened.

    A page with a view runs again as soon as the view has opened, which is no act of the visitor.
    """
    if st.session_state["arrived"]:
        notices = st.session_state["notices"]
        notices["kept"] = notices["sentences"]


def name_wrong(label: str, text: str, expected: str, instead: str) -> None:
    """Report a value in the link that a widget cannot have.

    Args:
        label: name of the widget.
        expected: what a link may contain, after "which is not"; empty for something not found.
        instead: what the page shows now, after "Showing".
    """
    reason = f"which is not {expected}" if expected else "which was not found"
    notice(f"The link sets “{label}” to {quoted(text)}, {reason}. Showing {plain(instead)}.")
