"""Fashion-MNIST through torchvision, in the file format of MNIST."""

from collections.abc import Collection
from pathlib import Path

from densembed.data import mnist
from densembed.data.idx import Idx

COUNTS = {"train": 60_000, "t10k": 10_000}
SIZES = {
    f"{part}-{kind}": head + count * each
    for part, count in COUNTS.items()
    for kind, head, each in (("images-idx3-ubyte", 16, 28 * 28), ("labels-idx1-ubyte", 8, 1))
}
"""Bytes of the unpacked files, which detect files that were only partly written. The checksums
of the archives are verified before they are unpacked."""


class FashionMnist(Idx):
    """60,000 training and 10,000 test images of ten kinds of clothing."""

    name, title, source = "fashion-mnist", "Fashion-MNIST", "FashionMNIST"
    download_size = "about 30 MB"
    folder = Path("FashionMNIST/raw")
    hint = "fashion"  # other data sets have files of the same names and sizes
    classes = (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    )

    def names(self) -> Collection[str]:
        return SIZES

    def is_right(self, name: str, data: bytes) -> bool:
        return len(data) == SIZES[name] and not mnist.DATA.is_right(name, data)


DATA = FashionMnist()
