"""Folders of noisy pictures."""

import numpy as np
from PIL import Image

from densembed.data import load_dataset

CLASSES = ("cats", "dogs", "newts")


def picture(path, size=(8, 6), mode="RGB", seed=0, **options):
    """A noisy picture of (width, height); returns its pixels as (H, W[, 3])."""
    shape = (size[1], size[0], 3)[: 3 if mode == "RGB" else 2]
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return pixels


def load(root, tmp_path, shape=""):
    return load_dataset(f"folder:{root}{shape}", tmp_path / "data")
