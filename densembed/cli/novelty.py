"""The command novelty."""

import argparse
from pathlib import Path

from densembed.cli.common import shown, warn
from densembed.cli.data import load
from densembed.cli.info import read_all
from densembed.data import DataError, is_outside
from densembed.files import replace_file
from densembed.text import listed, printable
from densembed.training.checkpoint import Checkpoint, novelty_file
from densembed.training.novelty import Novelty, has_enough_images, logits_of


def novelty(options: argparse.Namespace) -> int:
    """Write the statistics of the training images beside each checkpoint that has none."""
    failed: list[Path] = []
    for path, checkpoint in read_all(Checkpoint.open, options.checkpoint, failed):
        name = shown(path, options.checkpoint)
        if checkpoint.header.scaling:
            print(f"{name}: takes signals, which have no such statistics; nothing written")
            continue
        if is_outside(own := checkpoint.config.dataset, options.data_dir):
            warn(
                f"{name} was trained on data outside of the data folder. To use them, add "
                f"--data-dir with a folder that contains {printable(own.partition(':')[2])}."
            )
            failed.append(path)
            continue
        try:
            dataset = load(own, options)
        except (DataError, ValueError) as error:
            warn(f"{name}: {error}")
            failed.append(path)
            continue
        classes = checkpoint.header.classes
        ordered = dataset.in_order(classes)  # the prototypes are numbered as the model's classes
        if dataset.input_shape != checkpoint.header.input_shape:
            warn(f"{name} takes images of another shape than {dataset.title} has.")
            failed.append(path)
            continue
        if ordered is None:
            warn(
                f"{name} has the classes {listed(classes)}, but {dataset.title} has now "
                f"{listed(dataset.classes)}."
            )
            failed.append(path)
            continue
        novelty = checkpoint.novelty or Novelty.fit(checkpoint.model(), ordered)
        if novelty is None:
            enough = has_enough_images(dataset)
            why = "some scores are not finite" if enough else "too few training images"
            print(f"{name}: {why}; nothing written")
            continue
        try:
            if checkpoint.novelty is None:
                replace_file(novelty_file(path), novelty.to_json().encode())
        except OSError as error:
            warn(f"{printable(novelty_file(path))} cannot be written: {error.strerror}.")
            failed.append(path)
            continue
        tested = dataset.test.images
        share = novelty.is_novel(tested, logits_of(checkpoint.model(), tested)).mean()
        print(f"{name}: {100 * share:.1f} % of the test images are unlike the training images")
    return 2 if failed else 0
