"""What a visitor can take away from Compare."""

import csv
import io

import streamlit as st
from torch import Tensor

from densembed import export
from densembed.comparison import facts
from densembed.data.compact import to_png
from densembed.fields import View
from pages.widgets.models import file_of
from pages.widgets.sides import Side

TAKE = "Take it away"


def take_compared(
    sides: list[Side], indices: list[int], pixels: Tensor, seen: dict[str, View]
) -> None:
    """The fields' numbers, the table of recipes, the models, the input, a program."""
    fields, steps, x, y = {}, {}, seen["first"].x, seen["first"].y
    for side, index in zip(sides, indices, strict=True):
        if side.name in seen:
            fields[side.name] = seen[side.name].fields[index]
            steps[side.name] = side.checkpoint.steps[index]
    binary = "application/octet-stream"
    files = [
        ("Numbers, CSV", "compared.csv", "text/csv", lambda: export.cells(x, y, fields)),
        (
            "Numbers, NPZ", "compared.npz", binary,
            lambda: export.compared_npz(pixels, x, y, fields, steps),
        ),
        ("Recipes, CSV", "recipes.csv", "text/csv", lambda: _recipes(sides)),
        ("Input, PNG", "input.png", "image/png", lambda: to_png(pixels)),
    ]  # fmt: skip
    keys = {side.name: st.session_state[side.name] for side in sides}
    for name, key in keys.items():
        file_name = f"{name}-{key}.safetensors"
        files.append((f"{name.capitalize()} model", file_name, binary, file_of(key)))
    with st.container(horizontal=True):
        for label, file_name, mime, data in files:
            st.download_button(label, data, file_name, mime, on_click="ignore", key=f"take-{label}")
    st.caption(
        "The numbers are per square pixel at the cells' centres, in pixels from the upper left "
        "corner, summed over each model's densities. Any picture on this page can be saved as SVG: "
        "the camera at its upper right. With the models' files beside it, this program makes the "
        "same numbers and differences:"
    )
    named = {name: f"{name}-{keys[name]}.safetensors" for name in fields}
    st.code(export.compared_snippet(named, pixels, steps), wrap_lines=True)


def _recipes(sides: list[Side]) -> str:
    file = io.StringIO()
    found = [facts(side.checkpoint) for side in sides]
    rows = [[name, *(of[name] for of in found)] for name in found[0]]
    csv.writer(file).writerows([["", *(side.name for side in sides)], *rows])
    return file.getvalue()
