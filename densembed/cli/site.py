"""The command site: Explore and Compare as static files."""

import argparse
import os
import unicodedata

from densembed.cli.common import UsageError, warn
from densembed.cli.data import load
from densembed.data import noun
from densembed.paths import gallery_folder
from densembed.runs.gallery import Entry, key_of, shipped
from densembed.text import counted, listed, printable, quoted
from densembed.training.checkpoint import Checkpoint
from densembed.web.site import is_foreign, site_files, write_site

USUAL = (
    "logistic-el-mnn-10-5-digits",
    "logistic-el-15-digits",
    "logistic-el-mnn-8-4",
    "logistic-el-5",
    "stages-16-24-32-logistic-el-mnn-3-3-mnist1d",
    "logistic-el-mnn-scale-20-8-mnist1d",
)
"""The default checkpoints, first those of the digits, which are the default examples."""
SIGNALS = "mnist1d"
"""A data set that is made without a file, so that its models have it in any case."""


def site(options: argparse.Namespace) -> None:
    """Write Explore and Compare as static files."""
    # A file may be named by several paths.
    files = {(path.name, os.path.realpath(path)): path for path in options.checkpoint}
    entries = [Entry(key_of(path), path) for path in files.values()]
    if not entries:
        by_key = {entry.key: entry for entry in shipped()}
        entries = [by_key[key] for key in USUAL if key in by_key]
    if not entries:
        raise UsageError(
            f"No checkpoints are in {printable(gallery_folder())}. Name the files to show."
        )
    names: dict[str, Entry] = {}
    for entry in entries:
        same = names.setdefault(_on_any_system(entry.key), entry)
        if same is not entry:
            raise UsageError(
                f"{quoted(same.path)} and {quoted(entry.path)} would be one file of the site, as "
                "some systems do not tell their names apart: rename one of them."
            )
    for file in filter(is_foreign, site_files(options.out, entries)):
        raise UsageError(
            f"{printable(file)} was not written by this command, and would be replaced: choose "
            "another folder, or move that file away."
        )
    own = {Checkpoint.open(entry.path).config.dataset for entry in entries}
    datasets = dict.fromkeys([options.dataset, *({SIGNALS} & own)])
    examples = [load(name, options) for name in datasets]
    written = write_site(options.out, entries, examples)
    size = sum(path.stat().st_size for path in written)
    for entry in entries:
        header = Checkpoint.open(entry.path).header
        shape, classes = header.input_shape, header.classes
        alike = [each for each in examples if each.input_shape == shape]
        if any(list(each.classes) == classes for each in alike):
            continue
        takes = f"takes {noun(shape)}s of {' × '.join(map(str, shape))}"
        has = f"has the {counted(len(classes), 'class')} {listed(classes)}"
        other = "other classes" if alike else "another shape"
        warn(
            f"The site has no examples for {printable(entry.path.name)}, which "
            f"{has if alike else takes}: those of {listed(list(datasets))} have {other}. Name data "
            "that suit it with --dataset."
        )
    print(f"saved: {len(written)} files, {size / 1e6:.1f} MB; open {printable(written[0])}")


def _on_any_system(name: str) -> str:
    """A key for names of files that Windows or macOS takes for the same."""
    return unicodedata.normalize("NFC", name).casefold()
