"""What is kept of a folder of pictures, and when it is decoded anew."""

import os
import shutil

import pytest
import torch
from PIL import Image

from densembed.data import folder
from tests.data.folders import load, picture


def test_decoded_once(photos, tmp_path, monkeypatch):
    first = load(photos, tmp_path)
    folder._load.cache_clear()
    monkeypatch.setattr(folder, "to_shape", lambda *_: pytest.fail("decoded again"))
    second = load(photos, tmp_path)
    assert torch.equal(first.train.images, second.train.images)
    assert torch.equal(first.test.labels, second.test.labels)
    assert (first.classes, first.title) == (second.classes, second.title)


def test_a_copy_elsewhere_uses_what_was_kept(photos, tmp_path, monkeypatch):
    """As from an archive, or with other times."""
    load(photos, tmp_path)
    moved = tmp_path / "elsewhere" / "photos"
    shutil.copytree(photos, moved)
    for path in moved.rglob("*.png"):
        os.utime(path, (0, 0))
    monkeypatch.setattr(folder, "to_shape", lambda *_: pytest.fail("decoded again"))
    assert len(load(moved, tmp_path).train) > 0


def test_a_changed_picture_is_read_anew(photos, tmp_path):
    before = load(photos, tmp_path)
    folder._load.cache_clear()
    pixels = picture(photos / "cats" / "1.png", seed=77)
    os.utime(photos / "cats" / "1.png", (1, 1))
    after = load(photos, tmp_path)
    wanted = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
    assert any(torch.equal(one, wanted) for one in (*after.train.images, *after.test.images))
    assert not any(torch.equal(one, wanted) for one in (*before.train.images, *before.test.images))


@pytest.mark.parametrize("exchanged", ["classes", "files"])
def test_exchanged_pictures_are_read_anew(exchanged, tmp_path):
    """Their names, sizes and times are all as before."""
    root = tmp_path / "photos"
    shades = {"cats": 10, "dogs": 200}
    for label, shade in shades.items():
        for n in range(4):
            place = root / label / f"{n}.bmp"  # all of one size
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 6), shade).save(place)
            os.utime(place, (1, 1))
    data = {"before": load(root, tmp_path)}
    folder._load.cache_clear()
    pairs = [("", "")] if exchanged == "classes" else [(f"{n}.bmp",) * 2 for n in range(4)]
    for one, other in pairs:
        cat, dog, aside = root / "cats" / one, root / "dogs" / other, tmp_path / "aside"
        cat.rename(aside)
        dog.rename(cat)
        aside.rename(dog)
    data["after"] = load(root, tmp_path)
    for when, found in data.items():
        for part in (found.train, found.test):
            for image, label in zip(part.images, part.labels, strict=True):
                shade = shades[found.classes[label]]
                assert (image == (shade if when == "before" else 210 - shade)).all()


def test_a_damaged_cache_is_made_again(photos, tmp_path):
    load(photos, tmp_path)
    folder._load.cache_clear()
    (kept,) = (tmp_path / "data" / "folders").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert len(load(photos, tmp_path).train) > 0


def test_a_data_folder_that_cannot_be_written_is_no_fault(photos, tmp_path):
    (tmp_path / "data").write_text("a file where the folder would be")
    assert len(load(photos, tmp_path).train) > 0


def test_few_caches_are_kept(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MAX_CACHES", 2)
    for side in (5, 6, 7, 8):
        load(photos, tmp_path, f"@3x{side}x{side}")
    assert len(list((tmp_path / "data" / "folders").iterdir())) == 2


def test_what_was_decoded_by_older_rules_is_not_used(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "RULES", folder.RULES - 1)
    load(photos, tmp_path)
    monkeypatch.undo()
    folder._load.cache_clear()
    load(photos, tmp_path)
    assert len(list((tmp_path / "data" / "folders").iterdir())) == 2
