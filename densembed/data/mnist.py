"""MNIST, from files in the data folder or downloaded through torchvision."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from densembed.data.idx import Idx

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""SHA-256 of the unpacked files, which detects files that were only partly written."""


class Mnist(Idx):
    """60,000 training and 10,000 test images of handwritten digits."""

    name, title, source, download_size = "mnist", "MNIST", "MNIST", "about 12 MB"
    folder = Path("MNIST/raw")
    classes = "0123456789"

    def names(self) -> Collection[str]:
        return SHA256

    def is_right(self, name: str, data: bytes) -> bool:
        return hashlib.sha256(data).hexdigest() == SHA256[name]


DATA = Mnist()
