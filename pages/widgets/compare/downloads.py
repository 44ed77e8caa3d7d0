"""Files to download from Compare."""

import csv
import io

import streamlit as st

from densembed.data.codec import to_png
from densembed.fields.agreement import summary
from densembed.figures import export
from densembed.figures.printed import sheet
from densembed.figures.signals import signal_sheet
from densembed.figures.theme import SERIES
from densembed.web.site import view_page
from pages.widgets.common.cache import response_of
from pages.widgets.common.downloads import pick_columns, printed
from pages.widgets.compare.models import ComparedModel, Moment
from pages.widgets.inputs.checkpoints import file_of, titles
from pages.widgets.live.live import Report


def export_compared(compared: list[ComparedModel], moment: Moment, report: Report) -> None:
    """Buttons to download numbers and figures, the settings, the models, the input; a program.

    Args:
        report: of the view, whose input the first model takes.
    """
    scaling = compared[0].checkpoint.header.scaling
    inputs = {entry.name: entry.input(report, compared[0]) for entry in compared}
    able = [
        (entry, at)
        for entry, at in zip(compared, moment.indices, strict=True)
        if inputs[entry.name] is not None
    ]
    pixels = inputs["first"]
    views = {entry.name: response_of(entry.checkpoint, inputs[entry.name]) for entry, _ in able}
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
        if scaling:
            shown, colours = scaling.measured(pixels.numpy()), SERIES[: len(named)]
            unit = moment.unit("sample")
            return signal_sheet(shown, named, title, kind, columns, colours, changes, unit)
        unit = moment.unit("pixel²")
        return sheet(pixels.numpy(), named, top, title, kind, columns, changes, unit)

    keys = {entry.name: entry.key for entry in compared}
    binary = "application/octet-stream"
    files = [
        ("Numbers, CSV", "compared.csv", "text/csv", lambda: export.cells(x, y, fields)),
        (
            "Numbers, NPZ",
            "compared.npz",
            binary,
            lambda: export.compared_npz(
                scaling.measured(pixels) if scaling else pixels, x, y, fields, steps
            ),
        ),
        (
            "Page, HTML",
            "compared.html",
            "text/html",
            lambda: view_page(
                {entry.key: entry.checkpoint for entry in compared},
                pixels,
                {**report.parameters, **keys},
                "compare",
                titles=titles(keys.values()),
            ),
        ),
        *printed("compared", columns, page),
        ("Settings, CSV", "settings.csv", "text/csv", lambda: _settings(compared)),
        ("Input, CSV", "input.csv", "text/csv", lambda: export.signal_csv(pixels, scaling))
        if scaling
        else ("Input, PNG", "input.png", "image/png", lambda: to_png(pixels)),
    ]
    for name, key in keys.items():
        file_name = f"{name}-{key}.safetensors"
        files.append((f"{name.capitalize()} model", file_name, binary, file_of(key)))
    with st.container(horizontal=True):
        for label, file_name, mime, data in files:
            st.download_button(label, data, file_name, mime, on_click="ignore", key=f"take-{label}")
    numbers = (
        "densities per sample at the centres of the cells, whose places t are in samples"
        if scaling
        else "densities per square pixel at the centres of the cells, whose coordinates are in "
        "pixels from the upper left corner"
    )
    st.caption(
        f"The numbers are {numbers}: the {'mean' if moment.mean else 'sum'} of each model's "
        "densities, as above. To save a field as it is shown, as SVG or PNG, use the buttons at "
        "its upper right. This program computes the same numbers and differences if the files of "
        f"the models{' and the input' if scaling else ''} are in its folder:"
    )
    named = {name: f"{name}-{keys[name]}.safetensors" for name in fields}
    program = (
        export.compared_signal_snippet(named, steps, parts)
        if scaling
        else export.compared_snippet(named, pixels, steps, parts)
    )
    st.code(program, wrap_lines=True)


def _settings(compared: list[ComparedModel]) -> str:
    file = io.StringIO()
    columns = [summary(entry.checkpoint) for entry in compared]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    table = [["", *(entry.name for entry in compared)], *rows]
    csv.writer(file).writerows([[_as_text(cell) for cell in row] for row in table])
    return file.getvalue()


def _as_text(cell: str) -> str:
    """A cell with text of a checkpoint, which a spreadsheet could take for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
