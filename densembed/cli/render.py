"""The command render: the receptive fields for an image, as a file."""

import argparse

from densembed.cli.common import Command, UsageError, as_path, warn
from densembed.data.images import read_picture
from densembed.fields.field import RESOLUTION, view
from densembed.figures.export import write_npz, write_printed
from densembed.files import replace_file
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
MAX_RESOLUTION = 32


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_path)
    parser.add_argument("--image", type=as_path, required=True)
    parser.add_argument(
        "--out",
        type=as_path,
        required=True,
        help="FILE.html, a page with controls; or .svg, .pdf, .png for print; or .npz",
    )
    parser.add_argument(
        "--resolution",
        type=int,
        default=RESOLUTION,
        help=f"cells per pixel (1 to {MAX_RESOLUTION}, default {RESOLUTION}), but for a page",
    )


def _run(options: argparse.Namespace) -> int:
    suffix = options.out.suffix.lower()
    if suffix not in (PAGE, *WRITERS):
        raise UsageError("--out must end in .html, .svg, .pdf, .png or .npz.")
    if not 1 <= options.resolution <= MAX_RESOLUTION:
        raise UsageError(f"--resolution must be between 1 and {MAX_RESOLUTION} cells per pixel.")
    checkpoint = Checkpoint.open(options.checkpoint)
    shape = checkpoint.header.input_shape
    image = read_picture(options.image, shape, checkpoint.reads_digits)
    if not image.has_ink:
        warn("No digit found, so this is the field for a blank image.")
    if suffix == PAGE:  # which computes the fields itself, at every step
        page = view_page({printable(options.checkpoint.stem): checkpoint}, image.pixels, {})
        replace_file(options.out, page.encode())
    else:
        fields = view(checkpoint, image.pixels, [0, -1], resolution=options.resolution)
        WRITERS[suffix](options.out, checkpoint, image.pixels, fields)
    print(f"saved: {printable(options.out)}")
    return 0


RENDER = Command(
    name="render",
    text="save the receptive fields for an image",
    add_arguments=_add_arguments,
    run=_run,
    examples=("render a.safetensors --image photo.jpg --out field.pdf",),
)
