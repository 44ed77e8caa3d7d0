"""Files to download from Compare."""

import csv
import io
from collections.abc import Mapping

import streamlit as st

from densembed.data.codec import to_png
from densembed.fields.agreement import summary
from densembed.figures import export
from densembed.figures.printed import sheet
from densembed.web.site import view_page
from pages.widgets.common.cache import response_of
from pages.widgets.common.downloads import pick_columns, printed
from pages.widgets.compare.models import ComparedModel, Moment
from pages.widgets.inputs.checkpoints import file_of
from pages.widgets.inputs.choose import Input


def export_compared(
    compared: list[ComparedModel], moment: Moment, image: Input, parameters: Mapping[str, str]
) -> None:
    """Buttons to download numbers and figures, the settings, the models, the input; a program.

    Args:
        parameters: of the view's link.
    """
    pixels = image.pixels
    able = [
        (entry, at)
        for entry, at in zip(compared, moment.indices, strict=True)
        if entry.takes(image)
    ]
    views = {entry.name: response_of(entry.checkpoint, pixels) for entry, _ in able}
    parts = {entry.name: moment.parts(entry) for entry, _ in able}
    fields = {entry.name: views[entry.name].fields[at] / parts[entry.name] for entry, at in able}
    steps = {entry.name: entry.checkpoint.steps[at] for entry, at in able}
    x, y = views["first"].x, views["first"].y
    top = max(view.top / parts[name] for name, view in views.items())
    columns = pick_columns()
    data = sorted({entry.checkpoint.header.provenance.dataset_title for entry, _ in able})
    title = f"Receptive fields for one input, {' and '.join(data)}"

    def page(kind: str) -> bytes:
        flat = {name: values.sum(0) for name, values in fields.items()}
        named = {f"{entry.model}, {entry.moment(at)}": flat[entry.name] for entry, at in able}
        changes = {f"{name} − first": flat[name] - flat["first"] for name in list(flat)[1:]}
        return sheet(pixels.numpy(), named, top, title, kind, columns, changes, moment.unit)

    keys = {entry.name: entry.key for entry in compared}
    binary = "application/octet-stream"
    files = [
        ("Numbers, CSV", "compared.csv", "text/csv", lambda: export.cells(x, y, fields)),
        (
            "Numbers, NPZ",
            "compared.npz",
            binary,
            lambda: export.compared_npz(pixels, x, y, fields, steps),
        ),
        (
            "Page, HTML",
            "compared.html",
            "text/html",
            lambda: view_page(
                {entry.key: entry.checkpoint for entry in compared},
                pixels,
                {**parameters, **keys},
                "compare",
            ),
        ),
        *printed("compared", columns, page),
        ("Settings, CSV", "settings.csv", "text/csv", lambda: _settings(compared)),
        ("Input, PNG", "input.png", "image/png", lambda: to_png(pixels)),
    ]
    for name, key in keys.items():
        file_name = f"{name}-{key}.safetensors"
        files.append((f"{name.capitalize()} model", file_name, binary, file_of(key)))
    with st.container(horizontal=True):
        for label, file_name, mime, data in files:
            st.download_button(label, data, file_name, mime, on_click="ignore", key=f"take-{label}")
    st.caption(
        "The numbers are densities per square pixel at the centres of the cells, whose coordinates "
        f"are in pixels from the upper left corner: the {'mean' if moment.mean else 'sum'} of each "
        "model's densities, as above. To save a field as it is shown, as SVG or PNG, use the "
        "buttons at its upper right. This program computes the same numbers and differences if the "
        "files of the models are in its folder:"
    )
    named = {name: f"{name}-{keys[name]}.safetensors" for name in fields}
    st.code(export.compared_snippet(named, pixels, steps, parts), wrap_lines=True)


def _settings(compared: list[ComparedModel]) -> str:
    file = io.StringIO()
    columns = [summary(entry.checkpoint) for entry in compared]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    csv.writer(file).writerows([["", *(entry.name for entry in compared)], *rows])
    return file.getvalue()
