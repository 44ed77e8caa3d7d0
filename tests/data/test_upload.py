"""Uploaded archives and pictures, honest and hostile."""

import contextlib
import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from densembed.data import DataError, load_dataset, upload
from densembed.text import quoted
from tests.conftest import is_sentence

COLOURS = {"cats": 40, "dogs": 200}


def picture(grey: int, size: tuple[int, int] = (12, 12), number: int = 0) -> bytes:
    pixels = np.full(size, grey, np.uint8)
    pixels[0, 0] = number
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def packed(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def pets(prefix: str = "", count: int = 8) -> dict[str, bytes]:
    return {
        f"{prefix}{name}/{k}.png": picture(grey, number=k)
        for name, grey in COLOURS.items()
        for k in range(count)
    }


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("prefix", ["", "pets/", "a/b/"])
def test_an_archive_is_a_data_set(tmp_path, prefix):
    files = pets(prefix) | {"__MACOSX/x.png": b"no", f"{prefix}cats/notes.txt": b"hello"}
    stored = upload.store([("My pets.zip", packed(files))], tmp_path)
    assert upload.is_upload(stored.name)
    assert stored.name.endswith("/My pets")
    assert stored.left_out == (f"{prefix}cats/notes.txt",)
    dataset = load_dataset(stored.name, tmp_path)
    assert dataset.classes == ("cats", "dogs")
    assert dataset.title == "My pets"
    assert len(dataset.train) + len(dataset.test) == 16
    for split in (dataset.train, dataset.test):
        for image, label in zip(split.images, split.labels, strict=True):
            assert image[0, 5, 5] == COLOURS[dataset.classes[label]]
    assert upload.store([("My pets.zip", packed(files))], tmp_path) == stored
    renamed = upload.store([("Yours.zip", packed(files))], tmp_path)
    for name in (renamed.name, upload.inverted(renamed.name, tmp_path)):
        assert name.endswith("/Yours")
        assert load_dataset(name, tmp_path).title == "Yours"
    assert upload.inverted(stored.name, tmp_path).endswith("/My pets")


def test_the_parts_of_an_archive_are_kept(tmp_path):
    files = pets("all/train/", 4) | pets("all/test/", 2)
    dataset = load_dataset(upload.store([("a.zip", packed(files))], tmp_path).name, tmp_path)
    assert (len(dataset.train), len(dataset.test)) == (8, 4)


@pytest.mark.parametrize(
    "files",
    [
        [
            (f"{name[:-1]}-{k}.png", picture(grey, number=k))
            for name, grey in COLOURS.items()
            for k in range(4)
        ],
        [
            (f"{name[:-1]}.zip", packed({f"{k}.png": picture(grey, number=k) for k in range(4)}))
            for name, grey in COLOURS.items()
        ],
        [
            (
                "all.zip",
                packed(
                    {
                        f"{name[:-1]} ({k}).png": picture(grey, number=k)
                        for name, grey in COLOURS.items()
                        for k in range(4)
                    }
                ),
            )
        ],
    ],
    ids=["pictures", "an archive per class", "names in an archive"],
)
def test_classes_without_folders(tmp_path, files):
    dataset = load_dataset(upload.store(files, tmp_path).name, tmp_path)
    assert dataset.classes == ("cat", "dog")
    assert len(dataset.train) + len(dataset.test) == 8


def test_large_pictures_are_reduced_and_lose_their_metadata(tmp_path):
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "at home"
    Image.new("RGB", (2000, 1000), (200, 10, 10)).save(file, "JPEG", exif=exif)
    files = pets() | {"cats/photo.jpg": file.getvalue()}
    upload.store([("pets.zip", packed(files))], tmp_path)
    (path,) = tmp_path.glob("uploads/*/pets/cats/photo.jpg")
    with Image.open(path) as image:
        assert image.size == (512, 256)
        assert not image.getexif()


def test_negatives(tmp_path):
    name = upload.store([("pets.zip", packed(pets()))], tmp_path).name
    negative = upload.inverted(name, tmp_path)
    assert negative != name
    assert upload.is_upload(negative)
    one, other = (load_dataset(each, tmp_path) for each in (name, negative))
    assert one.classes == other.classes
    np.testing.assert_array_equal(255 - one.train.images.numpy(), other.train.images.numpy())
    assert upload.inverted(name, tmp_path) == negative


def test_dark_on_light_is_noticed(tmp_path):
    strokes = {}
    for name, column in (("1", 5), ("2", 8)):
        for k in range(5):
            pixels = np.full((12, 12), 240, np.uint8)
            pixels[2:10, column] = 10 + k
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            strokes[f"{name}/{k}.png"] = file.getvalue()
    dark = upload.store([("a.zip", packed(strokes))], tmp_path).name
    assert upload.is_dark_on_light(load_dataset(dark, tmp_path))
    light = upload.inverted(dark, tmp_path)
    assert not upload.is_dark_on_light(load_dataset(light, tmp_path))
    assert not upload.is_dark_on_light(load_dataset("digits"))


def refused(files, folder: Path) -> str:
    """The sentence about an upload that cannot be stored; nothing of it is left."""
    with pytest.raises(DataError) as caught:
        upload.store(files, folder)
    assert is_sentence(str(caught.value))
    assert not files_below(folder / "uploads") if (folder / "uploads").exists() else True
    return str(caught.value)


class Unmarked(zipfile.ZipInfo):
    """A file whose name is UTF-8 without the flag that says so, as macOS writes it."""

    def _encodeFilenameFlags(self):
        return self.filename.encode(), self.flag_bits & ~0x800


def test_names_of_archives_from_macos(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for k, name in enumerate(pets()):
            place = name.replace("cats", "cha\u0302ts").replace("dogs", "\u72d7")
            archive.writestr(Unmarked(place), picture(10 * k))
    data = file.getvalue()
    names = [entry.filename for entry in zipfile.ZipFile(io.BytesIO(data)).infolist()]
    assert not any("\u72d7" in name for name in names)  # what Python makes of them
    stored = upload.store([("pets.zip", data)], tmp_path)
    assert load_dataset(stored.name, tmp_path).classes == ("ch\u00e2ts", "\u72d7")


def packed_in(
    encoding: str, name: str, other: str = "dogs", *, unicode_path: bool = False, system: int = 3
) -> bytes:
    """An archive of an older program: names in the encoding of its system, and no flag."""

    class Older(zipfile.ZipInfo):
        def _encodeFilenameFlags(self):
            return self.filename.encode(encoding), self.flag_bits & ~0x800

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for k, path in enumerate(pets()):
            entry = Older(path.replace("cats", name).replace("dogs", other))
            entry.create_system = system
            if unicode_path:
                utf8 = entry.filename.encode()
                check = zlib.crc32(entry.filename.encode(encoding))
                entry.extra = b"\x99\x99\1\0x" + struct.pack(
                    "<HHBL", 0x7075, 5 + len(utf8), 1, check
                )
                entry.extra += utf8
            archive.writestr(entry, picture(10 * k))
    return file.getvalue()


@pytest.mark.parametrize(
    ("encoding", "name", "shown"),
    [
        ("cp1252", "\xe9\xe0\xfc", "\u0398\u03b1\u207f"),
        ("gbk", "\u72d7", "\u2563\u2556"),
        ("shift-jis", "\u732b", "\xf6L"),
        ("cp437", "\xe9", "\xe9"),
    ],
)
def test_names_in_an_unknown_encoding_are_noted(tmp_path, encoding, name, shown):
    stored = upload.store([("old.zip", packed_in(encoding, name))], tmp_path)
    assert load_dataset(stored.name, tmp_path).classes == ("dogs", shown)
    (note,) = stored.notes
    assert note.startswith("The names in 'old.zip' are not marked as Unicode, so letters with")
    assert note.endswith(", or pack them again with a current program.")
    assert is_sentence(note)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_in_a_known_encoding_are_not_noted(tmp_path, encoding):
    name = "\u732b" if encoding == "utf-8" else "birds"
    stored = upload.store([("a.zip", packed_in(encoding, name))], tmp_path)
    assert set(load_dataset(stored.name, tmp_path).classes) == {"dogs", name}
    assert stored.notes == []


def test_names_that_are_utf8_by_chance_are_noted(tmp_path):
    """A word in GBK may be a letter in UTF-8."""
    for system, notes in ((0, 1), (3, 0)):
        stored = upload.store([("a.zip", packed_in("gbk", "\u732b", system=system))], tmp_path)
        assert load_dataset(stored.name, tmp_path).classes == ("dogs", "\xe8")
        assert len(stored.notes) == notes
    data = packed_in("gbk", "\u732b", "\u72d7")  # which cannot be UTF-8
    stored = upload.store([("a.zip", data)], tmp_path)
    assert load_dataset(stored.name, tmp_path).classes == ("\u251c\xbf", "\u2563\u2556")
    assert len(stored.notes) == 1


def test_the_unicode_name_beside_another_is_used(tmp_path):
    data = packed_in("cp1252", "\xe9\xe0\xfc", unicode_path=True)
    stored = upload.store([("a.zip", data)], tmp_path)
    assert load_dataset(stored.name, tmp_path).classes == ("dogs", "\xe9\xe0\xfc")
    assert stored.notes == []
    wrong = data.replace("\xe9\xe0\xfc".encode("cp1252"), "\xea\xe0\xfc".encode("cp1252"))
    stored = upload.store([("a.zip", wrong)], tmp_path)  # renamed since, by an older program
    assert "dogs" in load_dataset(stored.name, tmp_path).classes
    assert len(stored.notes) == 1


@pytest.mark.parametrize("size", [(12, 12), (900, 900)], ids=["as it is", "reduced"])
def test_frames_that_are_not_used_are_counted(tmp_path, size):
    file = io.BytesIO()
    frames = [Image.new("L", size, grey) for grey in (40, 90, 200)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    stored = upload.store(
        [("pets.zip", packed(pets() | {"cats/run.gif": file.getvalue()}))], tmp_path
    )
    assert stored.notes == [
        "One frame of each file is used; 2 further frames are not: 'cats/run.gif'."
    ]
    dataset = load_dataset(stored.name, tmp_path)
    assert not any("frame" in note for note in dataset.notes)  # which would say it again
    assert len(dataset.train) + len(dataset.test) == 17
    assert dataset.title == "pets"


def test_pictures_that_cannot_be_used_are_named_with_the_reason(tmp_path):
    file = io.BytesIO()
    Image.new("1", (5001, 5000)).save(file, "PNG")
    bad = {"cats/huge.png": file.getvalue(), "dogs/cut.png": picture(9)[:-30]}
    stored = upload.store([("pets.zip", packed(pets() | bad | {"cats/a.txt": b"a"}))], tmp_path)
    assert stored.left_out == ("cats/a.txt",)
    assert stored.notes == [
        "Files that are damaged or incomplete are not used: 'dogs/cut.png'.",
        "Files with more than 25 million pixels are not used: 'cats/huge.png'.",
    ]
    dataset = load_dataset(stored.name, tmp_path)
    assert len(dataset.train) + len(dataset.test) == len(pets())
    says = refused([("a.zip", packed(bad))], tmp_path / "other")
    assert "more than 25 million pixels" in says


def test_hidden_pictures_are_named(tmp_path):
    files = pets() | {".old/cat.png": picture(9), "cats/.dog.png": picture(8)}
    files |= {f"__MACOSX/{name.replace('/', '/._')}": b"metadata" for name in pets()} | {
        "cats/.DS_Store": b"x"
    }
    stored = upload.store([("pets.zip", packed(files))], tmp_path)
    assert sorted(stored.hidden) == [".old/cat.png", "cats/.dog.png"]
    assert stored.left_out == ()
    says = refused([("a.zip", packed({".cats/1.png": picture(3)}))], tmp_path / "other")
    assert "Hidden images and folders are not used: '.cats/1.png'." in says


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("cat", "cat.", "dog"), ("cat", "cat.", "dog")),
        (("A" + 90 * "x", "B" + 90 * "x"), ("A" + 90 * "x", "B" + 90 * "x")),
        ((" cat", "dog "), ("cat", "dog")),
    ],
)
@pytest.mark.parametrize("prefix", ["", "train/"])
def test_classes_are_kept_apart(tmp_path, names, classes, prefix):
    files = {f"{prefix}{name}/{k}.png": picture(k) for name in names for k in range(4)}
    dataset = load_dataset(upload.store([("a.zip", packed(files))], tmp_path).name, tmp_path)
    assert dataset.classes == classes


def test_classes_in_long_names_of_pictures_are_kept_apart(tmp_path):
    files = [(f"{each}{90 * 'x'} {k}.png", picture(k)) for each in "AB" for k in range(4)]
    dataset = load_dataset(upload.store(files, tmp_path).name, tmp_path)
    assert dataset.classes == ("A" + 90 * "x", "B" + 90 * "x")


@pytest.mark.parametrize("other", [" cat", "cat ", "c\nat"])
def test_classes_that_would_be_one_are_named(tmp_path, other):
    name = "c_nat" if "\n" in other else "cat"
    files = {f"{each}/{k}.png": picture(k) for each in (name, other, "dog") for k in range(4)}
    for archive in (files, {f"all/{path}": data for path, data in files.items()}):
        says = refused([("a.zip", packed(archive))], tmp_path)
        assert says == (
            f"Two folders have the same displayed name, '{name}' and {quoted(other)}: rename one "
            "of them."
        )
    several = [
        (f"{each}.zip", packed({f"{k}.png": picture(k) for k in range(4)}))
        for each in (name, other, "dog")
    ]
    assert refused(several, tmp_path).startswith("Two archives have the same displayed name, ")


@pytest.mark.parametrize("name", ["{}.zip", "my-pets_{}.zip", "Pets {}.zip"])
def test_archives_of_the_parts_are_the_parts(tmp_path, name):
    """Pictures for testing were trained on."""
    files = [(name.format("train"), packed(pets())), (name.format("Test"), packed(pets(count=3)))]
    data = load_dataset(upload.store(files, tmp_path).name, tmp_path)
    assert data.classes == ("cats", "dogs")
    assert (len(data.train), len(data.test)) == (16, 6)


@pytest.mark.parametrize("around", [("pets/", "pets/"), ("a/b/", "c/"), ("", "pets/")])
def test_archives_of_the_parts_may_have_a_folder_around_their_classes(tmp_path, around):
    """Pictures for testing were trained on, without a word."""
    files = [
        ("train.zip", packed(pets(around[0]) | {f"{around[0]}newts/notes.txt": b"none yet"})),
        ("test.zip", packed(pets(around[1], count=3))),
    ]
    stored = upload.store(files, tmp_path)
    data = load_dataset(stored.name, tmp_path)
    assert data.classes == ("cats", "dogs")
    assert (len(data.train), len(data.test)) == (16, 6)
    assert stored.empty == ("newts",)


def test_several_archives_may_have_parts_of_a_class(tmp_path):
    halves = [packed(dict(list(pets().items())[k::2])) for k in range(2)]
    stored = upload.store([("pets-1.zip", halves[0]), ("pets-2.zip", halves[1])], tmp_path)
    dataset = load_dataset(stored.name, tmp_path)
    assert (dataset.classes, len(dataset.train) + len(dataset.test)) == (("cats", "dogs"), 16)


@pytest.mark.parametrize("prefix", ["", "all/", "cats/"])
def test_a_picture_with_the_name_of_a_folder_is_named(tmp_path, prefix):
    files = pets() | {f"{prefix}cat": picture(1), f"{prefix}cat/1.png": picture(2)}
    says = refused([("a.zip", packed(files))], tmp_path)
    assert says == (
        f"A picture and a folder have the same name, '{prefix}cat': rename one of them."
    )


def test_a_name_that_no_disk_takes_is_named(tmp_path):
    face = "\U0001f600"
    says = refused(
        [("a.zip", packed(pets() | {f"{70 * face}/{k}.png": picture(k) for k in range(4)}))],
        tmp_path,
    )
    assert says == f"The name '{40 * face}…' of a folder is too long to be stored: shorten it."
    files = {f"{name}/{70 * face}.png": picture(k) for k, name in enumerate("ab")}
    stored = upload.store([(f"{70 * face}.zip", packed(pets() | files))], tmp_path)
    assert load_dataset(stored.name, tmp_path).classes == ("a", "b", "cats", "dogs")
    upload.store([("a.zip", packed(pets() | {f"{200 * 'x'}/1.png": picture(1)}))], tmp_path)
    says = refused([("a.zip", packed(pets() | {f"{201 * 'x'}/1.png": picture(1)}))], tmp_path / "b")
    assert "is longer than 200 characters: rename its folder" in says


EMPTY = "Folders without a usable image directly in them are not used: {}."


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (pets() | {"birds/": b""}, "'birds'"),
        (pets() | {"birds/notes.txt": b"text", "fish/": b""}, "'birds', 'fish'"),
        (pets() | {"birds/1.png": picture(1)[:-30]}, "'birds'"),
        (pets("all/") | {"all/birds/": b"", "all/": b""}, "'birds'"),
        (pets("all/") | {"other/": b""}, "'other'"),
        (pets("all/train/") | pets("all/test/") | {"all/train/birds/": b""}, "'birds'"),
        (pets("train/") | {"test/birds/": b""}, "'test'"),
        (pets("train/") | pets("test/") | {"val/cats/1.png": picture(1)}, ""),
        (pets("train/", 4) | pets("test/", 2) | {"train/": b"", "test/": b""}, ""),
        (pets("all/") | {"all/": b"", "all/cats/": b"", ".git/": b"", "__MACOSX/x/": b""}, ""),
    ],
)
def test_folders_without_a_picture_are_named(tmp_path, files, named):
    stored = upload.store([("a.zip", packed(files))], tmp_path)
    notes = [note for note in stored.notes if note.startswith("Folders")]
    assert notes == ([EMPTY.format(named)] if named else [])
    dataset = load_dataset(stored.name, tmp_path)
    assert dataset.classes == ("cats", "dogs")
    assert not any(note.startswith("Folders without") for note in dataset.notes)  # again


def test_a_folder_with_pictures_too_deep_is_named_once(tmp_path):
    stored = upload.store([("a.zip", packed(pets() | {"birds/x/1.png": picture(1)}))], tmp_path)
    assert stored.notes == []
    assert EMPTY.format("'birds'") in load_dataset(stored.name, tmp_path).notes


def test_the_folder_without_a_picture_may_be_the_second_class(tmp_path):
    files = {name: data for name, data in pets().items() if name.startswith("cats")}
    says = refused([("a.zip", packed(files | {"dogs/": b""}))], tmp_path)
    assert "at least two subfolders" in says
    assert says.endswith(EMPTY.format("'dogs'"))


def other_method(data: bytes) -> bytes:
    """An archive that claims to be compressed by Deflate64, which Windows uses for large ones."""
    changed = bytearray(data)
    for mark, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        place = -1
        while (place := changed.find(mark, place + 1)) >= 0:
            changed[place + offset : place + offset + 2] = b"\x09\x00"
    return bytes(changed)


def encrypted(data: bytes) -> bytes:
    """An archive whose entries are marked as encrypted."""
    data = bytearray(data)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + offset] |= 1
            place = data.find(mark, place + 4)
    return bytes(data)


def test_hostile_archives_are_one_sentence_each(tmp_path, monkeypatch):
    good = packed(pets())
    broken = bytearray(good)
    broken[60:90] = bytes(30)
    assert "damaged" in refused([("a.zip", bytes(broken))], tmp_path)
    assert "damaged" in refused([("a.zip", good[: len(good) // 2])], tmp_path)
    assert "damaged" in refused([("a.zip", b"no archive")], tmp_path)
    assert "compressed by a method" in refused([("a.zip", other_method(good))], tmp_path)
    assert "password" in refused([("a.zip", encrypted(good))], tmp_path)
    assert "no picture" in refused([("a.zip", packed({"a/b.txt": b"text"}))], tmp_path)
    assert "no picture" in refused([("a.txt", b"text")], tmp_path)
    assert "two" in refused([("a.zip", packed({"cats/1.png": picture(3)}))], tmp_path)
    bomb = packed({"cats/1.png": bytes(45 * 2**20)})
    assert len(bomb) < 2**16
    assert "more than 40 MiB" in refused([("a.zip", bomb)], tmp_path)
    monkeypatch.setattr(upload, "MAX_UNPACKED", 1000)
    assert "in all" in refused([("a.zip", good)], tmp_path)
    monkeypatch.setattr(upload, "MAX_FILES", 10)
    assert "more than 10 files" in refused([("a.zip", good)], tmp_path)
    huge = good[:-22] + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, 10**8, 0, 0)
    assert "more than 10 files" in refused([("a.zip", huge)], tmp_path)


NASTY = ["../../evil/1.png", "/etc/cats/1.png", "C:\\x\\1.png", "a/../../b/1.png", "con:|?*/1.png"]


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(NASTY) | st.text(max_size=30).filter(lambda text: text.split("\0")[0]),
        max_size=4,
    )
)
def test_no_path_leaves_the_folder(tmp_path_factory, paths):
    outer = tmp_path_factory.mktemp("outer")
    place = outer / "data"
    files = {path: picture(9, number=k) for k, path in enumerate(paths)}
    with contextlib.suppress(DataError):
        upload.store([("a.zip", packed(pets() | files))], place)
    assert all(path.is_relative_to(place) for path in files_below(outer))


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "No space left" in refused([("a.zip", packed(pets()))], tmp_path)
