"""The brightness of images that are not 8-bit: one scale, whatever they show."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from densembed.data import load_dataset
from densembed.data.decode import ENOUGH_PIXELS, decode
from densembed.data.images import read_picture
from tests.conftest import is_sentence

NEAR = 1e-6


def png(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


def tiff(values: np.ndarray, photometric: int = 1, order: str = "<", bits: int = 0) -> bytes:
    """An uncompressed TIFF of one strip, written here by the specification (TIFF 6.0)."""
    height, width = values.shape
    data = values.astype(values.dtype.newbyteorder(order)).tobytes()
    if bits == 12:  # two values in three bytes
        flat = values.astype(int).ravel()
        packed = np.stack([flat[::2] >> 4, (flat[::2] & 15) << 4 | flat[1::2] >> 8, flat[1::2]])
        data = (packed.T & 255).astype(np.uint8).tobytes()
    kinds = {"u": 1, "i": 2, "f": 3}
    short = {256: width, 257: height, 258: bits or 8 * values.itemsize, 259: 1}
    short |= {262: photometric, 273: 8, 277: 1, 278: height}
    tags = {tag: ("H", 3, value) for tag, value in short.items()}
    tags |= {279: ("I", 4, len(data)), 339: ("H", 3, kinds[values.dtype.kind])}
    entries = b"".join(
        struct.pack(f"{order}HHI", tag, kind, 1)
        + struct.pack(f"{order}{form}", value).ljust(4, b"\0")
        for tag, (form, kind, value) in sorted(tags.items())
    )
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8 + len(data))
    return head + data + struct.pack(f"{order}H", len(tags)) + entries + bytes(4)


def brightness(file: bytes) -> np.ndarray:
    rgba = decode(file)
    assert (rgba[..., 3] == 1).all()
    assert (rgba[..., 0] == rgba[..., 1]).all()
    assert (rgba[..., 0] == rgba[..., 2]).all()
    return rgba[..., 0]


RANGES = {
    "uint16": (np.array([[0, 200, 4095], [4096, 40000, 65535]], "u2"), 0, 65535),
    "int16": (np.array([[-32768, -1024, 0], [1, 3071, 32767]], "i2"), -32768, 32767),
    "uint32": (np.array([[0, 200, 4095], [4096, 40000, 65535]], "u4"), 0, 65535),
    "int32": (np.array([[0, 200, 4095], [4096, 40000, 65535]], "i4"), 0, 65535),
    "float32": (np.array([[0, 0.1, 0.25], [0.5, 0.75, 1]], "f4"), 0, 1),
    "int8": (np.array([[-128, -1, 0], [1, 100, 127]], "i1"), -128, 127),
}


@pytest.mark.parametrize(
    ("kind", "order"),
    # Pillow does not read big-endian unsigned integers of 32 bits.
    [(kind, order) for kind in RANGES for order in "<>" if (kind, order) != ("uint32", ">")],
)
def test_the_type_tells_the_scale_and_never_the_content(kind, order):
    values, black, white = RANGES[kind]
    expected = (values.astype(float) - black) / (white - black)
    whole = brightness(tiff(values, order=order))
    np.testing.assert_allclose(whole, expected, atol=NEAR)
    for row in range(2):  # the same pixels with others beside them, or with none
        part = brightness(tiff(values[row : row + 1], order=order))
        np.testing.assert_array_equal(part, whole[row : row + 1])


def test_a_deep_png_has_the_scale_of_its_16_bits():
    values = RANGES["uint16"][0]
    np.testing.assert_allclose(brightness(png(values)), values / 65535, atol=NEAR)
    np.testing.assert_allclose(brightness(png(values[:1])), values[:1] / 65535, atol=NEAR)


def test_a_file_of_12_bits_has_the_scale_of_12_bits():
    values = np.array([[0, 200, 400, 800], [1000, 2000, 3000, 4095]], "u2")
    np.testing.assert_allclose(brightness(tiff(values, bits=12)), values / 4095, atol=NEAR)
    np.testing.assert_allclose(brightness(tiff(values[:1], bits=12)), values[:1] / 4095, atol=NEAR)


@pytest.mark.parametrize("kind", ["uint16", "float32"])
def test_white_may_be_the_lowest_value(kind):
    values, _, white = RANGES[kind]
    found = brightness(tiff(values, photometric=0))
    np.testing.assert_allclose(found, 1 - values.astype(float) / white, atol=NEAR)


def test_values_out_of_range_are_black_or_white():
    floats = np.array([[np.nan, -np.inf, -1, 2, np.inf, 255]], "f4")
    assert brightness(tiff(floats)).tolist() == [[0, 0, 0, 1, 1, 1]]
    assert brightness(tiff(np.array([[65536, 2**31, 2**32 - 1]], "u4"))).tolist() == [[1, 1, 1]]
    assert brightness(tiff(np.array([[-(2**31), -1, 2**31 - 1]], "i4"))).tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("dtype", ["u2", "u4", "i2", "f4"])
def test_a_large_image_has_the_same_scale(dtype):
    values = np.full((2100, 2000), 1 if dtype == "f4" else 30000, dtype)
    values[:, ::2] = 0  # the mean of two columns after reduction
    assert values.size > ENOUGH_PIXELS
    small = decode(tiff(values))[..., 0]
    assert small.shape == (1050, 1000)
    expected = {"u2": 15000 / 65535, "u4": 15000 / 65535, "i2": 47768 / 65535, "f4": 0.5}[dtype]
    np.testing.assert_allclose(small, expected, atol=1e-4)


@pytest.fixture
def scans(tmp_path):
    """A folder of images of 16 bits, in each of which another value is the largest."""

    def make(largest: int):
        for label in ("bone", "lung"):
            for n in range(4):
                place = tmp_path / "scans" / label / f"{n}.tif"
                place.parent.mkdir(parents=True, exist_ok=True)
                values = np.zeros((8, 8), "u2")
                values[n:, ord(label[0]) % 8 :] = largest * (n + 1) // 4
                place.write_bytes(tiff(values))
        return tmp_path / "scans"

    return make


def test_one_image_is_read_as_those_of_its_folder(scans, tmp_path):
    root = scans(60000)
    data = load_dataset(f"folder:{root}", tmp_path / "data")
    images = {bytes(image.numpy()) for image in (*data.train.images, *data.test.images)}
    alone = [read_picture(file, (1, 8, 8), digit=False) for file in root.glob("*/*.tif")]
    assert {bytes(one.pixels.numpy()) for one in alone} == images
    assert {int(one.pixels.max()) for one in alone} == {
        round(255 * share * 15000 / 65535) for share in (1, 2, 3, 4)
    }
    assert not any("brightness" in note for note in data.notes)


def test_12_of_16_bits_are_almost_black_and_said_to_be(scans, tmp_path):
    root = scans(4095)
    (note,) = (
        note
        for note in load_dataset(f"folder:{root}", tmp_path / "data").notes
        if "brightness" in note
    )
    assert is_sentence(note)
    assert "8 images that are not 8-bit lie between 0 and 16 of 255, almost all black" in note
    alone = read_picture(root / "bone" / "3.tif", (1, 8, 8), digit=False)
    assert is_sentence(alone.note)
    assert "the picture lie between 0 and 16 of 255, almost all black" in alone.note


def test_one_of_the_images_of_a_folder_is_almost_black(scans, tmp_path):
    root = scans(4095)
    _, *others = sorted(root.glob("*/*.tif"))
    for other in others:
        Image.fromarray(np.full((8, 8), 10 * int(other.stem), np.uint8)).save(other)
    notes = " ".join(load_dataset(f"folder:{root}", tmp_path / "data").notes)
    assert "1 image that is not 8-bit lie between" in notes


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([[-1024, 0], [1000, 3071]], "i2"), "between 124 and 139 of 255, almost all grey"),
        (np.arange(400).reshape(20, 20).astype("f4"), "between 0 and 255 of 255, almost all white"),
    ],
)
def test_values_of_another_scale_are_named(values, said):
    note = read_picture(tiff(values), (1, *values.shape), digit=False).note
    assert is_sentence(note)
    assert said in note
