"""Files to download, and the link of the page."""

from collections.abc import Callable, Mapping
from functools import partial
from math import prod

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.data import as_input
from densembed.data.codec import to_png
from densembed.data.grids import read_grid
from densembed.data.transform import scaled_images
from densembed.fields.field import finite, network_for
from densembed.fields.measures import class_weights, weighted_field
from densembed.figures import export
from densembed.figures.film import film
from densembed.figures.printed import DPI, KINDS, SIZES, WIDTHS
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import view_page
from pages.widgets.common.cache import response_of
from pages.widgets.common.component import component
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.inputs.checkpoints import file_of

PRINTED = Parameter(
    "printed",
    "Figure for print",
    Slugs(
        {name.replace(" ", "-"): name for name in WIDTHS}, {w: w.replace(" ", "-") for w in WIDTHS}
    ),
    "two-columns",
)
MIMES = ("image/svg+xml", "application/pdf", "image/png")
MOST_PIXELS = 2**16
"""Of a grid that a link names: the fields of all steps are computed on it."""
_copy = component("pages/common/copy_link")


def copy_link() -> None:
    """A button that copies the page's address, which holds the view."""
    with st.container(key="copy-link", width=110):
        _copy(key="copy")


def pick_columns() -> str:
    """A widget for the width of a figure for print."""
    slug = PRINTED.draw(
        st.segmented_control,
        required=True,
        help=f"{_either(WIDTHS)} mm wide, with text of at least {_either(SIZES)} points, so the "
        f"figure needs no scaling. Text in SVG and PDF can be edited; PNG has {DPI} pixels per "
        "inch.",
    )
    return slug.replace("-", " ")


def _either(numbers: dict[str, float]) -> str:
    return " or ".join(f"{number:g}" for number in numbers.values())


def printed(stem: str, columns: str, page: Callable[[str], bytes]) -> list[tuple]:
    """Files of a figure for print; `page` draws one of a kind among `KINDS`.

    Args:
        columns: the width, a key of `WIDTHS`; it is part of the file names.
    """
    stem = f"{stem}-{columns.replace(' ', '-')}"
    return [
        (f"Figure, {kind}", f"{stem}.{kind.lower()}", mime, partial(page, kind))
        for kind, mime in zip(KINDS, MIMES, strict=True)
    ]


def _class_field(checkpoint: Checkpoint, pixels: Tensor, label: int, index: int) -> np.ndarray:
    """Σ_i w_ci φ_i of one snapshot."""
    model = network_for(checkpoint, pixels, index)
    return finite(weighted_field(model, as_input(pixels[None]), class_weights(model)[label]))


def grid_of(parameters: Mapping[str, str]) -> tuple[int, int] | None:
    """Height and width of the grid of a view; None for that of the data."""
    try:
        sizes = read_grid(parameters["grid"])
    except (KeyError, ValueError):
        return None
    return sizes if prod(sizes) <= MOST_PIXELS else None


def export_explored(
    name: str,
    checkpoint: Checkpoint,
    pixels: Tensor,
    parameters: Mapping[str, str],
    titles: Mapping[str, str],
) -> None:
    """Buttons to download the numbers and figures of the view, the model, the input; a program.

    Args:
        name: the key of the checkpoint.
        titles: of checkpoints by their keys, in the list of models.
        pixels: the input on the grid of the data.
        parameters: of the view's link.
    """
    scaling = checkpoint.header.scaling
    grid = None if scaling else grid_of(parameters)
    shown = scaled_images(pixels, grid) if grid else pixels
    response = response_of(checkpoint, shown)
    step = parameters.get("step", "")
    index = response.steps.index(int(step)) if step in map(str, response.steps) else -1
    columns = pick_columns()
    stem = f"{name}-step-{response.steps[index]}"
    title = export.title_of(checkpoint)

    def more() -> dict:
        if parameters.get("show") != "class":
            return {}
        classes, label = checkpoint.header.classes, parameters.get("for")
        of = classes.index(label) if label in classes else response.probabilities[-1].argmax()
        ends = (("before", 0), ("after", index))
        return {f"class_weight_{when}": _class_field(checkpoint, shown, of, k) for when, k in ends}

    def page(kind: str) -> bytes:
        return export.printed(checkpoint, shown, response, index, kind, columns)

    only_images = (
        ("Animation, GIF", f"{name}.gif", "image/gif", lambda: film(response, "GIF", title)),
        ("Animation, WebP", f"{name}.webp", "image/webp", lambda: film(response, "WEBP", title)),
        ("Input, PNG", "input.png", "image/png", lambda: to_png(shown)),
    )
    only_signals = (
        ("Input, CSV", "input.csv", "text/csv", lambda: export.signal_csv(shown, scaling)),
    )
    web = (
        "Page, HTML",
        f"{stem}.html",
        "text/html",
        lambda: view_page({name: checkpoint}, pixels, parameters, titles=titles),
    )
    files = (
        ("Numbers, CSV", f"{stem}.csv", "text/csv", lambda: export.csv(response, index, **more())),
        (
            "Numbers, NPZ",
            f"{stem}.npz",
            "application/octet-stream",
            lambda: export.npz(shown, response, index, **more()),
        ),
        web,
        *printed(stem, columns, page),
        *(only_signals if scaling else only_images),
        (
            "Model",
            f"{name}.safetensors",
            "application/octet-stream",
            file_of(name),
        ),
    )
    with st.container(horizontal=True):
        for label, file_name, mime, data in files:
            st.download_button(label, data, file_name, mime, on_click="ignore", key=f"take-{label}")
    file_name, step = f"{name}.safetensors", response.steps[index]
    if scaling:
        st.caption(
            "The numbers are densities per sample at the centres of the cells, whose places t are "
            "in samples. The figures for print show the signal, and the field before training and "
            "at the step of the slider. The page is this view with all its controls, and works "
            "without a server. To save a curve as it is shown, as SVG or PNG, use the "
            "buttons at its upper right. This program computes the same numbers if the files of "
            "the model and the input are in its folder:"
        )
        st.code(export.signal_snippet(file_name, step), wrap_lines=True)
        return
    if "channel" in parameters and len(response.fields[0]) > 1:
        st.caption(
            "The CSV file, the figures for print and the animations contain the sum over all "
            "channels, not only the one shown above. The NPZ file contains each channel."
        )
    st.caption(
        "The numbers are densities per square pixel at the centres of the cells, whose coordinates "
        "are in pixels from the upper left corner. The figures for print show the field before "
        "training and at the step of the slider; the animations contain every saved step. The page "
        "is this view with all its controls, and works without a server. To save a field as it is "
        "shown, as SVG or PNG, use the buttons at its upper right. This program computes the same "
        "numbers if the file of the model is in its folder:"
    )
    st.code(export.snippet(file_name, pixels, step, grid), wrap_lines=True)
