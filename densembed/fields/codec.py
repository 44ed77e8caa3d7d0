"""Small fields and pictures as text, for results that are read as JSON."""

import numpy as np
import torch

from densembed.data.compact import from_text, to_text

LEVELS = 255


def pack(values: np.ndarray, top: float) -> dict:
    """An array (H, W) of values from 0 to `top` as text, to 1/255 of `top`; more is cut off."""
    share = np.clip(np.asarray(values, np.float64) / (top or 1), 0, 1)
    levels = torch.from_numpy(np.rint(LEVELS * share).astype(np.uint8))[None]
    return {"size": list(values.shape), "top": float(f"{top:.6g}"), "levels": to_text(levels)}


def unpack(packed: dict) -> np.ndarray:
    """The array of `pack`. Raises ImageError for a damaged text."""
    levels = from_text(packed["levels"], (1, *packed["size"]))[0].numpy()
    return levels.astype(np.float32) * packed["top"] / LEVELS
