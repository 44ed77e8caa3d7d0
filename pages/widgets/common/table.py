"""Tables, on the screen and on paper."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import streamlit as st


def data_table(
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """A table that scrolls on the screen. A plain one is printed, with all rows and columns.

    Args:
        rows: the cells by heading; all rows have the same headings.
        columns: configuration of columns by heading. Columns of links are not printed.
        options: of `st.dataframe`.
    """
    rows = list(rows)
    st.dataframe(rows, hide_index=True, column_config=columns, **options)
    links = {heading for heading, column in (columns or {}).items() if _is_link(column)}
    printed = [heading for heading in (rows[0] if rows else ()) if heading not in links]
    signed = {heading for heading, column in (columns or {}).items() if _is_signed(column)}
    lines = [
        "".join(
            f"<td>{escape(_text(row[heading], '+' if heading in signed else ''))}</td>"
            for heading in printed
        )
        for row in rows
    ]
    head = "".join(f"<th>{escape(heading)}</th>" for heading in printed)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    st.html(
        f'<div class="on-paper"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _is_link(column: Mapping[str, Any]) -> bool:
    return column["type_config"]["type"] == "link"


def _is_signed(column: Mapping[str, Any]) -> bool:
    return str(column["type_config"].get("format", "")).startswith("%+")


def _text(value: object, sign: str = "") -> str:
    """A cell as text; numbers have separators, or two decimals and `sign` if they are positive."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:{sign}.2f}".replace("-", "−") if isinstance(value, float) else str(value)
