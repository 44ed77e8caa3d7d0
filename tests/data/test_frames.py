"""The number of frames of an image file, against those written, and in crafted files."""

import io
import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_heif import HeifImageFile
from PIL import Image

from densembed.data.decode import FORMATS, open_picture
from densembed.data.frames import MOST_FRAMES, count_frames, frames_note
from tests.data.test_photograph import HEIC

KINDS = ("GIF", "PNG", "WEBP", "TIFF", "AVIF")


def animation(kind: str, count: int, **options) -> bytes:
    """Frames that differ, as writers leave out equal ones."""
    frames = [Image.new("RGB", (9, 7), (40 * k, 0, 200 - 40 * k)) for k in range(count)]
    file = io.BytesIO()
    frames[0].save(file, kind, save_all=True, append_images=frames[1:], **options)
    return file.getvalue()


def note(data: bytes) -> str | None:
    return frames_note("a", data)


@pytest.mark.parametrize(("kind", "count"), itertools.product(KINDS, (1, 2, 5)))
def test_the_frames_written_are_counted(kind, count):
    what = "pages" if kind == "TIFF" else "frames"
    sentence = f"a has {count} {what}: only the first was read."
    assert note(animation(kind, count)) == (sentence if count > 1 else None)


@pytest.mark.parametrize("options", [{"big_tiff": True}, {"compression": "tiff_lzw"}])
def test_other_tiffs(options):
    assert note(animation("TIFF", 3, **options)) == "a has 3 pages: only the first was read."


def test_a_gif_with_comments_and_tables_of_colours():
    frames = [Image.effect_noise((40, 30), 50 + k).convert("P") for k in range(3)]
    for k, frame in enumerate(frames):
        frame.putpalette([(value + 7 * k) % 256 for value in range(256) for _ in range(3)])
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], comment=b"x" * 700)
    assert note(file.getvalue()) == "a has 3 frames: only the first was read."


def test_copies_of_a_page_do_not_count():
    """A thumbnail beside the scan; it has the subfile type 1."""
    file = io.BytesIO()
    scan, copy = Image.new("L", (40, 40)), Image.new("L", (4, 4))
    copy.encoderinfo = {"tiffinfo": {254: 1}}
    scan.save(file, "TIFF", save_all=True, append_images=[copy])
    assert open_picture(file.getvalue()).n_frames == 2
    assert note(file.getvalue()) is None


def test_previews_in_a_jpeg_do_not_count():
    frames = [Image.new("RGB", (9, 7), (90 * k, 0, 0)) for k in range(2)]
    file = io.BytesIO()
    frames[0].save(file, "MPO", save_all=True, append_images=frames[1:])
    image = Image.open(io.BytesIO(file.getvalue()), formats=FORMATS)
    assert (image.format, image.n_frames) == ("MPO", 2)
    assert count_frames(image, file.getvalue()) == 1


def test_the_main_picture_of_a_heif_file_is_read(monkeypatch):
    assert note(HEIC) is None
    monkeypatch.setattr(HeifImageFile, "n_frames", 3)  # as no writer of such files is installed
    assert note(HEIC) == "a has 3 pictures: only the main one was read."


def tiff(pages: int) -> bytes:
    """A chain of pages that consist of their width and height."""
    data = bytearray(b"II*\0" + struct.pack("<I", 8))
    for page in range(pages):
        after = len(data) + 2 + 2 * 12 + 4
        data += struct.pack("<HHHIIHHII", 2, 256, 4, 1, 1, 257, 4, 1, 1)[:26]
        data += struct.pack("<I", after if page < pages - 1 else 0)
    return bytes(data)


def gif(frames: int, block: bytes = b"\x02\x84\x51") -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + bytes(6)
    return head + (b"," + struct.pack("<HHHHB", 0, 0, 8, 8, 0) + b"\x02" + block + b"\0") * frames


@pytest.mark.parametrize("make", [tiff, gif])
@pytest.mark.parametrize("count", [1, 2, MOST_FRAMES, MOST_FRAMES + 1, 100_000])
def test_frames_of_crafted_files_are_counted_up_to_a_limit(make, count):
    data = make(count)
    image = Image.new("L", (8, 8))
    image.format = make.__name__.upper()
    assert count_frames(image, data) == min(count, MOST_FRAMES + 1)


def test_more_frames_than_are_counted():
    sentence = f"a has more than {MOST_FRAMES:,} frames: only the first was read."
    assert note(gif(MOST_FRAMES + 1)) == sentence


def test_a_tiff_whose_pages_form_a_ring_ends():
    data = bytearray(animation("TIFF", 2))
    (first,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, first)
    (second,) = struct.unpack_from("<I", data, first + 2 + 12 * entries)
    (entries,) = struct.unpack_from("<H", data, second)
    struct.pack_into("<I", data, second + 2 + 12 * entries, first)
    assert note(bytes(data)) == "a has 2 pages: only the first was read."


def test_a_gif_of_the_smallest_blocks_ends():
    """Its 20 million blocks of one byte would take ten seconds."""
    assert note(gif(1, b"\x01\x51" * 20_000_000)) is None


@settings(max_examples=200)
@given(st.sampled_from(["GIF", "TIFF"]), st.integers(0, 3000), st.binary(max_size=12))
def test_damaged_files_have_a_count(kind, place, junk):
    data = animation(kind, 4)
    place %= len(data)
    data = data[:place] + junk + data[place + len(junk) :]
    image = Image.new("L", (8, 8))
    image.format = kind
    for damaged in (data, data[:place]):
        assert 1 <= count_frames(image, damaged) <= MOST_FRAMES + 1
