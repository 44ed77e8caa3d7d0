"""A folder of pictures as a data set: layouts, shapes and stray files."""

import hashlib
import os
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from densembed.data import (
    DataError,
    class_folders,
    decode,
    folder,
    folder_advice,
    is_available,
    load_dataset,
    slug,
    title,
)
from densembed.data.class_folders import Listing
from densembed.data.download import Cancelled, watching
from densembed.data.folder import Folder
from densembed.data.images import read_picture
from densembed.files import read_regular
from tests.conftest import is_sentence
from tests.data.folders import CLASSES, load, picture

FORMS = ("NFC", "NFD")


def fails(name, tmp_path) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(name, tmp_path / "data")
    assert is_sentence(str(caught.value))
    return str(caught.value)


def test_a_name_that_no_file_system_takes(tmp_path):
    name = "folder:" + "x" * 300
    assert not is_available(name)
    sentence = fails(name, tmp_path)
    assert "File name too long" in sentence
    assert "network" not in sentence


@pytest.mark.parametrize("after", [0, 31, 61])
def test_reading_a_large_folder_is_stopped_at_any_moment(photos, tmp_path, after):
    """While files, heads and pixels of 30 pictures are read; nothing is kept of it."""
    asked = iter([False] * after + [True] * 100)
    with watching(lambda: next(asked)), pytest.raises(Cancelled):
        load(photos, tmp_path)
    assert not (tmp_path / "data").exists()
    assert len(load(photos, tmp_path).train) > 0


def test_composed_and_decomposed_names_are_one_class(tmp_path):
    """macOS writes é as two characters in some archives."""
    root, names = tmp_path / "photos", {form: unicodedata.normalize(form, "é") for form in FORMS}
    picture(root / "train" / "cats" / "1.png")
    for part, form in (("train", "NFC"), ("test", "NFD")):
        picture(root / part / names[form] / f"{names[form]}.png")
    data = load(root, tmp_path)
    assert data.classes == ("cats", names["NFC"])
    assert (len(data.train), len(data.test)) == (2, 1)
    picture(root / "train" / names["NFD"] / "2.png")
    sentence = fails(f"folder:{root}", tmp_path)  # which shows how they differ
    assert "Two folders have the same displayed name" in sentence
    assert all(ascii(name) in sentence for name in names.values())
    os.rename(root / "train" / names["NFD"], root / "train" / " ")
    assert "The name of the folder ' ' is blank: rename it." in fails(f"folder:{root}", tmp_path)
    for form, name in names.items():  # the same split of the same files
        for n in range(10):
            picture(tmp_path / form / "a" / f"{name}{n}.png", seed=n)
            picture(tmp_path / form / "b" / f"{name}{n}.png", seed=n)
    composed, decomposed = (load(tmp_path / form, tmp_path) for form in FORMS)
    assert sorted(map(bytes, composed.test.images.numpy())) == sorted(
        map(bytes, decomposed.test.images.numpy())
    )


def test_the_root_of_the_file_system_has_a_name(tmp_path, monkeypatch):
    root = Path("/")
    monkeypatch.setattr(folder, "list_files", lambda root: Listing())
    for module in (class_folders, folder_advice):
        monkeypatch.setattr(module, "subfolders", lambda root: [])
    assert "The folder '/' needs at least two subfolders" in fails(f"folder:{root}", tmp_path)


def test_a_fifth_by_the_hash_of_the_name_is_for_testing(photos, tmp_path):
    data = load(photos, tmp_path)
    for_testing = [
        n
        for n in range(10)
        if int(hashlib.sha256(f"{n}.png".encode()).hexdigest()[:16], 16) % 5 == 0
    ]
    assert len(data.test) == 3 * len(for_testing) > 0
    assert len(data.train) == 30 - len(data.test)
    first = np.asarray(Image.open(photos / "cats" / f"{for_testing[0]}.png"))
    assert (data.test.images[0].numpy() == first.transpose(2, 0, 1)).all()
    assert (data.classes, data.title, data.left_out) == (CLASSES, "photos", ())
    assert data.test.labels.tolist() == sorted(data.test.labels.tolist())
    before = data.test.images
    picture(photos / "cats" / "new.png", seed=99)
    again = load(photos, tmp_path)
    assert len(again.train) + len(again.test) == 31
    assert all(any(torch.equal(one, other) for other in again.test.images) for one in before)


def test_folders_named_train_and_test_are_the_parts(tmp_path):
    root = tmp_path / "split"
    for part, count in (("train", 4), ("test", 2)):
        for name in CLASSES:
            for n in range(count):
                picture(root / part / name / f"{n}.png", seed=len(name) + n)
    data = load(root, tmp_path)
    assert (len(data.train), len(data.test)) == (12, 6)
    assert data.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    ("mode", "size", "asked", "shape"),
    [
        ("RGB", (8, 6), "", (3, 6, 8)),
        ("L", (8, 6), "", (1, 6, 8)),
        ("RGB", (70, 70), "", (3, 32, 32)),
        ("RGB", (8, 6), "@1x10x12", (1, 10, 12)),
        ("L", (40, 20), "@3x7x9", (3, 7, 9)),
    ],
)
def test_shapes(mode, size, asked, shape, tmp_path):
    root = tmp_path / "shapes"
    for name in CLASSES[:2]:
        for n in range(12):
            picture(root / name / f"{n}.png", size, mode, n)
    data = load(root, tmp_path, asked)
    assert data.input_shape == shape
    scaled = [
        note for note in data.notes if "scaled to 32 × 32 unless another shape is set." in note
    ]
    assert len(scaled) == (size == (70, 70))
    # What a page makes of the same file when somebody uploads it.
    for n in range(12):
        own = read_picture(root / "cats" / f"{n}.png", shape, digit=False).pixels
        both = (*data.train.images, *data.test.images)
        assert any(torch.equal(own, one) for one in both)


@pytest.mark.parametrize(("ending", "kind"), [("jpg", "JPEG"), ("png", "PNG"), ("webp", "WEBP")])
def test_a_size_is_that_of_the_picture_as_it_is_shown(ending, kind, tmp_path):
    root, turned = tmp_path / "turned", Image.Exif()
    turned[274] = 6
    for n in range(10):
        picture(root / "cats" / f"{n}.{ending}", (20, 30), seed=n, format=kind)
        picture(root / "dogs" / f"{n}.{ending}", (30, 20), seed=n, format=kind, exif=turned)
    data = load(root, tmp_path)
    assert data.input_shape == (3, 30, 20)
    assert not any("differ in size" in note for note in data.notes)


def test_pictures_of_many_kinds_come_out_in_one_shape(tmp_path):
    root = tmp_path / "kinds"
    for name in CLASSES[:2]:
        for n in range(10):
            picture(root / name / f"{n}.png", (20 + n, 30), seed=n)
        picture(root / name / "a.jpg", (33, 21), seed=1)
        picture(root / name / "b.gif", (9, 9), "L", seed=2)
        Image.new("RGBA", (12, 12), (255, 0, 0, 0)).save(root / name / "c.webp")
        turned = Image.Exif()
        turned[274] = 6
        picture(root / name / "d.jpg", (32, 32), seed=3, exif=turned)
    data = load(root, tmp_path)
    assert data.input_shape == (3, 32, 32)
    assert len(data.train) + len(data.test) == 28
    turned_right = read_picture(root / "cats" / "d.jpg", (3, 32, 32), digit=False).pixels
    assert any(torch.equal(turned_right, one) for one in (*data.train.images, *data.test.images))


@pytest.mark.parametrize(("mode", "clear"), [("L", 0), ("RGB", (0, 0, 0))])
def test_a_colour_that_is_not_shown_lies_on_white(mode, clear, tmp_path):
    """A PNG of the data set's own size and mode, one colour of which is transparent."""
    root = tmp_path / "clear"
    page = np.zeros((6, 8, 3), np.uint8)
    page[2:4, 3:6] = 200
    for name in CLASSES[:2]:
        for n in range(2):
            (root / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(page).convert(mode).save(root / name / f"{n}.png", transparency=clear)
    data = load(root, tmp_path)
    expected = np.where(page == 0, 255, page).transpose(2, 0, 1)[: len(mode)]
    assert data.input_shape == expected.shape
    for image in (*data.train.images, *data.test.images):
        np.testing.assert_array_equal(image.numpy(), expected)


def test_files_that_are_no_pictures_are_named_and_left_out(photos, tmp_path):
    (photos / "cats" / "notes.txt").write_text("cats")
    whole = (photos / "dogs" / "3.png").read_bytes()
    (photos / "dogs" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (photos / "dogs" / ".hidden").write_text("")
    (photos / "readme.md").write_text("not a class")
    Image.open(photos / "dogs" / "3.png").save(photos / "dogs" / "3.ppm")
    data = load(photos, tmp_path)
    assert data.left_out == ("cats/notes.txt",)
    assert data.notes == (
        "Files in the format PPM, which is not read, are not used: 'dogs/3.ppm'.",
        "Files that are damaged or incomplete are not used: 'dogs/cut.png'.",
    )
    assert len(data.train) + len(data.test) == 30


def test_pictures_that_are_too_large_are_named_with_the_limit(photos, tmp_path):
    expected = load(photos, tmp_path)
    for name in ("10", "9"):
        Image.new("1", (5001, 5000)).save(photos / "cats" / f"huge {name}.png")
    (photos / "dogs" / "long.bin").write_bytes(b"")
    os.truncate(photos / "dogs" / "long.bin", 40 * 2**20 + 1)
    for _ in range(2):  # decoded, and from the cache
        folder._load.cache_clear()
        data = load(photos, tmp_path, "@3x6x8")
        assert data.left_out == ()
        assert data.notes == (
            "Files larger than 40 MiB are not used: 'dogs/long.bin'.",
            "Files with more than 25 million pixels are not used: 'cats/huge 9.png', "
            "'cats/huge 10.png'.",
        )
        assert data.digest == expected.digest


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (PermissionError(13, "Permission denied"), "that cannot be read (Permission denied)"),
        (OSError(5, "Input/output error"), "that cannot be read (Input/output error)"),
        (MemoryError(), "for which there was too little memory"),
    ],
    ids=["permission", "disk", "memory"],
)
def test_a_picture_that_cannot_be_read_once_is_tried_again(
    fault, says, photos, tmp_path, monkeypatch
):
    whole = load(photos, tmp_path / "elsewhere")
    closed = {"7.png"}

    def refuse(path, size):
        if Path(path).name in closed:
            raise fault
        return read_regular(path, size)

    monkeypatch.setattr(decode, "read_regular", refuse)
    data = load(photos, tmp_path)
    assert data.left_out == ()
    assert data.notes == (f"Files {says} are not used: 'cats/7.png', 'dogs/7.png', 'newts/7.png'.",)
    assert len(data.train) + len(data.test) == 27
    closed.clear()
    folder._load.cache_clear()  # as in the next process
    again = load(photos, tmp_path)
    assert (again.notes, again.digest) == ((), whole.digest)
    closed.update(f"{n}.png" for n in range(10))
    assert says in fails(f"folder:{photos}@3x5x5", tmp_path)
    assert title(f"folder:{photos}") == "photos"


def test_a_relative_folder_may_lie_in_the_data_folder(photos, tmp_path, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path / "photos")
    assert is_available("folder:photos")
    assert load_dataset("folder:photos").name == "folder:photos"
    assert (title("folder:photos"), slug("folder:photos")) == ("photos", "photos")


def test_a_folder_of_cifar_says_so(tmp_path):
    classes = (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    )
    root = tmp_path / "mine"
    for part in ("train", "test"):
        for name in classes:
            picture(root / part / name / "0.jpg", (32, 32))
    data = load(root, tmp_path)
    assert data.title == title(f"folder:{root}") == "CIFAR-10 (JPEG)"
    assert slug(f"folder:{root}") == "cifar-10-jpeg"
    assert data.input_shape == (3, 32, 32)
    for name in classes:
        (root / "train" / name / "0.jpg").unlink()
        picture(root / "train" / name / "0.jpg", (48, 48))
    assert load(root, tmp_path).title == title(f"folder:{root}") == "mine"


def test_what_cannot_be_used_is_one_sentence(photos, tmp_path):
    assert "gone" in fails(f"folder:{tmp_path / 'gone'}", tmp_path)
    assert not is_available(f"folder:{tmp_path / 'gone'}")
    assert title(f"folder:{tmp_path / 'gone'}") == "gone"
    for wrong in (
        "folder:",
        "folder:@3x8x8",
        f"folder:{photos}@2x8x8",
        f"folder:{photos}@3x8x999",
        f"folder:{photos}@big",
    ):
        fails(wrong, tmp_path)
        assert not is_available(wrong)
    shutil.rmtree(photos / "dogs")
    shutil.rmtree(photos / "newts")
    assert "two" in fails(f"folder:{photos}", tmp_path)
    picture(photos / "dogs" / "4.png")
    for path in list((photos / "cats").iterdir())[1:]:
        path.unlink()
    assert "one image per class" in fails(f"folder:{photos}", tmp_path)


def test_a_class_to_test_needs_pictures_to_train_on(tmp_path):
    root = tmp_path / "split"
    for part, names in (("train", CLASSES[:2]), ("test", CLASSES)):
        for name in names:
            picture(root / part / name / "0.png")
    assert "newts" in fails(f"folder:{root}", tmp_path)


CRYPTIC = os.fsdecode(b"caf\xe9")
"""A name in Latin-1, as old archives and cameras leave it: no UTF-8."""


def test_names_that_are_not_unicode_are_escaped(photos, tmp_path):
    os.rename(photos / "dogs", photos / CRYPTIC)
    (photos / "cats" / f"{CRYPTIC}.txt").write_text("no picture")
    (photos / "cats" / "two\nlines.txt").write_text("no picture")
    for _ in range(2):  # decoded, and as it was kept
        folder._load.cache_clear()
        data = load(photos, tmp_path)
        assert data.classes == (r"caf\xe9", "cats", "newts")
        assert data.left_out == (r"cats/caf\xe9.txt", r"cats/two\nlines.txt")
        (note,) = data.notes
        assert "not valid UTF-8" in note
        assert r"'caf\xe9'" in note
        "".join((*data.classes, *data.left_out, *data.notes)).encode()
    os.rename(photos, tmp_path / CRYPTIC)
    data = load(tmp_path / CRYPTIC, tmp_path)
    assert data.title == title(f"folder:{tmp_path / CRYPTIC}") == r"caf\xe9"
    (photos / r"caf\xe9").parent.mkdir()
    shutil.copytree(tmp_path / CRYPTIC / "cats", tmp_path / CRYPTIC / r"caf\xe9")
    assert r"same displayed name, 'caf\xe9'" in fails(f"folder:{tmp_path / CRYPTIC}", tmp_path)


def test_an_at_sign_may_belong_to_the_path(photos, tmp_path):
    for name in ("me@work", "me@3x48x48"):
        shutil.copytree(photos, tmp_path / name / "photos")
        data = load(tmp_path / name / "photos", tmp_path)
        assert (len(data.classes), data.input_shape) == (3, (3, 6, 8))
        assert load(tmp_path / name / "photos", tmp_path, "@3x5x5").input_shape == (3, 5, 5)
    both = tmp_path / "photos@3x9x9"
    shutil.copytree(photos, both)
    assert load(photos, tmp_path, "@3x9x9").input_shape == (3, 9, 9)
    assert load(photos, tmp_path, "@3x9x9/").input_shape == (3, 6, 8)
    assert load(both, tmp_path, "@1x4x4").input_shape == (1, 4, 4)
    shutil.rmtree(photos)
    assert load(both, tmp_path).input_shape == (3, 6, 8)
    shutil.rmtree(both)
    said = fails(f"folder:{both}", tmp_path)
    assert f"'{photos}' was not found" in said


@pytest.mark.parametrize("shape", ["", "3x48x48"])
@pytest.mark.parametrize("there", [(), ("p",), ("p@1x2x2",), ("p", "p@1x2x2"), ("p@3x48x48",)])
def test_a_path_and_a_shape_come_back_from_their_name(there, shape, tmp_path):
    """Whatever else is there: on Train the size has a field of its own."""
    for name in there:
        (tmp_path / name).mkdir()
    for path in ("p", "p@1x2x2", "me@work/p"):
        folder = Folder.parse(Folder.named(f"{tmp_path}/{path}", shape))
        assert folder.path == tmp_path / path
        assert folder.shape == (tuple(map(int, shape.split("x"))) if shape else None)


def test_a_path_that_is_no_folder_says_why(photos, tmp_path):
    assert "is not a folder" in fails(f"folder:{photos / 'cats' / '1.png'}", tmp_path)
    for wrong in ("folder:~nobody-here/photos", "folder:a\0b", f"folder:{'ü' * 190}"):
        fails(wrong, tmp_path)
        assert not is_available(wrong)
        assert title(wrong)


def test_parts_may_be_in_capitals_and_what_is_not_used_is_counted(tmp_path):
    root = tmp_path / "split"
    for part, count in (("Train", 4), ("val", 3), ("TEST", 2)):
        for name in CLASSES:
            for n in range(count):
                picture(root / part / name / f"{n}.png", seed=n + 10 * (part == "TEST"))
    for n in range(5):
        picture(root / "Train" / "cats" / "more" / f"{n}.png", seed=n)
    picture(root / "loose.png")
    (root / "readme.md").write_text("no picture")
    (root / "Train" / "empty").mkdir()
    shutil.rmtree(root / "TEST" / "dogs")
    data = load(root, tmp_path)
    assert (len(data.train), len(data.test)) == (12, 4)
    assert data.tested == ("cats", "newts")
    said = "\n".join(data.notes)
    assert "'val' (9 images) is not used: only 'Train' and 'TEST' are." in said
    assert "'Train/cats/more' (5 images) is not used" in said
    assert "Not used: 1 image directly in 'split', outside the folders of the classes." in said
    assert "Folders without a usable image directly in them are not used: 'empty'." in said
    assert "does not cover classes without test images: 'dogs'." in said
    assert len(data.notes) == 5
    picture(root / "test" / "cats" / "0.png")
    assert "'TEST' and 'test'" in fails(f"folder:{root}", tmp_path)


def test_an_empty_class_and_pictures_too_deep_are_counted(photos, tmp_path):
    (photos / "toads").mkdir()
    (photos / "toads" / "notes.txt").write_text("no picture")
    for n in range(3):
        picture(photos / "cats" / "old" / "older" / f"{n}.png", seed=n)
    (photos / "dogs" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    data = load(photos, tmp_path)
    assert data.classes == CLASSES
    assert data.left_out == ("dogs/gone.png", "toads/notes.txt")
    assert data.notes == (
        "Folders without a usable image directly in them are not used: 'toads'.",
        "The folder 'cats/old' (3 images) is not used: images of a class must be directly in the "
        "folder of the class.",
    )


def test_a_link_to_itself_is_no_image(photos, tmp_path):
    for place in (photos / "cats" / "a.png", photos / "b", photos / "c.png"):
        place.symlink_to(place.name)
    data = load(photos, tmp_path)
    assert (data.classes, data.left_out) == (CLASSES, ("cats/a.png",))


def test_test_images_that_are_training_images_are_counted(tmp_path):
    for part, seeds in (("train", range(6)), ("test", (4, 5, 6))):
        for n in seeds:
            picture(tmp_path / "p" / part / "cats" / f"{part}-{n}.png", seed=n)
            picture(tmp_path / "p" / part / "dogs" / f"{part}-{n}.png", seed=n + 100)
    (note,) = load(tmp_path / "p", tmp_path).notes
    assert note == (
        "Of 6 test images, 4 are the same as a training image: the test error is not one of new "
        "images alone."
    )


def test_folders_that_cannot_be_read_are_not_called_empty(photos, tmp_path, monkeypatch):
    """One with images beside it, one in a class, one that is hidden; as of another user."""
    picture(photos / "cats" / "old" / "0.png")
    closed = [
        photos / "cats" / "old" / "inner",
        photos / "dogs" / "own",
        photos / "dogs" / ".Trash",
    ]
    for place in closed:
        picture(place / "1.png")
    picture(photos / "newts" / ".cache" / "1.png")
    (photos / "newts" / ".gone").symlink_to(tmp_path / "nowhere")
    scandir = os.scandir

    def refuse(path="."):
        if Path(path) in closed:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    data = load(photos, tmp_path)
    assert len(data.train) + len(data.test) == 30
    direct = "is not used: images of a class must be directly in the folder of the class."
    assert data.notes == (
        "The folder 'cats/old' (1 image and 1 folder that cannot be read: Permission denied) "
        + direct,
        "The hidden folder 'dogs/.Trash' cannot be read (Permission denied): images in it are not "
        "used.",
        f"The folder 'dogs/own' (cannot be read: Permission denied) {direct}",
        "Hidden images and folders are not used: 'newts/.cache'.",
    )


@pytest.mark.parametrize("shape", ["3x8", "3X8X8", "3×8×8"])
def test_what_is_no_shape_is_named(photos, tmp_path, shape):
    said = fails(f"folder:{photos}@{shape}", tmp_path)
    assert said.startswith(f"The folder '{photos}' exists, but '{shape}' is not a shape")


def test_a_class_of_damaged_files_is_named(tmp_path):
    for n in range(12):
        picture(tmp_path / "set" / "a" / f"{n}.png", (4, 4), seed=n)
    (tmp_path / "set" / "b").mkdir()
    for n in range(12):
        (tmp_path / "set" / "b" / f"{n}.png").write_bytes(b"\x89PNG")
    said = fails(f"folder:{tmp_path / 'set'}", tmp_path)
    assert said.endswith("No image in 'b' can be decoded: replace the files.")


@pytest.mark.parametrize(
    ("places", "seen", "advice"),
    [
        (("train/{}", "val/{}"), "'train' (30 images in 3 subfolders), 'val'", "'val' to 'test'"),
        (("Training/{}", "Testing/{}"), "'Training' (30", "'Training' to 'train' and 'Testing' to"),
        (("inner/{}",), "'inner' (30 images in 3 subfolders)", "Use only its folder 'inner'."),
        (("a/b/{}",), "'a' (30 images in 1 subfolder)", "Use only its folder 'a/b'."),
        (("train/{}",), "'train' (30", "Use only its folder 'train'."),
        (("train_set/{}", "TestSet/{}"), "'train_set' (30", "'train_set' to 'train' and 'TestSet'"),
        (("train/{}", "eval/{}"), "'eval' (30 images in 3 subfolders)", "'eval' to 'test'"),
        (("a/train/{}", "a/test/{}"), "'a' (60 images in 2", "Use only its folder 'a'."),
        (("a/b/train data/{}", "a/b/test data/{}"), "'a' (60", "Use only its folder 'a/b'."),
        (("set/{}", "docs"), "'docs' (30 images), 'set' (30", "Use only its folder 'set'."),
        (
            ("train/train/{}", "test/test/{}"),
            "'train' (30",
            "use only one of its folders 'test/test', 'train/train'.",
        ),
        (("{}/large",), "'cats' (10 images in 1 subfolder)", "move them up."),
        (("train/{}", "test"), "'test' (30 images)", "use only its folder 'train'"),
        (("2023/{}", "2024/{}"), "'2023' (30 images in 3 subfolders), '2024'", "move them up"),
        (("train", "test"), "'train' (30 images), 'test'", "for each class in 'train'"),
        (("train", "val"), "'train' (30 images), 'val'", "'val' to 'test'"),
        (("",), "30 images and no subfolders", "into a subfolder named after"),
        (("cats",), "'cats' (30 images)", "into a subfolder named after"),
    ],
)
def test_a_folder_of_another_layout_says_what_was_seen_and_what_to_do(
    places, seen, advice, tmp_path
):
    root = tmp_path / "photos"
    for place in places:
        for k, name in enumerate(CLASSES):
            for n in range(10):
                picture(root / place.format(name) / f"{k}-{n}.png", (4, 4), seed=n)
    said = fails(f"folder:{root}", tmp_path)
    assert seen in said
    assert advice in said


def test_hidden_images_are_listed_and_no_class(photos, tmp_path):
    for place in (".old", "__MACOSX/deeper", "cats/.cache"):
        picture(photos / place / "1.png")
    picture(photos / "cats" / ".secret.png")
    (photos / "cats" / "._1.png").write_bytes(b"of macOS, beside 1.png")
    (photos / "cats" / ".DS_Store").write_bytes(b"of macOS")
    (photos / ".git").mkdir()
    data = load(photos, tmp_path)
    assert data.classes == CLASSES
    assert len(data.train) + len(data.test) == 30
    for name in CLASSES:
        (photos / name).rename(photos / f".{name}")
    assert "Hidden images and folders are not used: '.cats'" in fails(f"folder:{photos}", tmp_path)
    (note,) = data.notes
    assert note == (
        "Hidden images and folders are not used: '.old', '__MACOSX', 'cats/.cache', "
        "'cats/.secret.png'."
    )


def test_further_frames_are_counted(photos, tmp_path):
    frames = [Image.new("RGB", (8, 6), (k, k, k)) for k in range(4)]
    for name in ("a.gif", "b.tiff"):
        frames[0].save(photos / "cats" / name, save_all=True, append_images=frames[1:])
    for _ in range(2):  # decoded, and from the cache
        folder._load.cache_clear()
        (note,) = load(photos, tmp_path).notes
        assert note == (
            "One frame of each file is used; 6 further frames are not: 'cats/a.gif', 'cats/b.tiff'."
        )


def test_spaces_around_the_names_of_parts_and_classes(tmp_path):
    root = tmp_path / "split"
    for part in ("train ", " Test"):
        for name in CLASSES:
            picture(root / part / name / "0.png")
    assert len(load(root, tmp_path).test) == 3
    picture(root / "train " / "cats " / "0.png")
    assert "'cats' and 'cats '" in fails(f"folder:{root}", tmp_path)


def test_a_class_named_like_a_part_is_named(photos, tmp_path):
    """Loose pictures in a folder `test` beside the classes; but a train is a vehicle, too."""
    picture(photos / "test" / "0.png")
    picture(photos / "test" / "1.png", seed=1)
    data = load(photos, tmp_path)
    assert data.classes == (*CLASSES, "test")
    (note,) = data.notes
    assert "are used as classes: 'test'." in note


def test_a_named_pipe_is_no_picture(photos, tmp_path):
    os.mkfifo(photos / "cats" / "0")  # the first one, whose head the title needs
    assert title(f"folder:{photos}") == "photos"
    assert load(photos, tmp_path).left_out == ("cats/0",)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a folder" in fails(f"folder:{tmp_path / 'pipe'}", tmp_path)


def test_files_that_nobody_can_read_are_counted_in_the_sentence(photos, tmp_path):
    for path in photos.rglob("*.png"):
        path.write_text("no picture")
    assert "cannot be decoded: 30" in fails(f"folder:{photos}", tmp_path)


@pytest.mark.parametrize("count", [2, 3, 8, 30, 300])
def test_each_class_is_split(count, tmp_path):
    root = tmp_path / "few"
    names = {f"class {k}": [f"{k}-{n}.png" for n in range(count)] for k in range(3)}
    for label, files in names.items():
        for n, name in enumerate(files):
            picture(root / label / name, (4, 4), seed=n)
        for n in range(9):  # what is no picture is not for testing
            (root / label / f"{n}.txt").write_text("no picture")
    data = load(root, tmp_path)
    for label, files in enumerate(names.values()):
        natural = sum(
            int(hashlib.sha256(name.encode()).hexdigest()[:16], 16) % 5 == 0 for name in files
        )
        tested = int((data.test.labels == label).sum())
        assert max(1, count // 10) <= tested <= max(1, count // 3)
        if count // 10 <= natural <= count // 3 and natural:
            assert tested == natural
    assert len(data.train) + len(data.test) == 3 * count
    assert data.tested == data.classes


def test_classes_are_in_natural_order_and_a_checkpoint_keeps_its_own(tmp_path):
    root = tmp_path / "numbers"
    for n in range(1, 13):
        for k in range(5):
            picture(root / str(n) / f"{k}.png", seed=100 * n + k)
    data = load(root, tmp_path)
    assert data.classes == tuple(str(n) for n in range(1, 13))
    before = sorted(data.classes)
    assert before[:3] == ["1", "10", "11"]
    again = data.in_order(before)
    assert again.classes == tuple(before)
    for one, other in ((data.train, again.train), (data.test, again.test)):
        names = [data.classes[label] for label in one.labels]
        assert [before[label] for label in other.labels] == names
    assert data.in_order(data.classes) is data
    assert data.in_order(("other", *before[1:])) is None
