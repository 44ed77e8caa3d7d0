"""Any picture file, as an array of colours: the one place that knows file formats.

Everything an upload can do wrong (too large, not a picture, cut short, a decompression bomb) ends
here as an `ImageError` with a sentence for the person who sent it.
"""

import io
import math
import os

import numpy as np
from PIL import ExifTags, Image, ImageOps

MAX_BYTES = 20 * 2**20
"""Largest picture file that is read, by the app as well: more than a telephone's camera makes."""

MAX_PIXELS = 25_000_000
"""Largest picture decoded. Phones send 12 million; 25 million RGBA pixels are 100 MB of memory."""

ENOUGH_PIXELS = 4_000_000
"""A larger picture is made smaller while it is decoded: a digit needs no more to be found."""

STRIP_PIXELS = 2**20
"""Pixels of a large picture that are converted at once: bounds the memory beside the decoder's."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
_KNOWN = "PNG, JPEG, WebP, BMP, GIF or TIFF"
_DEEP_MODES = ("I", "F")  # and every "I;16…": more than 8 bits a channel, one channel


class ImageError(ValueError):
    """A picture that cannot be used; the message says what is wrong and what to do."""


def decode(source: bytes | str | os.PathLike) -> np.ndarray:
    """Decode the first frame of a picture, turned the right way up.

    Args:
        source: the file's bytes, or the path of a file.

    Returns:
        float32 array of shape (height, width, 4): red, green, blue and alpha in [0, 1], alpha not
        multiplied into the colours. A picture of more than `ENOUGH_PIXELS` is reduced to fewer, by
        the smallest whole factor.

    Raises:
        ImageError: no such file, more than `MAX_BYTES` or `MAX_PIXELS`, not a picture in one of
            `FORMATS`, or a damaged one.
    """
    data = _read_bytes(source)
    image = open_picture(data)
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(
            f"The picture is {image.width} x {image.height} pixels; at most "
            f"{MAX_PIXELS // 10**6} million are read: make it smaller and try again."
        )
    # Pillow's decoders raise nearly anything on damaged data (OSError, SyntaxError, struct.error,
    # zlib.error, IndexError), so no shorter list of exceptions is safe.
    try:
        image = ImageOps.exif_transpose(_reduced(image))
        return _deep_colours(image) if _is_deep(image) else _colours(image)
    except Exception as error:
        raise ImageError(
            "The picture file is damaged or incomplete: save or download it again."
        ) from error


def _read_bytes(source: bytes | str | os.PathLike) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        if os.path.exists(source) and not os.path.isfile(source) and not os.path.isdir(source):
            raise ImageError("The picture is not a file: choose another one.")
        try:
            with open(source, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ImageError(
                f"The picture file cannot be read ({error.strerror}): check its name and place."
            ) from error
    if not data:
        raise ImageError("The picture file is empty (0 bytes): choose another file.")
    if len(data) > MAX_BYTES:
        raise ImageError(
            f"The picture file is larger than {MAX_BYTES // 2**20} MiB: "
            "make the picture smaller or save it as JPEG."
        )
    return data


def open_picture(data: bytes) -> Image.Image:
    """A picture with its head read and its pixels not yet. Raises ImageError as `decode`."""
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(
            f"The picture has far too many pixels; at most {MAX_PIXELS // 10**6} million are "
            "read: make it smaller and try again."
        ) from error
    except Exception as error:
        raise ImageError(_what_else(data)) from error


def _what_else(data: bytes) -> str:
    """Name the usual files that are no pictures here, by their first bytes."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if data[4:8] == b"ftyp":
        kind = "a HEIC, AVIF or video file"
    elif head.startswith(b"%pdf"):
        kind = "a PDF document"
    elif b"<svg" in head:
        kind = "an SVG drawing"
    elif head.startswith(b"<"):
        kind = "a web page"
    else:
        return f"The file is not a picture that can be read: save it as {_KNOWN}."
    return f"The file is {kind}, not a picture that can be read: save it as {_KNOWN}."


def _reduced(image: Image.Image) -> Image.Image:
    """The loaded picture, reduced in stages where it is large.

    A JPEG decoder leaves out what is not needed. Other decoders need the whole picture in its own
    mode; all that is larger, such as RGBA, is then made strip by strip.
    """
    orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    if (factor := _factor(image)) > 1:
        image.draft(None, (image.width // factor, image.height // factor))
    image.load()
    if (factor := _factor(image)) == 1:
        return image
    rows = max(1, STRIP_PIXELS // image.width // factor) * factor
    strips = []
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        if _is_deep(image):
            strip = strip if image.mode == "F" else strip.convert("I")
        else:
            strip = _as_rgba(strip)
        strips.append(strip.reduce(factor))
    size = strips[0].width, sum(strip.height for strip in strips)
    small = Image.new(strips[0].mode, size)
    top = 0
    for strip in strips:
        small.paste(strip, (0, top))
        top += strip.height
    small.getexif()[ExifTags.Base.Orientation] = orientation
    return small


def _factor(image: Image.Image) -> int:
    """The smallest whole factor that brings a picture to `ENOUGH_PIXELS`."""
    return max(1, math.ceil(math.sqrt(image.width * image.height / ENOUGH_PIXELS)))


def _is_deep(image: Image.Image) -> bool:
    return image.mode in _DEEP_MODES or image.mode.startswith("I;16")


def _deep_colours(image: Image.Image) -> np.ndarray:
    """16- or 32-bit grey. Pillow's own conversion to 8 bits clips all that is over 255 to white."""
    grey = np.nan_to_num(np.asarray(image, np.float64), posinf=0.0, neginf=0.0)
    grey = grey - min(grey.min(), 0.0)
    # The file does not say how many of its bits are used: 12 of 16 are common in scans.
    brightest = grey.max()
    scale = next((s for s in (1.0, 255.0, 4095.0, 65535.0) if brightest <= s), brightest)
    grey = (grey / scale).astype(np.float32)
    return np.stack([grey, grey, grey, np.ones_like(grey)], axis=-1)


def _colours(image: Image.Image) -> np.ndarray:
    return np.asarray(_as_rgba(image), np.float32) / 255


def _as_rgba(image: Image.Image) -> Image.Image:
    # To RGBA Pillow only expands (palette, transparent colour, LA); it mixes nothing.
    if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA"):
        image = image.convert("RGB" if image.mode not in ("La", "RGBa") else "RGBA")
    return image.convert("RGBA")
