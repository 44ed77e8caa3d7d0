"""A pad to draw a signal on: one column per pixel, from 0 at the bottom to 1 at the top."""

from pages.widgets.common.component import component, order

_pad = component("pages/lab/pad")


def pad(values: list[float], key: str, on_draw) -> None:
    """The pad with `values`. `on_draw()` is called at the end of a stroke, with the new values in
    its message `drawn`."""
    _pad(data={"values": values, "order": order(key)}, key=key, on_drawn_change=on_draw)
