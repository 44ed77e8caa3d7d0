"""Files to download from Compare."""

import csv
import io

import streamlit as st

from densembed.data.compact import to_png
from densembed.fields.agreement import facts
from densembed.figures import export
from densembed.figures.printed import sheet
from pages.widgets.common.cache import response_of
from pages.widgets.common.downloads import pick_columns, printed
from pages.widgets.compare.models import Column, Moment
from pages.widgets.inputs.checkpoints import file_of
from pages.widgets.inputs.choose import Input


def export_compared(sides: list[Column], moment: Moment, given: Input) -> None:
    """Buttons to download numbers and figures, the settings, the models, the input; a program."""
    pixels = given.pixels
    able = [(side, at) for side, at in zip(sides, moment.indices, strict=True) if side.takes(given)]
    views = {side.name: response_of(side.checkpoint, pixels) for side, _ in able}
    parts = {side.name: moment.parts(side) for side, _ in able}
    fields = {side.name: views[side.name].fields[at] / parts[side.name] for side, at in able}
    steps = {side.name: side.checkpoint.steps[at] for side, at in able}
    x, y = views["first"].x, views["first"].y
    titles = {side.name: f"{side.model} ({side.name}), {side.moment(at)}" for side, at in able}
    top = max(view.top / parts[name] for name, view in views.items())
    columns = pick_columns()
    data = sorted({side.checkpoint.header.provenance.dataset_title for side, _ in able})
    title = f"Receptive fields for one input, {' and '.join(data)}"

    def page(kind: str) -> bytes:
        flat = {name: values.sum(0) for name, values in fields.items()}
        named = {f"{side.model}, {side.moment(at)}": flat[side.name] for side, at in able}
        changes = {f"{name} − first": flat[name] - flat["first"] for name in list(flat)[1:]}
        return sheet(pixels.numpy(), named, top, title, kind, columns, changes, moment.unit)

    binary = "application/octet-stream"
    files = [
        ("Numbers, CSV", "compared.csv", "text/csv", lambda: export.cells(x, y, fields)),
        (
            "Numbers, NPZ", "compared.npz", binary,
            lambda: export.compared_npz(pixels, x, y, fields, steps),
        ),
        (
            "Figure, HTML", "compared.html", "text/html",
            lambda: export.compared_html(pixels, x, y, fields, titles, top, moment.unit, title),
        ),
        *printed("compared", columns, page),
        ("Settings, CSV", "settings.csv", "text/csv", lambda: _settings(sides)),
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
        "The numbers are densities per square pixel at the centres of the cells, whose coordinates "
        "are "
        "in pixels from the upper left corner: the "
        f"{'mean' if moment.mean else 'sum'} of each model's densities, as above. To save a field "
        "as "
        "it is shown, as SVG or PNG, use the buttons at its upper right. This program computes the "
        "same numbers and differences if the files of the models are in its folder:"
    )
    named = {name: f"{name}-{keys[name]}.safetensors" for name in fields}
    st.code(export.compared_snippet(named, pixels, steps, parts), wrap_lines=True)


def _settings(sides: list[Column]) -> str:
    file = io.StringIO()
    columns = [facts(side.checkpoint) for side in sides]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    csv.writer(file).writerows([["", *(side.name for side in sides)], *rows])
    return file.getvalue()
