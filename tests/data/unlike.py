"""How often is an input called unlike what a model learned from, or no single digit at all?

    python -m tests.data.unlike [--dataset mnist] [--photos DIR] [--count 1000] [--data-dir DIR]
    python -m tests.data.unlike --models --photos DIR [--skip 1000] [--gallery checkpoints/paper]

Prints shares in percent: of the data set's own test images, as they are and as scans; of empty
pages; of pages with several of its digits; and of the photographs below a folder, such as CIFAR's.
`--skip` leaves out those that the rule was made with. With `--models`, what the app says at each
model of a gallery of its data set's test images and of the photographs.
"""

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from densembed.data import Dataset, load_dataset
from densembed.data.images import Content, ModelInput, read_picture
from densembed.fields.novelty import detector, unlike
from densembed.training.checkpoint import Checkpoint

SCALE = 6  # pixels of a scan a pixel of the digit


def saved(ink: np.ndarray) -> bytes:
    """Ink (h, w) uint8 as a PNG, dark on light paper."""
    file = io.BytesIO()
    grey = 250 - 0.9 * np.kron(ink.astype(np.float32), np.ones((SCALE, SCALE)))
    Image.fromarray(grey.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def scans(dataset: Dataset, chosen: np.ndarray) -> Iterator[bytes]:
    for index in chosen:
        yield saved(np.pad(dataset.test.images[index, 0].numpy(), 8))


def empty_pages(rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """White, grey or black, or with a little noise of a sensor."""
    for number in range(count):
        level, noise = rng.integers(0, 256), (number % 2) * rng.uniform(0, 4)
        page = np.clip(level + rng.normal(0, noise, (120, 120)), 0, 255)
        file = io.BytesIO()
        Image.fromarray(page.astype(np.uint8)).save(file, "PNG")
        yield file.getvalue()


def full_pages(dataset: Dataset, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Two to nine digits, in a row or in rows of three."""
    for _ in range(count):
        digits = dataset.test.images[rng.integers(len(dataset.test), size=rng.integers(2, 10)), 0]
        cells = [np.pad(digit.numpy(), 4) for digit in digits]
        rows = [cells[k : k + 3] for k in range(0, len(cells), 3)]
        page = np.zeros((36 * len(rows), 36 * min(3, len(cells))), np.uint8)
        for down, row in enumerate(rows):
            for across, cell in enumerate(row):
                page[36 * down : 36 * down + 36, 36 * across : 36 * across + 36] = cell
        yield saved(page)


def photographs(
    folder: Path, rng: np.random.Generator, count: int, skip: int = 0
) -> Iterator[bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".jpg", ".jpeg", ".png"))
    for index in rng.permutation(len(paths))[skip : skip + count]:
        yield paths[index].read_bytes()


def shares(pictures: list[ModelInput], dataset: Dataset) -> dict[str, float]:
    """Percent that is called each of these, and any of them."""
    novel = detector(dataset).is_novel(torch.stack([picture.pixels for picture in pictures]))
    named = {
        "no ink": np.array([picture.content == Content.BLANK for picture in pictures]),
        "several": np.array([picture.content == Content.SEVERAL_DIGITS for picture in pictures]),
        "no page": np.array([not picture.clean for picture in pictures]),
        "unlike": novel,
    }
    named["any"] = np.any(list(named.values()), axis=0)
    return {name: 100 * float(values.mean()) for name, values in named.items()}


def by_model(gallery: Path, photos: Path, data_dir: str | None, count: int, skip: int, seed: int):
    """Rows (model, its data set, percent of test images, percent of photographs) called unlike.

    As in the app: a photograph counts too where no single digit on a page was found in it.
    """
    rng = np.random.default_rng(seed)
    files = list(photographs(photos, rng, count, skip))
    shares = {}
    for path in sorted(gallery.glob("*.safetensors")):
        checkpoint = Checkpoint.open(path)
        name = checkpoint.config.dataset
        if name not in shares:
            dataset = load_dataset(name, data_dir)
            pictures = [
                read_picture(file, dataset.input_shape, checkpoint.reads_digits) for file in files
            ]
            strange = unlike(dataset, torch.stack([picture.pixels for picture in pictures]))
            remarked = [
                picture.content != Content.DIGIT or not picture.clean for picture in pictures
            ]
            own = unlike(dataset, dataset.test.images).mean()
            shares[name] = 100 * own, 100 * np.mean(strange | np.array(remarked))
        yield path.stem, name, *shares[name]


def compare(dataset: Dataset, photos: Path | None, count: int, seed: int = 0, skip: int = 0):
    """Rows (kind of picture, their number, shares)."""
    rng = np.random.default_rng(seed)
    own = [ModelInput(image, Content.DIGIT) for image in dataset.test.images]
    yield "its test images", len(own), shares(own, dataset)
    chosen = rng.permutation(len(own))[:count]
    kinds = {
        "the same, scanned": scans(dataset, chosen),
        "empty pages": empty_pages(rng, count // 4),
        "several digits": full_pages(dataset, rng, count // 4),
        **({"photographs": photographs(photos, rng, count, skip)} if photos else {}),
    }
    for name, files in kinds.items():
        pictures = [read_picture(file) for file in files]
        yield name, len(pictures), shares(pictures, dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", choices=("mnist", "digits"), default="mnist")
    parser.add_argument("--data-dir")
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--skip", type=int, default=0, help="photographs that were seen before")
    parser.add_argument("--models", action="store_true", help="at each model of the gallery")
    parser.add_argument("--gallery", type=Path, default=Path("checkpoints/paper"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.models:
        if not options.photos:
            parser.error("--models asks for --photos")
        print(f"{'% called unlike':30}{'learned from':>14}{'its test set':>14}{'photographs':>14}")
        rows = by_model(
            options.gallery,
            options.photos,
            options.data_dir,
            options.count,
            options.skip,
            options.seed,
        )
        for model, data, own, strange in rows:
            print(f"{model:30}{data:>14}{own:14.1f}{strange:14.1f}")
        return
    dataset = load_dataset(options.dataset, options.data_dir)
    names = ("no ink", "several", "no page", "unlike", "any")
    print(f"{'% of':20}{'number':>8}" + "".join(f"{name:>10}" for name in names))
    for kind, number, row in compare(
        dataset, options.photos, options.count, options.seed, options.skip
    ):
        print(f"{kind:20}{number:8}" + "".join(f"{row[name]:10.1f}" for name in names))


if __name__ == "__main__":
    main()
