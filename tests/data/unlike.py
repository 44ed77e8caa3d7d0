"""How often is an input called unlike what a model learned from, or no single digit at all?

    python -m tests.data.unlike [--dataset mnist] [--photos DIR] [--count 1000] [--data-dir DIR]
    python -m tests.data.unlike --models --photos DIR [--skip 1000] [--gallery checkpoints/paper]

Prints shares in percent: of the data set's own test images, as they are and as scans; of empty
pages; of pages with several of its digits; and of the photographs below a folder, such as CIFAR's.
`--skip` leaves out those that the rule was made with. With `--models`, what the app says at each
model of a gallery of its data set's test images, of the photographs, and of letters, stars and
scribbles that are made.
"""

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from densembed.data import Dataset, load_dataset
from densembed.data.images import Content, ModelInput, read_picture
from densembed.fields.novelty import detector, unlike_training
from densembed.training.checkpoint import Checkpoint

SCALE = 6  # pixels of a scan a pixel of the digit


def saved(ink: np.ndarray, scale: int = SCALE) -> bytes:
    """Ink (h, w) uint8 as a PNG, dark on light paper."""
    file = io.BytesIO()
    grey = 250 - 0.9 * np.kron(ink.astype(np.float32), np.ones((scale, scale)))
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


def letters() -> Iterator[bytes]:
    """The capitals that look like no digit, in two fonts, dark on light paper."""
    for font in ("DejaVuSans.ttf", "DejaVuSerif.ttf"):
        face = ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts/ttf", font)), 90)
        for letter in "ACEFHKMNPRTUVWXY":
            page = Image.new("L", (200, 200), 250)
            ImageDraw.Draw(page).text((100, 100), letter, 25, face, anchor="mm")
            yield saved(255 - np.asarray(page), 1)


def stars(rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Five-pointed stars drawn in one line, each a little different."""
    for _ in range(count):
        angles = np.pi * (-0.5 + 0.8 * np.arange(6)) + rng.normal(0, 0.06, 6)
        radii = rng.uniform(55, 80) * rng.uniform(0.9, 1.1, 6)
        yield drawn(100 + radii * np.cos(angles), 100 + radii * np.sin(angles))


def scribbles(rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """A line through 14 places at random."""
    for _ in range(count):
        yield drawn(*rng.uniform(40, 160, (2, 14)))


def drawn(x: np.ndarray, y: np.ndarray) -> bytes:
    page = Image.new("L", (200, 200), 0)
    places = list(zip(x.tolist(), y.tolist(), strict=True))
    ImageDraw.Draw(page).line(places, 255, 11, "curve")
    return saved(np.asarray(page), 1)


def by_model(gallery: Path, photos: Path, data_dir: str | None, count: int, skip: int, seed: int):
    """Rows (model, its data set, percent of each kind that is called unlike).

    As in the app: a picture counts, too, where no single digit on a page was found in it.
    """
    rng = np.random.default_rng(seed)
    kinds = {
        "photographs": list(photographs(photos, rng, count, skip)),
        "letters": list(letters()),
        "stars": list(stars(rng, 100)),
        "scribbles": list(scribbles(rng, 100)),
    }
    for path in sorted(gallery.glob("*.safetensors")):
        checkpoint = Checkpoint.open(path)
        if checkpoint.header.scaling:
            continue  # of signals

        def strange(image: ModelInput, checkpoint=checkpoint) -> bool:
            return image.content != Content.DIGIT or bool(
                unlike_training(image, checkpoint, data_dir)
            )

        tested = load_dataset(checkpoint.config.dataset, data_dir).test.images
        inputs = {"its test images": [ModelInput(pixels, Content.DIGIT) for pixels in tested]}
        for kind, files in kinds.items():
            shape = checkpoint.header.input_shape
            inputs[kind] = [read_picture(file, shape, checkpoint.reads_digits) for file in files]
        shares = {kind: 100 * np.mean([*map(strange, images)]) for kind, images in inputs.items()}
        yield path.stem, checkpoint.config.dataset, shares


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
        rows = by_model(
            options.gallery,
            options.photos,
            options.data_dir,
            options.count,
            options.skip,
            options.seed,
        )
        for number, (model, data, shares) in enumerate(rows):
            if not number:
                print(f"{'% called unlike':42}{'learned from':>14}", *(f"{k:>16}" for k in shares))
            print(f"{model:42}{data:>14}", *(f"{share:16.1f}" for share in shares.values()))
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
