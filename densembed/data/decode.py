"""Any picture file, as an array of colours: the one place that knows file formats.

Everything an upload can do wrong (too large, not a picture, cut short, a decompression bomb) ends
here as an `ImageError` with a sentence for the person who sent it.
"""

import io
import os

import numpy as np
from PIL import Image, ImageOps

MAX_BYTES = 20 * 2**20
"""Largest picture file that is read, by the app as well: more than a telephone's camera makes."""

MAX_PIXELS = 25_000_000
"""Largest picture decoded. Phones send 12 million; 25 million RGBA pixels are 100 MB of memory."""

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
        multiplied into the colours.

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
        image.load()
        image = ImageOps.exif_transpose(image)
        return _deep_colours(image) if _is_deep(image) else _colours(image)
    except Exception as error:
        raise ImageError(
            "The picture file is damaged or incomplete: save or download it again."
        ) from error


def _read_bytes(source: bytes | str | os.PathLike) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
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
    # To RGBA Pillow only expands (palette, transparent colour, LA); it mixes nothing.
    if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA"):
        image = image.convert("RGB" if image.mode not in ("La", "RGBa") else "RGBA")
    return np.asarray(image.convert("RGBA"), np.float32) / 255
