"""The table of ONNX files in docs/engineers.md: `python -m tests.onnx_table [float64]`.

Every checkpoint that ships is exported, and run by onnxruntime on the first test images of its own
data if they are here, otherwise of the built-in digits.
"""

import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnxruntime
import torch

from densembed import exchange
from densembed.data import as_input, is_available, load_dataset
from densembed.experiments.report import markdown_table
from densembed.runs.gallery import shipped
from densembed.training.checkpoint import Checkpoint

IMAGES = 200


@dataclass(frozen=True)
class Compared:
    """Largest differences of the logits of a network and of its ONNX file, for the same images."""

    size: int
    """Bytes of the ONNX file."""
    largest: float
    """Largest absolute value of a logit."""
    difference: float
    """Between onnxruntime and torch, both in the precision of the file."""
    onnx_error: float
    """Between onnxruntime and torch in float64."""
    torch_error: float
    """Between torch in the precision of the file and in float64."""

    @property
    def relative(self) -> float:
        """The difference relative to the largest logit."""
        return self.difference / max(1, self.largest)


def compare(
    checkpoint: Checkpoint, images: torch.Tensor, dtype: torch.dtype = torch.float32
) -> Compared:
    """Export a checkpoint, and run it on images or signals in batches of two sizes."""
    content = exchange.to_onnx(checkpoint, dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    x = as_input(images, dtype)
    (taken,) = session.get_inputs()
    logits = np.concatenate(
        [session.run([exchange.OUTPUT], {taken.name: part.numpy()})[0] for part in (x[:1], x[1:])]
    )
    with torch.inference_mode():
        own = checkpoint.model().to(dtype)(x).numpy()
        exact = checkpoint.model().double()(x.double()).numpy()

    def between(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a.astype(float) - b).max())

    return Compared(
        len(content),
        float(np.abs(exact).max()),
        difference=between(logits, own),
        onnx_error=between(logits, exact),
        torch_error=between(own, exact),
    )


COLUMNS = {
    "model": "{model}",
    "data": "{images}",
    "ONNX, kB": "{size:.0f}",
    "torch, kB": "{program:.0f}",
    "largest logit": "{largest:.1f}",
    "ONNX − torch": "{difference:.1e}",
    "relative": "{relative:.1e}",
    "ONNX − exact": "{onnx_error:.1e}",
    "torch − exact": "{torch_error:.1e}",
}


def main(precision: str = "float32") -> None:
    rows: list[dict[str, Any]] = []
    dtype = getattr(torch, precision)
    for entry in shipped():
        checkpoint = entry.open()
        own = checkpoint.config.dataset
        name = own if is_available(own) else "digits"
        found = compare(checkpoint, load_dataset(name).test.images[:IMAGES], dtype)
        rows.append(
            {
                "model": entry.key,
                "images": name,
                "program": len(exchange.to_torch(checkpoint, dtype)) / 1000,
                "relative": found.relative,
                **asdict(found),
                "size": found.size / 1000,
            }
        )
        print(entry.key, file=sys.stderr, flush=True)
    print(markdown_table(COLUMNS, rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
