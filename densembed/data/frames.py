"""The frames of an image file, of which one is read."""

import contextlib
import struct
from collections.abc import Mapping

from PIL.Image import Image

from densembed.data.decode import open_picture
from densembed.text import counted, listed

MOST_FRAMES = 1000
"""Frames are counted up to this number."""
MOST_BLOCKS = 2**18
"""Blocks of a GIF that are passed: one of 40 MiB has 165,000 of the largest size, 255 bytes."""
GIF_IMAGE, GIF_EXTENSION = b",!"
SUBFILE_TYPE = 254
REDUCED, MASK = 1, 4
"""Values of `SUBFILE_TYPE` for a page of a TIFF that is a copy or a mask of another page."""
KINDS = {"TIFF": ("pages", "the first"), "HEIF": ("pictures", "the main one")}
"""What a format calls its frames, and which one is read; otherwise it is the first frame."""


def count_frames(image: Image, data: bytes) -> int:
    """The number of frames of an image file, `MOST_FRAMES` + 1 if there are more.

    Further images in a JPEG, and copies or masks of a page in a TIFF, do not count: they are made
    from the image that is read.

    Args:
        image: the opened file.
        data: its content.
    """
    if image.format in ("JPEG", "MPO"):
        return 1
    # Pillow's own count of these takes minutes, for some files hours.
    if image.format == "GIF":
        count = _gif_frames(data)
    elif image.format == "TIFF":
        count = _tiff_pages(data)
    else:
        count = getattr(image, "n_frames", 1)
    return min(max(count, 1), MOST_FRAMES + 1)


def frames_note(name: str, data: bytes) -> str | None:
    """The sentence about the frames of an image file that are not read; None if there are none.

    It is for a file that is decoded before, as `decode` reports what is wrong with it.

    Raises:
        ImageError: the file is not an image.
    """
    image = open_picture(data)
    count = count_frames(image, data)
    if count == 1:
        return None
    frames, which = KINDS.get(str(image.format), ("frames", "the first"))
    number = f"{count:,}" if count <= MOST_FRAMES else f"more than {MOST_FRAMES:,}"
    return f"{name} has {number} {frames}: only {which} was read."


def unused_note(frames: Mapping[str, int]) -> str:
    """The sentence about files of a data set, by their paths, and the numbers of their frames."""
    least = "at least " if max(frames.values()) > MOST_FRAMES else ""
    unused = sum(frames.values()) - len(frames)
    return (
        f"One frame of each file is used; {least}{counted(unused, 'further frame')} "
        f"{'is' if unused == 1 else 'are'} not: {listed([*frames])}."
    )


def _gif_frames(data: bytes) -> int:
    """Count the images of a GIF, up to the first place that is damaged."""
    frames = blocks = 0
    with contextlib.suppress(IndexError):  # the file ends early
        place = 13 + _table_size(data[10])
        while frames <= MOST_FRAMES and data[place] in (GIF_IMAGE, GIF_EXTENSION):
            if data[place] == GIF_IMAGE:
                frames += 1
                place += 11 + _table_size(data[place + 9])
            else:
                place += 2
            while (size := data[place]) and blocks < MOST_BLOCKS:
                place += 1 + size
                blocks += 1
            place += 1
    return frames


def _table_size(flags: int) -> int:
    """Bytes of the table of colours, if the flags of a GIF's header say that there is one."""
    return 3 * 2 ** (flags % 8 + 1) if flags >= 128 else 0


def _tiff_pages(data: bytes) -> int:
    """Count the pages of a TIFF, up to the first place that is damaged."""
    order = "<" if data.startswith(b"II") else ">"
    is_big = data[2:4] in (b"+\0", b"\0+")
    head, offset, entry, value = ("Q", "Q", 20, 12) if is_big else ("H", "I", 12, 8)

    def number(kind: str, at: int) -> int:
        return struct.unpack_from(order + kind, data, at)[0]

    pages, passed = 0, set[int]()
    with contextlib.suppress(struct.error, IndexError, OverflowError):  # the file ends early
        place = number(offset, 8 if is_big else 4)
        while place and place not in passed and pages <= MOST_FRAMES:
            passed.add(place)
            entries, first = number(head, place), place + struct.calcsize(order + head)
            if number("H", first) != SUBFILE_TYPE or not number("I", first + value) & (
                REDUCED | MASK
            ):
                pages += 1
            place = number(offset, first + entries * entry)
    return pages
