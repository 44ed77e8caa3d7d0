"""The command render: the receptive fields for an image or a signal, as a file."""

import argparse

from densembed.cli.common import UsageError, warn
from densembed.cli.data import note_member, on_grid, read_image, read_signals
from densembed.fields.field import view
from densembed.figures.export import write_npz, write_printed
from densembed.files import replace_file
from densembed.runs.gallery import key_of
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import view_page

PAGE = ".html"
WRITERS = {
    ".svg": write_printed,
    ".pdf": write_printed,
    ".png": write_printed,
    ".npz": write_npz,
}


def render(options: argparse.Namespace) -> int:
    """Save the receptive fields for an image or a signal."""
    suffix = options.out.suffix.lower()
    checkpoint = Checkpoint.open(options.checkpoint)
    note_member(checkpoint)
    shape = checkpoint.header.input_shape
    if checkpoint.header.scaling:
        if options.grid:
            raise UsageError("--grid is for images. Leave it out for a signal.")
        signals, rows = read_signals(checkpoint, options.image)
        pixels = signals[0]
        if len(signals) > 1:
            warn(f"The file has {len(signals):,} signals; this is the one of line {rows.lines[0]}.")
    else:
        if options.grid:
            on_grid(checkpoint.network(), options.grid, printable(options.checkpoint.name))
            shape = (shape[0], *options.grid)
        pixels = read_image(options.image, checkpoint, shape)
    if suffix == PAGE:  # which computes the fields itself, at every step
        page = view_page({key_of(options.checkpoint): checkpoint}, pixels, {})
        replace_file(options.out, page.encode())
    else:
        fields = view(checkpoint, pixels, [0, -1], resolution=options.resolution)
        WRITERS[suffix](options.out, checkpoint, pixels, fields)
    print(f"saved: {printable(options.out)}")
    return 0
