"""Any upload becomes the same input: place, size, polarity, file format and light do not matter."""

import contextlib
import io
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, PngImagePlugin
from scipy import ndimage
from sklearn.datasets import load_digits

from densembed.data.images import (
    MAX_BYTES,
    Content,
    ImageError,
    ModelInput,
    normalise_digit,
    read_picture,
)

SAMPLES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)  # the first of each class in scikit-learn's digits


def drawn(number: int, side: int = 160) -> np.ndarray:
    """Smooth ink in [0, 1], (side, side), of a real digit with a margin of a fifth."""
    small = load_digits().images[number].astype(np.float32) / 16
    inner = side * 3 // 5
    image = Image.fromarray(small).resize((inner, inner), Image.Resampling.BICUBIC)
    sharp = np.clip((np.asarray(image) - 0.4) / 0.2, 0, 1)
    return np.pad(sharp, [((side - inner) // 2, side - inner - (side - inner) // 2)] * 2)


def saved(array: np.ndarray, form: str = "PNG", mode: str | None = None, **options) -> bytes:
    """Encode [0, 1] grey or RGB(A) as a file."""
    image = Image.fromarray(np.rint(255 * np.clip(array, 0, 1)).astype(np.uint8))
    return encoded(image.convert(mode) if mode else image, form, **options)


def encoded(image: Image.Image, form: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def on_transparency(ink: np.ndarray, grey: float) -> np.ndarray:
    return np.dstack([np.full((*ink.shape, 3), grey), ink])


def placed(ink: np.ndarray, size: tuple[int, int], top: int, left: int) -> np.ndarray:
    page = np.zeros(size)
    page[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return page


def apart(a: ModelInput, b: ModelInput) -> float:
    """Mean difference, in shares of the mean ink: two different digits are some 1.0 apart."""
    assert a.content == b.content == Content.DIGIT
    x, y = a.pixels.double(), b.pixels.double()
    return float((x - y).abs().sum() / y.sum())


ALIKE = 0.12
"""Largest `apart` for the same digit shown otherwise: a fringe of a fraction of a pixel."""


def test_the_measure_tells_digits_apart():
    pictures = [read_picture(saved(drawn(number))) for number in SAMPLES]
    for i, a in enumerate(pictures):
        for b in pictures[:i]:
            assert apart(a, b) > 3 * ALIKE


def test_pixels_have_the_mnist_form():
    picture = read_picture(saved(drawn(3)))
    pixels = picture.pixels
    assert picture.has_ink
    assert pixels.dtype == torch.uint8
    assert pixels.shape == (1, 28, 28)
    rows, columns = np.nonzero(pixels[0].numpy() > 100)
    assert max(np.ptp(rows), np.ptp(columns)) + 1 in (19, 20, 21)
    ink = pixels[0].double()
    index = torch.arange(28).double()
    assert float((ink.sum(1) * index).sum() / ink.sum()) == pytest.approx(14, abs=0.3)
    assert float((ink.sum(0) * index).sum() / ink.sum()) == pytest.approx(14, abs=0.3)
    assert pixels.max() == 255
    assert pixels[0, 0].max() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 5])
def test_place_and_size_do_not_matter(number):
    """DFin/Neural-Network-Visualisation#3: a digit drawn off-centre was read as another one."""
    reference = read_picture(saved(drawn(number)))
    for side in (100, 160, 260):
        ink = drawn(number, side)
        far = 500 - side
        for top, left in ((0, 0), (0, far), (far, 0), (far, far)):
            other = read_picture(saved(1 - placed(ink, (500, 500), top, left)))
            assert apart(other, reference) < 2 * ALIKE, (side, top, left)


def test_polarity_does_not_matter():
    """sugyan/tensorflow-mnist#7: dark on light was read as another class."""
    for number in SAMPLES:
        ink = drawn(number)
        assert apart(read_picture(saved(1 - ink)), read_picture(saved(ink))) < ALIKE / 4


def test_strokes_on_transparency_are_the_ink_whatever_their_colour():
    """gradio-app/gradio#8198: dark strokes on transparency became all zeros."""
    for number in SAMPLES:
        ink = drawn(number)
        white_on_black = read_picture(saved(ink))
        dark = read_picture(saved(on_transparency(ink, 0.0)))
        white = read_picture(saved(on_transparency(ink, 1.0)))
        assert torch.equal(dark.pixels, white.pixels)
        assert apart(dark, white_on_black) < ALIKE


def test_a_digit_that_is_cut_out_of_a_sheet_is_the_ink():
    for number in SAMPLES:
        ink = drawn(number)
        drawn_on_paper = read_picture(saved(1 - ink))
        for grey in (1.0, 0.7, 0.1):
            cut_out = read_picture(saved(on_transparency(1 - ink, grey)))
            assert apart(cut_out, drawn_on_paper) < ALIKE


def test_dark_ink_on_a_sheet_with_transparent_corners():
    ink = drawn(3)
    y, x = np.mgrid[-1:1:160j, -1:1:160j]
    sheet = np.dstack([1 - ink, 1 - ink, 1 - ink, (np.abs(x) ** 8 + np.abs(y) ** 8) < 1])
    assert apart(read_picture(saved(sheet)), read_picture(saved(ink))) < ALIKE


def cmyk(ink: np.ndarray) -> bytes:
    return saved(1 - ink, "JPEG", "CMYK", quality=95)


def deep_png(ink: np.ndarray) -> bytes:
    return encoded(Image.fromarray(np.rint(65535 * (1 - 0.6 * ink)).astype(np.uint16)))


def deep_dark_tiff(ink: np.ndarray) -> bytes:
    """12 of 16 bits used."""
    return encoded(Image.fromarray(np.rint(4095 * ink).astype(np.uint16)), "TIFF")


def int_tiff(ink: np.ndarray) -> bytes:
    return encoded(Image.fromarray(np.rint(100000 * ink).astype(np.int32)), "TIFF")


def float_tiff(ink: np.ndarray) -> bytes:
    return encoded(Image.fromarray((1 - ink).astype(np.float32)), "TIFF")


def signed_tiff(ink: np.ndarray) -> bytes:
    """Values as a network takes them, from −1 to 1."""
    return encoded(Image.fromarray((1 - 2 * ink).astype(np.float32)), "TIFF")


def translucent(ink: np.ndarray, alpha: np.ndarray) -> bytes:
    return saved(np.dstack([1 - ink] * 3 + [np.broadcast_to(alpha, ink.shape)]))


def palette_with_transparency(ink: np.ndarray) -> bytes:
    image = Image.fromarray((ink > 0.5).astype(np.uint8), "P")
    image.putpalette([255, 255, 255, 0, 0, 0])
    return encoded(image, transparency=0)


FILES = {
    "RGBA": lambda ink: saved(np.dstack([1 - ink] * 3 + [np.ones_like(ink)])),
    "LA": lambda ink: saved(np.dstack([1 - ink] * 3 + [np.ones_like(ink)]), mode="LA"),
    "LA strokes": lambda ink: saved(on_transparency(ink, 0.0), mode="LA"),
    "faint strokes": lambda ink: saved(on_transparency(0.2 * ink, 0.0), mode="LA"),
    "translucent ink": lambda ink: translucent(ink, 1 - 0.65 * ink),
    "translucent paper": lambda ink: translucent(ink, 0.2 + 0.8 * ink),
    "all translucent": lambda ink: translucent(ink, np.float64(0.2)),
    "palette": lambda ink: saved(1 - ink, mode="P"),
    "palette with transparency": palette_with_transparency,
    "1 bit": lambda ink: saved(1 - ink, mode="1"),
    "CMYK JPEG": cmyk,
    "16-bit PNG": deep_png,
    "12-bit TIFF": deep_dark_tiff,
    "32-bit TIFF": int_tiff,
    "float TIFF": float_tiff,
    "signed TIFF": signed_tiff,
    "GIF": lambda ink: saved(1 - ink, "GIF"),
    "TIFF": lambda ink: saved(1 - ink, "TIFF"),
    "WebP": lambda ink: saved(1 - ink, "WEBP", quality=80),
    "BMP": lambda ink: saved(1 - ink, "BMP"),
    "JPEG": lambda ink: saved(1 - ink, "JPEG", quality=50),
}


@pytest.mark.parametrize("kind", FILES)
def test_file_formats_and_modes(kind):
    """imfing/keras-flask-deploy-webapp#23: a PNG of four channels ended in a shape's crash."""
    for number in (2, 5, 8):
        ink = drawn(number)
        assert apart(read_picture(FILES[kind](ink)), read_picture(saved(ink))) < ALIKE


@pytest.mark.parametrize("alpha", [0.25, 0.45])
@pytest.mark.parametrize("width", [9, 21])
@pytest.mark.parametrize("number", [2, 5, 8])
def test_a_halo_is_no_part_of_the_strokes(number, width, alpha):
    """White strokes with a translucent dark halo, cut to what can be seen, as of a sticker."""
    ink = ndimage.maximum_filter(drawn(number), 5)
    halo = ndimage.maximum_filter(ink, width) > 0.3
    opacity = np.maximum(ink, alpha * halo)
    rows, columns = (np.nonzero(halo.max(axis))[0] for axis in (1, 0))
    part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    sticker = np.dstack([np.where(ink > 0.3, 1.0, 0.0)] * 3 + [opacity])[part]
    assert apart(read_picture(saved(sticker)), read_picture(saved(ink))) < 0.2


@pytest.mark.parametrize(
    ("orientation", "turns"), [(3, 2), (6, 1), (8, 3)], ids=lambda value: str(value)
)
def test_exif_orientation(orientation, turns):
    """streamlit#6809: photographs lay on their side."""
    ink = drawn(4)
    exif = Image.Exif()
    exif[0x0112] = orientation
    # Stored turned the other way (np.rot90 is anticlockwise), shown upright.
    file = saved(np.rot90(1 - ink, turns), "JPEG", quality=95, exif=exif)
    assert apart(read_picture(file), read_picture(saved(ink))) < ALIKE


def test_a_picture_with_a_long_text_is_read():
    """Editors save their whole history as text, of which Pillow by default takes 1 MiB."""
    notes = PngImagePlugin.PngInfo()
    notes.add_text("history", "a" * (3 * 2**20), zip=True)
    notes.add_itxt("XML:com.adobe.xmp", "b" * (2 * 2**20), zip=True)
    ink = drawn(3)
    found, plain = (read_picture(saved(ink, **how)) for how in ({"pnginfo": notes}, {}))
    assert torch.equal(found.pixels, plain.pixels)


def test_only_the_first_frame_counts():
    first, second = (
        Image.fromarray(np.uint8(255 * (1 - drawn(number)))).convert("P") for number in (2, 7)
    )
    file = encoded(first, "GIF", save_all=True, append_images=[second])
    assert apart(read_picture(file), read_picture(saved(drawn(2)))) < ALIKE


def test_a_path_is_read(tmp_path):
    path = tmp_path / "4.picture"  # neither the name nor the extension matters
    path.write_bytes(saved(drawn(1)))
    from_bytes = read_picture(saved(drawn(1)))
    assert torch.equal(read_picture(path).pixels, from_bytes.pixels)
    assert torch.equal(read_picture(str(path)).pixels, from_bytes.pixels)


# --- photographs ------------------------------------------------------------------------------


def photographed(ink: np.ndarray, pen: tuple[float, float, float] = (0.1, 0.1, 0.3)) -> np.ndarray:
    """RGB on warm paper."""
    paper = np.array([0.95, 0.93, 0.85])
    return paper * (1 - ink[..., None]) + np.array(pen) * ink[..., None]


def shade(ink: np.ndarray) -> np.ndarray:
    """A page of which a hard shadow covers half, in light that falls off."""
    y, x = np.mgrid[0 : 1 : ink.shape[0] * 1j, 0 : 1 : ink.shape[1] * 1j]
    return (1 - 0.3 * y) * np.where(x + 0.4 * y > 0.7, 0.6, 1.0)


def noisy(rgb: np.ndarray, deviation: float) -> np.ndarray:
    return rgb + np.random.default_rng(0).normal(0, deviation, rgb.shape)


def framed(rgb: np.ndarray) -> np.ndarray:
    out = np.full((rgb.shape[0] + 40, rgb.shape[1] + 40, 3), 0.2)
    out[20:-20, 20:-20] = rgb
    return out


def with_cursor(rgb: np.ndarray) -> np.ndarray:
    rgb = rgb.copy()
    rgb[4:16, 4:16] = (0.9, 0.1, 0.1)
    return rgb


def boxed(ink: np.ndarray) -> np.ndarray:
    ink = ink.copy()
    for line in (slice(6, 9), slice(-9, -6)):
        ink[line, 6:-6] = 1
        ink[6:-6, line] = 1
    return ink


PHOTOGRAPHS = {
    "shadow": lambda ink: photographed(ink) * shade(ink)[..., None],
    "noise": lambda ink: noisy(photographed(ink), 0.08),
    "low contrast": lambda ink: noisy(photographed(0.25 * ink), 0.01),
    "light blue pen": lambda ink: photographed(ink, (0.55, 0.8, 0.95)),
    "border": lambda ink: framed(photographed(ink)),
    "drawn box": lambda ink: photographed(boxed(ink)),
    "cursor": lambda ink: with_cursor(photographed(ink)),
    "blur": lambda ink: photographed(ndimage.gaussian_filter(ink, 3)),
}


@pytest.mark.parametrize("kind", PHOTOGRAPHS)
def test_photographs(kind):
    for number in (1, 2, 4, 6):
        ink = drawn(number)
        picture = read_picture(saved(PHOTOGRAPHS[kind](ink), "JPEG", quality=85))
        assert apart(picture, read_picture(saved(ink))) < 3 * ALIKE, number


def stroked(points: list[tuple[float, float]], side: int, width: float) -> np.ndarray:
    """Ink in [0, 1] along straight lines between points in [0, 1], given as (x, y)."""
    image = Image.new("L", (4 * side, 4 * side))
    line = [(4 * side * x, 4 * side * y) for x, y in points]
    ImageDraw.Draw(image).line(line, 255, round(4 * side * width), "curve")
    return np.asarray(image.resize((side, side), Image.Resampling.BOX), np.float32) / 255


def hooked_six(side: int) -> np.ndarray:
    """A 6 that fills the page, whose upper end is bent down far on the right."""
    turn = np.linspace(0.08, 1, 40)
    hook = [(0.48 - 0.3 * np.cos(np.pi * t), 0.36 - 0.28 * np.sin(np.pi * t)) for t in 1 - turn]
    back = [(0.18, 0.5), (0.2, 0.66)]
    loop = 2 * np.pi * np.linspace(0, 1, 60)
    bowl = [(0.48 - 0.28 * np.cos(t), 0.7 - 0.2 * np.sin(t)) for t in loop]
    return stroked([*hook, *back, *bowl], side, 0.06)


def crayon_on_creased_paper(ink: np.ndarray) -> np.ndarray:
    """Red strokes with gaps in them, on brownish paper with two creases and their shades."""
    rng = np.random.default_rng(5)
    side = len(ink)
    hatch = ndimage.gaussian_filter(rng.normal(size=ink.shape), (side / 40, side / 300))
    gaps = ndimage.gaussian_filter((hatch > 1.2 * hatch.std()).astype(np.float32), 0.7)
    cover = (ink * (1 - 0.7 * gaps))[..., None]
    y, x = np.mgrid[0 : 1 : side * 1j, 0 : 1 : side * 1j]
    light = 1 - 0.12 * np.hypot(x - 0.5, y - 0.5)
    light *= 1 - 0.12 * (x > 0.38) * np.exp(-(x - 0.38) / 0.1)
    light += 0.05 * np.exp(-(((x - 0.38) / 0.008) ** 2)) + 0.05 * np.exp(
        -(((y - 0.6) / 0.006) ** 2)
    )
    page = np.array([0.72, 0.66, 0.6]) * (1 - cover) + np.array([0.75, 0.2, 0.25]) * cover
    return noisy(page * light[..., None], 0.01)


@pytest.mark.slow
def test_crayon_on_creased_paper_is_read_as_it_was_drawn():
    ink = hooked_six(640)
    picture = read_picture(saved(crayon_on_creased_paper(ink), "JPEG", quality=85))
    assert picture.clean
    assert apart(picture, read_picture(saved(ink))) < 2 * ALIKE


def test_a_small_digit_with_serif_and_foot_on_an_opaque_alpha_is_read_as_it_was_drawn():
    """28 pixels wide, off-centre, with an opaque alpha channel."""
    strokes = [[(0.2, 0.27), (0.5, 0.07), (0.36, 0.7)], [(0.08, 0.75), (0.75, 0.75)]]
    large = sum(stroked(points, 560, 0.11) for points in strokes).clip(0, 1)
    small = np.asarray(Image.fromarray(large).resize((28, 28), Image.Resampling.BOX))
    opaque = Image.fromarray(np.rint(255 * small).astype(np.uint8)).convert("LA")
    picture = read_picture(encoded(opaque))
    assert picture.clean
    assert apart(picture, read_picture(saved(large))) < 2 * ALIKE
    expected = torch.from_numpy(normalise_digit(large))[None]
    assert apart(picture, ModelInput(expected, Content.DIGIT)) < 2 * ALIKE


def test_a_thin_pen_is_thickened_to_the_width_of_mnist():
    y, x = np.mgrid[:500, :500]
    ring = np.abs(np.hypot(x - 250, y - 250) - 200) < 1  # 2 of 400 pixels: 0.1 of 20
    picture = read_picture(saved(1.0 - ring))
    assert picture.content == Content.DIGIT
    across = picture.pixels[0, 14, :14].double().sum() / 255
    assert 1.5 < float(across) < 3


def test_a_separate_stroke_is_part_of_the_digit():
    ink = np.zeros((200, 200))
    ink[60:150, 60:70] = ink[150:160, 60:120] = ink[100:110, 60:120] = ink[100:160, 110:120] = 1
    with_bar = ink.copy()
    with_bar[40:50, 65:130] = 1  # ten pixels over the rest, as a 5's bar may be
    assert apart(read_picture(saved(with_bar)), read_picture(saved(ink))) > 2 * ALIKE


# --- nothing, or too much ---------------------------------------------------------------------


def gradient(turn: int) -> np.ndarray:
    return np.rot90(np.tile(np.linspace(0, 1, 200), (150, 1)), turn)


NOTHING = {
    "white": np.ones((128, 128)),
    "black": np.zeros((60, 200)),
    "grey": np.full((300, 20), 0.4),
    "transparent": np.zeros((40, 40, 4)),
    "transparent white": on_transparency(np.zeros((1, 1)), 1.0),
    "one pixel": np.ones((1, 1)),
    "a row": np.ones((1, 500)),
    "gradient": gradient(0),
    "gradient down": gradient(1),
    "vignette": np.clip(1 - np.hypot(*np.mgrid[-1:1:300j, -1:1:300j]) ** 2 / 3, 0, 1),
    "noise": np.random.default_rng(1).normal(0.5, 0.1, (300, 400, 3)),
    "uniform noise": np.random.default_rng(2).uniform(0, 1, (64, 64)),
    "specks": 1.0 * (np.random.default_rng(3).random((300, 300)) > 0.999),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_no_ink(kind):
    """r4ghu/iOS-CoreML-MNIST#3: a class was predicted of nothing."""
    files = [saved(NOTHING[kind])]
    if NOTHING[kind].ndim == 2:
        files.append(saved(NOTHING[kind], "JPEG", quality=70))
    for file in files:
        picture = read_picture(file)
        assert picture.content == Content.BLANK
        assert not picture.has_ink
        assert picture.pixels.shape == (1, 28, 28)
        assert not picture.pixels.any()


def test_several_digits():
    row = np.hstack([drawn(2), drawn(0), drawn(6)])
    for page in (row, 1 - row, np.hstack([drawn(1), drawn(1)]), np.vstack([drawn(3), drawn(5)])):
        picture = read_picture(saved(page))
        assert picture.content == Content.SEVERAL_DIGITS
        assert picture.has_ink
        assert picture.pixels.any()
    first, alone = read_picture(saved(row)).pixels, read_picture(saved(drawn(2))).pixels
    assert torch.equal(first, alone) or (first.double() - alone.double()).abs().mean() < 4


@pytest.mark.slow
def test_every_single_digit_is_one():
    contents = [read_picture(saved(1 - drawn(number, 100))).content for number in range(60)]
    assert contents.count(Content.DIGIT) >= 58


# --- files that are no picture ----------------------------------------------------------------


def bomb() -> bytes:
    """A PNG whose header declares 20,000 x 20,000 pixels."""
    data = bytearray(encoded(Image.new("L", (8, 8))))
    data[16:24] = (20_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    return bytes(data)


ERRORS = {
    "empty": (b"", "empty"),
    "web page": (b"<!DOCTYPE html><html><body>503</body></html>", "web page"),
    "svg": (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
    "heic": (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEIC"),
    "text": (b"seven", "not a picture"),
    "too large": (b"\x89PNG" + bytes(MAX_BYTES), "larger than 40 MiB"),
    "bomb": (bomb(), "far too many pixels"),
    "too many pixels": (encoded(Image.new("1", (6000, 5000))), "6000 x 5000"),
    **{
        f"format {name}": (
            encoded(Image.new(mode, (16, 16)), kind),
            f"The format {name} is not read",
        )
        for kind, mode, name in (
            *(("PPM", mode, "PPM") for mode in ("1", "L", "RGB", "F")),
            *(("TGA", mode, "TGA") for mode in ("1", "L", "LA", "P", "RGB", "RGBA")),
            *(("PCX", mode, "PCX") for mode in ("1", "L", "P", "RGB")),
            *((kind, "RGB", kind) for kind in ("ICO", "ICNS", "SGI", "DDS")),
            ("EPS", "RGB", "EPS"),
            ("JPEG2000", "RGB", "JPEG 2000"),
        )
    },
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_say_what_is_wrong(kind):
    data, words = ERRORS[kind]
    with pytest.raises(ImageError, match=words) as caught:
        read_picture(data)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 160


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_truncated_files(form):
    whole = saved(noisy(photographed(drawn(3)), 0.05), form)
    for share in (0.03, 0.5, 0.8):
        with pytest.raises(ImageError, match=r"damaged|not a picture"):
            read_picture(whole[: int(share * len(whole))])


def test_too_little_memory_is_not_called_damage(monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError

    for place in ("_colours", "Image.open"):
        with monkeypatch.context() as patch:
            patch.setattr(f"densembed.data.decode.{place}", exhausted)
            with pytest.raises(ImageError, match="too little memory to read the picture"):
                read_picture(saved(drawn(3)))


def test_missing_files_and_folders(tmp_path):
    remedies = {tmp_path / "none.png": "check its name and place", tmp_path: "name the files in it"}
    for path, remedy in remedies.items():
        with pytest.raises(ImageError, match=rf"cannot be read \(.*\): {remedy}\.$"):
            read_picture(path)


@given(st.binary(max_size=200), st.sampled_from((b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM")))
@settings(max_examples=60)
def test_any_bytes_are_a_picture_or_an_image_error(data, head):
    with contextlib.suppress(ImageError):
        assert isinstance(read_picture(head + data), ModelInput)


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_any_small_picture_gives_pixels(height, width, mode, seed):
    rng = np.random.default_rng(seed)
    if mode == "I;16":
        image = Image.fromarray(rng.integers(0, 65536, (height, width)).astype(np.uint16))
    else:
        image = Image.fromarray(rng.integers(0, 256, (height, width, 4)).astype(np.uint8))
        image = image.convert("RGB").convert(mode) if mode == "P" else image.convert(mode)
    picture = read_picture(encoded(image))
    assert picture.pixels.shape == (1, 28, 28)
    assert picture.has_ink == bool(picture.pixels.any())


# --- other inputs -----------------------------------------------------------------------------


def test_other_sizes_keep_the_proportions():
    small = read_picture(saved(drawn(3)), (1, 14, 14)).pixels
    large = read_picture(saved(drawn(3)), (1, 56, 56)).pixels
    wide = read_picture(saved(drawn(3)), (1, 28, 40)).pixels
    assert small.shape == (1, 14, 14)
    assert large.shape == (1, 56, 56)
    assert wide.shape == (1, 28, 40)
    rows, columns = np.nonzero(large[0].numpy() > 100)
    assert max(np.ptp(rows), np.ptp(columns)) + 1 in (39, 40, 41)
    rows, columns = np.nonzero(wide[0].numpy() > 100)
    assert np.ptp(rows) + 1 in (19, 20, 21)
    assert 12 < columns.mean() < 28


def test_a_colour_picture_is_cropped_at_its_centre():
    rgb = np.zeros((64, 128, 3))
    rgb[:, :32] = (0, 1, 0)  # cropped away
    rgb[:32, 32:96] = (1, 0, 0)
    rgb[32:, 32:96] = (0, 0, 1)
    picture = read_picture(saved(rgb), (3, 32, 32))
    assert picture.content == Content.IMAGE
    assert picture.has_ink
    assert picture.pixels.dtype == torch.uint8
    assert picture.pixels.shape == (3, 32, 32)
    assert picture.pixels[:, 4, 16].tolist() == [255, 0, 0]
    assert picture.pixels[:, 28, 16].tolist() == [0, 0, 255]
    assert picture.pixels[1].max() < 30
    grey = read_picture(saved(rgb), (1, 32, 32), digit=False).pixels
    assert grey.shape == (1, 32, 32)
    assert grey[0, 4, 16] == 76
    assert grey[0, 28, 16] == 29


def test_a_transparent_colour_picture_lies_on_white():
    half = np.dstack([np.zeros((32, 32, 3)), np.full((32, 32), 128 / 255)])
    assert read_picture(saved(half), (3, 8, 8)).pixels.unique().tolist() == [127]


def test_shapes_no_picture_can_have():
    for shape in ((2, 28, 28), (1, 0, 28), (0, 28, 28)):
        with pytest.raises(ValueError, match="input_shape"):
            read_picture(saved(drawn(3)), shape)


# --- normalise_digit --------------------------------------------------------------------------


def test_normalising_small_digits():
    for ink in load_digits().images[:50] / 16:
        pixels = normalise_digit(ink)
        assert pixels.dtype == np.uint8
        assert pixels.shape == (28, 28)
        assert pixels.max() == 255
        rows, columns = np.nonzero(pixels > 40)
        assert 17 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 23


def test_normalising_does_not_shift_with_the_place():
    ink = drawn(6, 60)
    once = normalise_digit(ink)
    assert np.array_equal(normalise_digit(np.roll(ink, (7, -5), (0, 1))), once)
    assert np.array_equal(normalise_digit(np.pad(ink, 33)), once)


def test_normalising_a_normalised_digit_changes_little():
    for number in SAMPLES:
        once = normalise_digit(drawn(number)).astype(float)
        twice = normalise_digit(once / 255).astype(float)
        assert np.abs(twice - once).sum() < 0.15 * once.sum()


@pytest.mark.parametrize("ink", [np.zeros((8, 8)), np.zeros((0, 5)), np.zeros((1, 1))])
def test_normalising_nothing(ink):
    assert not normalise_digit(ink).any()


def test_normalising_keeps_lopsided_ink_inside():
    ink = np.zeros((40, 40))
    ink[:12, :12] = 1  # a heavy corner
    ink[11, :] = ink[:, 11] = 1
    pixels = normalise_digit(ink)
    assert pixels[:, -1].max() > 0 or pixels[:, -2].max() > 0 or pixels[:, -3].max() > 0
    columns = np.nonzero(pixels.max(0) > 40)[0]
    assert np.ptp(columns) + 1 >= 19
