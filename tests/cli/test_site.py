"""The command site: its errors, and the addresses that its page loads."""

import base64
import json
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from densembed.cli.main import main
from densembed.text import printable
from densembed.training.checkpoint import Checkpoint
from tests.browser.gallery import made


@pytest.fixture
def site(tmp_path, capsys, monkeypatch):
    """Write a site; returns status, stderr and the folder of the site."""
    monkeypatch.chdir(tmp_path)

    def write(*arguments: object) -> tuple[int | str | None, str, Path]:
        out = tmp_path / "public"
        try:
            status = main(["site", str(out), *map(str, arguments)])
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr().err, out

    return write


def test_the_page_finds_its_files_whatever_their_names(site, trained_file, tmp_path):
    names = ("a#b", "100%20", 'what? "quoted"', "back\\slash", "latin\udce9", "small")
    paths = [Path(os.fsdecode(os.fsencode(tmp_path / f"{name}.safetensors"))) for name in names]
    for path in paths:
        path.write_bytes(trained_file.read_bytes())
    status, errors, out = site(*paths)
    assert (status, errors) == (0, "")
    page = (out / "index.html").read_text()
    written = json.loads(re.search(r'id="site">(.*?)</script>', page, re.DOTALL)[1])
    scripts = [model["script"] for model in written["models"].values()]
    assert len(scripts) == len(names)
    for script in scripts:
        address = urlsplit(f"http://localhost/{script}")  # as a browser takes it apart
        content = (out / unquote(address.path[1:])).read_text()
        encoded = re.findall(r'"([A-Za-z0-9+/]{100,}=*)"', content)[0]
        assert base64.b64decode(encoded) == trained_file.read_bytes()
        assert not set(script) & set('?#\\"<')


def test_models_without_examples_are_named(site, tmp_path):
    (tmp_path / "colour.safetensors").write_bytes(made("logistic-el-3", (3, 12, 21)))
    status, errors, _ = site(tmp_path / "colour.safetensors")
    assert status == 0
    assert errors.startswith("densembed: The site has no examples for colour.safetensors, which ")
    assert errors.endswith(
        "takes images of 3 × 12 × 21: those of 'digits' have another shape. Name data that "
        "suit it with --dataset.\n"
    )
    (tmp_path / "letters.safetensors").write_bytes(made("logistic-el-3", (1, 28, 28), classes="ab"))
    _, errors, _ = site(tmp_path / "letters.safetensors")
    assert errors.startswith("densembed: The site has no examples for letters.safetensors, which ")
    assert "has the 2 classes 'a', 'b': those of 'digits' have other classes." in errors


def test_the_order_of_models_is_that_of_the_files(site, trained_file, tmp_path):
    names = ("best", "20", "5", "__proto__")
    paths = [tmp_path / f"{name}.safetensors" for name in names]
    for path in paths:
        path.write_bytes(trained_file.read_bytes())
    _, _, out = site(*paths)
    page = (out / "index.html").read_text()
    written = json.loads(re.search(r'id="site">(.*?)</script>', page, re.DOTALL)[1])
    keys = list(written["models"])
    assert keys == ["best", "20.safetensors", "5.safetensors", "__proto__.safetensors"]
    assert all(file in {path.name for path in out.iterdir()} for file in map("{}.js".format, keys))


def test_a_file_that_is_named_twice_is_shown_once(site, trained_file):
    folder = trained_file.parent
    other = folder / ".." / folder.name / trained_file.name
    status, errors, out = site(trained_file, trained_file, other)
    assert (status, errors) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == ["index.html", f"{trained_file.stem}.js"]


def test_a_site_names_no_folder_of_this_machine(site, trained, tmp_path):
    path = tmp_path / "a.safetensors"
    config = trained.config.model_copy(update={"dataset": "folder:/home/me/photos"})
    header = trained.header.model_copy(update={"config": config})
    Checkpoint(header, trained.tensors).save(path)
    status, errors, out = site(path)
    assert (status, errors) == (0, "")
    encoded = re.findall(r'"([A-Za-z0-9+/]{100,}=*)"', (out / "a.js").read_text())[0]
    shown = Checkpoint.from_bytes(base64.b64decode(encoded))
    assert shown.config.dataset == "elsewhere"
    assert shown.digest == Checkpoint.open(path).without_data().digest


def test_scripts_of_an_earlier_site_are_removed(site, trained_file, tmp_path):
    """They would be published with the new one."""
    first = tmp_path / "first.safetensors"
    first.write_bytes(trained_file.read_bytes())
    out = site(first)[2]
    (out / "own.js").write_text("// of the person who publishes the site")
    assert site(trained_file)[0] == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["index.html", "own.js", f"{trained_file.stem}.js"]


@pytest.mark.parametrize("kind", ["page", "script"])
def test_only_a_file_of_its_own_is_replaced(site, trained_file, kind):
    out = site(trained_file)[2]
    file = out / {"page": "index.html", "script": f"{trained_file.stem}.js"}[kind]
    written = file.read_bytes()
    file.write_bytes(written + b"\n")
    assert site(trained_file)[:2] == (0, "")
    assert file.read_bytes() == written
    file.write_text("my own")
    status, errors, _ = site(trained_file)
    assert status == 2
    assert f"{file} was not written by this command" in errors
    assert file.read_text() == "my own"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("one/a", "two/a"),
        ("Small", "small"),
        ("caf\u00e9", "cafe\u0301"),  # as Linux and macOS write it
        ("latin\\xe9", "latin\udce9"),
    ],
)
def test_two_names_that_would_be_one_file_are_refused(site, trained_file, tmp_path, first, second):
    paths = [tmp_path / f"{name}.safetensors" for name in (first, second)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(trained_file.read_bytes())
    status, errors, out = site(*paths)
    assert status == 2
    assert all(printable(path) in errors for path in paths)
    assert "rename one of them" in errors
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", "absent.safetensors cannot be read: No such file or directory."),
        ("damaged", "damaged.safetensors is not a densembed checkpoint."),
        ("plugin", "plugin.safetensors needs the plugin json, which a browser cannot run"),
        ("", "the path is empty"),
    ],
)
def test_a_wrong_checkpoint_writes_no_part_of_a_site(
    site, trained, trained_file, tmp_path, monkeypatch, name, words
):
    (tmp_path / "damaged.safetensors").write_bytes(b"no")
    header = trained.header.model_copy(update={"plugins": ["json"]})
    content = Checkpoint(header, trained.tensors).to_bytes()
    (tmp_path / "plugin.safetensors").write_bytes(content)
    monkeypatch.setattr("densembed.models.plugins.missing", lambda names: "")
    status, errors, out = site(trained_file, tmp_path / f"{name}.safetensors" if name else "")
    assert status == 2
    assert words in errors
    assert "Traceback" not in errors
    assert not out.exists()


def test_what_a_folder_leaves_out_is_named(site, trained_file, tmp_path):
    for k in range(8):
        path = tmp_path / "photos" / "ab"[k % 2] / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (28, 28), k).save(path)
    path.with_name("notes.txt").write_text("no image")
    status, errors, _ = site(trained_file, "--dataset", "folder:photos")
    assert status == 0
    assert "b/notes.txt" in errors
