"""What a large picture costs: seconds and memory of reading it, each in a process of its own.

    python -m tests.stress.picture          all kinds
    python -m tests.stress.picture PNG      one of them

Prints what it measured, beside an ordinary photograph of 12 million pixels.
"""

import argparse
import io
import resource
import subprocess
import sys
import time

import numpy as np
from PIL import Image, ImageDraw

KINDS = {
    "photograph": ("JPEG", "RGB", (4000, 3000)),
    "JPEG": ("JPEG", "RGB", (5000, 5000)),
    "grey": ("JPEG", "L", (5000, 5000)),
    "PNG": ("PNG", "RGB", (5000, 5000)),
    "alpha": ("PNG", "RGBA", (5000, 5000)),
    "palette": ("GIF", "P", (5000, 5000)),
    "deep": ("PNG", "I;16", (5000, 5000)),
    "TIFF": ("TIFF", "RGB", (5000, 5000)),
    "WebP": ("WEBP", "RGB", (5000, 5000)),
}


def drawn(kind: str) -> bytes:
    """A file of that kind: a dark 1 in the middle of a bright page."""
    form, mode, (width, height) = KINDS[kind]
    page = Image.new("L", (width, height), 235)
    middle, tall = width // 2, height // 4
    ImageDraw.Draw(page).line(
        (middle, height // 2 - tall, middle, height // 2 + tall), 30, width // 25
    )
    if mode == "I;16":
        page = Image.fromarray(np.asarray(page).astype(np.uint16) * 257)
    elif mode != "L":
        page = page.convert(mode)
    file = io.BytesIO()
    page.save(file, form, **({"compression": "tiff_lzw"} if form == "TIFF" else {}))
    return file.getvalue()


def cost(kind: str) -> tuple[float, float]:
    """Seconds, and MB of memory at the most beyond what the process had before it read."""
    code = f"from tests.stress.picture import _read; _read({kind!r})"
    process = subprocess.run(
        [sys.executable, "-c", code], input=drawn(kind), capture_output=True, check=True
    )
    seconds, megabytes = process.stdout.split()
    return float(seconds), float(megabytes)


def _read(kind: str) -> None:
    from densembed.data.images import Content, read_picture

    data = sys.stdin.buffer.read()
    before, begun = _peak(), time.perf_counter()
    assert read_picture(data).content == Content.DIGIT, kind
    print(time.perf_counter() - begun, _peak() - before)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="*")
    for kind in parser.parse_args().kind or KINDS:
        seconds, megabytes = cost(kind)
        print(f"{kind:10}: {seconds:5.2f} s, {megabytes:6.1f} MB", flush=True)


if __name__ == "__main__":
    main()
