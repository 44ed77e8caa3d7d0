"""The command export: a checkpoint for other programs."""

import argparse

import torch

from densembed import exchange
from densembed.cli.data import note_member, read_image
from densembed.files import replace_file
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint


def export(options: argparse.Namespace) -> int:
    """Write a checkpoint in the format of another program."""
    checkpoint = Checkpoint.open(options.checkpoint)
    note_member(checkpoint)
    data = _content(checkpoint, options)
    replace_file(options.out, data)
    print(f"saved: {printable(options.out)} ({len(data) / 1000:.1f} kB)")
    return 0


def _content(checkpoint: Checkpoint, options: argparse.Namespace) -> bytes:
    if options.to == "csv":
        pixels = None
        if options.image and not checkpoint.header.scaling:  # signals have no such table
            shape = checkpoint.header.input_shape
            pixels = read_image(options.image, checkpoint, shape)
        return exchange.to_csv(checkpoint, options.table, pixels).encode()
    write = {"onnx": exchange.to_onnx, "torch": exchange.to_torch}[options.to]
    return write(checkpoint, getattr(torch, options.dtype or "float32"))
