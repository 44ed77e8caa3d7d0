"""The command site: Explore and Compare as static files."""

import argparse

from densembed.cli.common import Command, UsageError, add_data_dir, as_path, load
from densembed.runs.gallery import Entry, gallery_folder, shipped
from densembed.text import printable
from densembed.web.site import write_site

USUAL = ("logistic-el-mnn-10-5-digits", "logistic-el-15-digits", "logistic-el-mnn-8-4",
         "logistic-el-5")  # fmt: skip
"""The default checkpoints, first those of the digits, which are the default examples."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=as_path, help="folder to write, which may exist")
    parser.add_argument(
        "checkpoint", type=as_path, nargs="*", help="files to show (default: four that ship)"
    )
    parser.add_argument(
        "--dataset", default="digits", help="whose test images are examples (default: digits)"
    )
    add_data_dir(parser)


def _run(options: argparse.Namespace) -> None:
    entries = [Entry(printable(path.stem), path) for path in options.checkpoint]
    if not entries:
        by_key = {entry.key: entry for entry in shipped()}
        entries = [by_key[key] for key in USUAL if key in by_key]
    if not entries:
        raise UsageError(
            f"No checkpoints are in {printable(gallery_folder())}. Name the files to show."
        )
    if len({entry.key for entry in entries}) < len(entries):
        raise UsageError("Two checkpoints have the same file name. Rename one of them.")
    if options.out.is_file():
        raise UsageError(f"{printable(options.out)} is a file. Name a folder.")
    dataset = load(options.dataset, options)
    files = write_site(options.out, entries, dataset)
    size = sum(path.stat().st_size for path in files)
    print(f"saved: {len(files)} files, {size / 1e6:.1f} MB; open {printable(files[0])}")


SITE = Command(
    name="site",
    text="write Explore and Compare as static files",
    add_arguments=_add_arguments,
    run=_run,
    examples=("site public", "site public a.safetensors b.safetensors --dataset mnist"),
)
