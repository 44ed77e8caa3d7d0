"""Decodes image files of all supported formats to arrays of colours.

Every fault of an upload (too large, not an image, truncated, a decompression bomb) raises an
`ImageError` with one sentence for the user.
"""

import contextlib
import io
import math
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pi_heif
import torch
from PIL import ExifTags, Image, ImageOps, PngImagePlugin
from PIL.WebPImagePlugin import WebPImageFile

from densembed.data.levels import levels
from densembed.files import read_regular
from densembed.text import printable

MAX_BYTES = 40 * 2**20
"""Largest image file, also in the app. Photographs of phones are smaller."""

MAX_PIXELS = 25_000_000
"""Largest image. Phones have 12 million pixels; 25 million RGBA pixels take 100 MB of memory."""

MAX_JPEG_PIXELS = 50_000_000
"""Largest JPEG, the format of phones' largest photographs, which its decoder can reduce itself."""

ENOUGH_PIXELS = 4_000_000
"""Larger images are reduced during decoding, as detecting a digit needs no more pixels."""

STRIP_PIXELS = 2**20
"""Pixels of a large image that are converted at once, which limits the memory."""

FORMATS = ("PNG", "JPEG", "HEIF", "AVIF", "WEBP", "BMP", "GIF", "TIFF")
_FORMAT_NAMES = "PNG, JPEG, HEIC, AVIF, WebP, BMP, GIF or TIFF"
_OTHERS = {
    rb"P[1-7f]\s": "PPM",  # also PBM, PGM, PAM and PFM
    rb"\x00\x00[\x01\x02]\x00[^\x00]\x00": "ICO",  # also CUR
    rb"icns": "ICNS",
    rb"\x0a[\x00\x02\x03\x05]\x01[\x01\x02\x04\x08]": "PCX",
    rb"8BPS": "PSD",
    rb"gimp xcf": "XCF",
    rb"\x00\x00\x00\x0cjP  |\xff\x4f\xff\x51": "JPEG 2000",
    rb"\x00\x00\x00\x0cJXL |\xff\x0a": "JPEG XL",
    rb"DDS ": "DDS",
    rb"qoif": "QOI",
    rb"v/1\x01": "OpenEXR",
    rb"#\?RADIANCE": "HDR",
    rb"%!PS|\xc5\xd0\xd3\xc6": "EPS",
    rb"SIMPLE  =": "FITS",
    rb"/\* XPM": "XPM",
    rb".{128}DICM": "DICOM",
    rb"\x01\xda[\x00\x01][\x01\x02]": "SGI",
    rb".[\x00\x01][\x01-\x03\x09-\x0b].{13}[\x08\x0f\x10\x18\x20][\x00-\x3f]": "TGA",  # has no mark
}
"""How files of other formats of images begin."""

pi_heif.register_heif_opener()  # adds HEIC, which Pillow does not decode itself
PngImagePlugin.MAX_TEXT_CHUNK = 2**24  # by default, a PNG with more than 1 MiB of text is an error


class ImageError(ValueError):
    """An image that cannot be used. The message says what is wrong and what to do.

    Attributes:
        which: in a sentence about several files, which ones have this fault; empty for files that
            are no images of a known format.
    """

    def __init__(self, message: str, which: str = ""):
        super().__init__(message)
        self.which = which


class UnreadableError(ImageError):
    """A file that the system does not give, or for which memory lacks: later it may be read."""


def decode(source: bytes | str | os.PathLike) -> np.ndarray:
    """Decode the first frame of an image, rotated by its EXIF orientation.

    Args:
        source: the file's bytes, or its path.

    Returns:
        float32 array of shape (height, width, 4): red, green, blue and alpha in [0, 1], alpha is
        not multiplied into the colours. Grey values that are not unsigned 8-bit integers are scaled
        by their data type, see `densembed.data.levels`. An image of more than `ENOUGH_PIXELS` is
        reduced by the smallest sufficient integer factor.

    Raises:
        ImageError: the file does not exist, has more than `MAX_BYTES` or too many pixels, is
            damaged, or has none of the `FORMATS`.
    """
    data = read_bytes(source)
    image = open_picture(data)
    # An MPO is a JPEG with further pictures behind it, as phones and cameras write them.
    most = MAX_JPEG_PIXELS if image.format in ("JPEG", "MPO") else MAX_PIXELS
    if image.width * image.height > most:
        raise ImageError(
            f"The picture is {image.width} x {image.height} pixels; at most "
            f"{most // 10**6} million are read: make it smaller and try again.",
            f"with more than {most // 10**6} million pixels",
        )
    with reading_pixels():
        return _colours(ImageOps.exif_transpose(_reduced(image, data)))


@contextlib.contextmanager
def reading_pixels() -> Iterator[None]:
    """Raise an ImageError for whatever goes wrong with an image whose head has been read."""
    # Pillow raises many kinds of exceptions on damaged data (OSError, SyntaxError, struct.error,
    # zlib.error, IndexError), so no list of them would be complete.
    try:
        yield
    except ImageError:
        raise
    except MemoryError as error:
        raise _too_little_memory() from error
    except Exception as error:
        raise ImageError(
            "The picture file is damaged or incomplete: save or download it again.",
            "that are damaged or incomplete",
        ) from error


def _too_little_memory() -> UnreadableError:
    return UnreadableError(
        "There is too little memory to read the picture: end other programs, or make it smaller.",
        "for which there was too little memory",
    )


def read_bytes(source: bytes | str | os.PathLike) -> bytes:
    """The content of a file. Raises the ImageErrors of `decode` about files."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        try:
            data = read_regular(source, MAX_BYTES + 1)
        except OSError as error:
            folder = isinstance(error, IsADirectoryError)
            remedy = "name the files in it" if folder else "check its name and place"
            raise UnreadableError(
                f"The picture file {printable(source)} cannot be read ({error.strerror}): "
                f"{remedy}.",
                f"that cannot be read ({error.strerror})",
            ) from error
        except MemoryError as error:
            raise _too_little_memory() from error
    if not data:
        raise ImageError("The picture file is empty (0 bytes): choose another file.")
    if len(data) > MAX_BYTES:
        raise ImageError(
            f"The picture file is larger than {MAX_BYTES // 2**20} MiB: "
            "make the picture smaller or save it as JPEG.",
            f"larger than {MAX_BYTES // 2**20} MiB",
        )
    return data


def open_picture(data: bytes) -> Image.Image:
    """Open an image and read its head only. Raises the ImageErrors of `decode`."""
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(
            f"The picture has far too many pixels; at most {MAX_PIXELS // 10**6} million are "
            "read: make it smaller and try again.",
            f"with more than {MAX_PIXELS // 10**6} million pixels",
        ) from error
    except MemoryError as error:
        raise _too_little_memory() from error
    except Exception as error:
        raise _other_file(data) from error


def _other_file(data: bytes) -> ImageError:
    """An error that names the type of a file that is not read, if it is recognised."""
    for start, name in _OTHERS.items():
        if re.match(start, data, re.DOTALL):
            return ImageError(
                f"The format {name} is not read: save the picture as {_FORMAT_NAMES}.",
                f"in the format {name}, which is not read,",
            )
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if data[4:8] == b"ftyp":
        kind = "a video, or a damaged HEIC or AVIF file"
    elif head.startswith(b"%pdf"):
        kind = "a PDF document"
    elif b"<svg" in head:
        kind = "an SVG drawing"
    elif head.startswith(b"<"):
        kind = "a web page"
    else:
        return ImageError(
            f"The file is not a picture that can be read: save it as {_FORMAT_NAMES}."
        )
    return ImageError(
        f"The file is {kind}, not a picture that can be read: save it as {_FORMAT_NAMES}."
    )


def _reduced(image: Image.Image, data: bytes) -> Image.Image:
    """Load an image, given its file, and reduce it if it is large; one with `levels` in mode F.

    A JPEG decoder can skip details. Other decoders need memory for the whole image in its own mode;
    it is then converted to larger modes such as RGBA in strips.
    """
    opened = image
    if (factor := _factor(image)) > 1:
        image.draft(None, (image.width // factor, image.height // factor))
    if factor > 1 and isinstance(image, WebPImageFile):
        image = _decoded_webp(image, data)
    image.load()
    deep = levels(opened)
    if (factor := _factor(image)) == 1 and not deep:
        return image
    rows = max(1, STRIP_PIXELS // image.width // factor) * factor
    mode = "F" if deep else "RGBA"
    small = Image.new(mode, (-(-image.width // factor), -(-image.height // factor)))
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        strip = Image.fromarray(deep.grey(strip)) if deep else as_rgba(strip)
        small.paste(strip.reduce(factor), (0, top // factor))
    # Looked up after loading, by which Pillow turns a TIFF and removes its orientation.
    orientation = opened.getexif().get(ExifTags.Base.Orientation, 1)
    small.getexif()[ExifTags.Base.Orientation] = orientation
    return small


def _decoded_webp(image: WebPImageFile, data: bytes) -> Image.Image:
    """The pixels of a large image, in memory that is not copied.

    Pillow decodes every file as an animation, which takes four times the memory of a still image.
    """
    if image.n_frames == 1 and (decode_still := _webp_decoder()):
        planes = decode_still(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        return Image.fromarray(planes.permute(1, 2, 0).numpy())
    pixels, _ = image._decoder.get_next()
    return Image.frombuffer(image.rawmode, image.size, pixels, "raw", image.rawmode, 0, 1)


@lru_cache(maxsize=1)
def _webp_decoder() -> Callable[[torch.Tensor], torch.Tensor] | None:
    """The operator of `torchvision.io.decode_webp`, or None if this torchvision has none.

    It is loaded by itself, as importing torchvision takes another 150 MB.
    """
    try:
        (folder,) = find_spec("torchvision").submodule_search_locations  # type: ignore[union-attr,misc]
        (library,) = Path(folder).glob("image*.so")
        torch.ops.load_library(str(library))
        return partial(torch.ops.image.decode_webp, mode=0)  # all channels
    except (AttributeError, OSError, RuntimeError, TypeError, ValueError):
        return None


def _factor(image: Image.Image) -> int:
    """The smallest integer factor that reduces an image to `ENOUGH_PIXELS`."""
    return max(1, math.ceil(math.sqrt(image.width * image.height / ENOUGH_PIXELS)))


def _colours(image: Image.Image) -> np.ndarray:
    if image.mode != "F":
        return np.asarray(as_rgba(image), np.float32) / 255
    grey = np.asarray(image)
    return np.stack([grey, grey, grey, np.ones_like(grey)], axis=-1)


def as_rgba(image: Image.Image) -> Image.Image:
    """An image without `levels` in mode RGBA, whatever its own mode is."""
    # Pillow's conversion of these modes to RGBA keeps all colours.
    if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA"):
        image = image.convert({"La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB"))
    return image.convert("RGBA")
