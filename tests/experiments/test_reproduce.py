"""Jobs, their resumption, and tables that are read from what they left."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from densembed.cli.main import main
from densembed.data import cifar, folder
from densembed.experiments import reproduce
from densembed.experiments.paper import TABLES
from densembed.experiments.report import Settings
from densembed.experiments.reproduce import Table, results, table_jobs, table_report
from densembed.fields.field import view
from densembed.figures import paper as figures
from densembed.models.registry import build, parameter_count
from densembed.runs import jobs
from densembed.runs.jobs import Job, hold_out, merge, run, together
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import train

ROWS = TABLES["mnist"][2:3]  # logistic-el-3


def settings(out, seeds=1, dataset="digits"):
    return Settings(dataset=dataset, seeds=seeds, out=out)


@pytest.fixture
def short(monkeypatch):
    """A recipe of one epoch."""
    monkeypatch.setitem(reproduce.RECIPES, "paper", {"epochs": 1, "device": "cpu"})


def test_the_papers_numbers():
    """A few of them, as printed."""
    assert len(TABLES["mnist"]) == len(TABLES["cifar10"]) == 9
    assert (TABLES["mnist"][8].error, TABLES["mnist"][8].deviation) == (2.91, 0.16)
    assert sum(row.parameters for row in TABLES["mnist"]) == 62898
    assert sum(row.parameters for row in TABLES["cifar10"]) == 276790


def test_the_papers_recipe_is_the_default():
    config = table_jobs(["linear"], settings(Path("x"), dataset="mnist"))[0].config
    assert config == RunConfig(model="linear", dataset="mnist")
    assert (config.epochs, config.batch_size, config.learning_rate) == (20, 128, 0.002)


def test_a_row_from_its_jobs(short, tmp_path):
    made = table_jobs(["logistic-el-3"], settings(tmp_path, 2))
    assert [job.checkpoint() for job in made] == [None, None]
    for job in made:
        together([job])
    (row,) = results(ROWS, settings(tmp_path, 2))
    errors = [Checkpoint.open(job.path).errors[0] for job in made]
    assert row["errors"] == pytest.approx(errors, abs=1e-4)
    assert row["parameters"] == 136
    assert row["mean"] == pytest.approx(sum(errors) / 2, abs=1e-4)
    assert row["deviation"] == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5, abs=1e-4)
    table = table_report([row], dataset="digits", recipe="paper")
    assert table["rows"][0]["paper_mean"] == 17.8
    assert f"{row['mean']:.2f} ± {row['deviation']:.2f}" in Table("table1", "mnist").markdown(table)
    merged = merge(made)
    assert merged.members == 2
    for member, job in enumerate(made):
        alone = Checkpoint.open(job.path)
        for name, value in merged.state(-1, member).items():
            assert torch.equal(value, alone.state()[name])


def test_a_finished_job_is_not_run_again(short, tmp_path):
    made = table_jobs(["logistic-el-3"], settings(tmp_path))
    together([made[0]])
    stamp = made[0].path.stat().st_mtime_ns
    jobs = []
    run(made, finished=jobs.append)
    assert jobs == made
    assert made[0].path.stat().st_mtime_ns == stamp
    other = Job(made[0].config.model_copy(update={"epochs": 2}), made[0].path)
    assert other.checkpoint() is None


def test_held_out_images_are_of_the_training_set(digits):
    part = hold_out(digits, 100)
    assert len(part.train) == len(digits.train) - 100
    assert torch.equal(part.test.images, digits.train.images[-100:])
    assert torch.equal(torch.cat((part.train.labels, part.test.labels)), digits.train.labels)


def test_the_command_writes_table_and_markdown(short, tmp_path, capsys):
    arguments = ["reproduce", "table1", "--rows", "logistic-el-3,linear,logistic-el-3"]
    arguments += ["--dataset", "digits", "--seeds", "1", "--processes", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    text, progress = capsys.readouterr()
    assert progress == "done 1/2: logistic-el-3, seed 0\ndone 2/2: linear, seed 0\n"  # no terminal
    assert text.count("logistic-el-3") == 1
    assert "\n1 seed per row; " in text
    assert "The paper's errors are of MNIST.\n" in text
    table = json.loads((tmp_path / "table1-digits-paper.json").read_text())
    assert [row["model"] for row in table["rows"]] == ["logistic-el-3", "linear"]
    of_mnist = Table("table1", "mnist").markdown(table | {"dataset": "mnist"})
    assert "The paper's errors" not in of_mnist
    assert (tmp_path / "table1-digits-paper.md").read_text().startswith("### digits, recipe paper")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_file_that_cannot_be_written_is_named_in_one_sentence(short, tmp_path, capfd, processes):
    """Dask printed an error of its own for each attempt, and the sentence named no file."""
    place = tmp_path / "digits/paper/linear/0.safetensors"
    place.mkdir(parents=True)
    command = ["reproduce", "table1", "--dataset", "digits", "--rows", "linear", "--seeds", "2"]
    assert main([*command, "--processes", processes, "--out", str(tmp_path)]) == 2
    lines = capfd.readouterr().err.splitlines()
    (line,) = (line for line in lines if not line.startswith("done "))
    start = f"{place}" if processes == "1" else f"The worker could not read or write '{place}'"
    assert line.startswith(f"densembed: {start}: ")  # and the reason of this system


@pytest.fixture
def earlier(short, tmp_path):
    """The command for table 1 in small, and its results with two rows of two seeds."""
    command = ["reproduce", "table1", "--dataset", "digits", "--processes", "1"]
    command += ["--out", str(tmp_path / "out"), "--gallery", str(tmp_path / "gallery")]
    assert main([*command, "--rows", "linear,logistic-el-3", "--seeds", "2"]) == 0
    return command


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("option", ["--out", "--gallery"])
def test_fewer_rows_or_seeds_do_not_replace_results(earlier, tmp_path, capsys, monkeypatch, option):
    if option == "--gallery":
        earlier[earlier.index("--out") + 1] = str(tmp_path / "other")
    before = contents(tmp_path)
    capsys.readouterr()
    monkeypatch.setattr(jobs, "run", lambda *_, **__: pytest.fail("started to train"))
    where = earlier[earlier.index(option) + 1]
    start = f"densembed: The results in '{where}/table1-digits-paper.json' have "
    end = f", or another folder for {option}.\n"
    for change, lost, remedy in (
        (
            ["--rows", "linear", "--seeds", "1"],
            "the row 'logistic-el-3' and 2 seeds per row",
            "--rows linear,logistic-el-3 --seeds 2",
        ),
        (
            ["--rows", "mlp-50", "--seeds", "2"],
            "the rows 'linear', 'logistic-el-3'",
            "--rows linear,logistic-el-3,mlp-50",
        ),
        (["--seeds", "1"], "2 seeds per row", "--seeds 2"),
    ):
        assert main([*earlier, *change]) == 2
        sentence = f"{lost}, which this run would remove. Nothing was changed. Use {remedy}"
        assert capsys.readouterr().err == f"{start}{sentence}{end}"
        assert contents(tmp_path) == before


def test_the_same_or_a_larger_run_replaces_results(earlier, tmp_path):
    path = tmp_path / "out/table1-digits-paper.json"
    for rows, seeds in (("logistic-el-3,linear", 2), ("linear,logistic-el-3,logistic-el-5", 3)):
        assert main([*earlier, "--rows", rows, "--seeds", str(seeds)]) == 0
        made = json.loads(path.read_bytes())["rows"]
        assert [row["model"] for row in made] == rows.split(",")
        assert {len(row["errors"]) for row in made} == {seeds}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 100_000,
        "[1]",
        '{"rows": 1, "models": 2}',
        '{"rows": [1, {"model": 3, "errors": 4}, {"errors": [1, 2, 3]}], "models": [[]]}',
    ],
    ids=["empty", "deep", "list", "numbers", "mixed"],
)
def test_a_damaged_results_file_is_replaced(short, tmp_path, content):
    path = tmp_path / "table1-digits-paper.json"
    path.write_text(content)
    command = ["reproduce", "table1", "--dataset", "digits", "--rows", "linear", "--seeds", "1"]
    assert main([*command, "--processes", "1", "--out", str(tmp_path)]) == 0
    assert [row["model"] for row in json.loads(path.read_bytes())["rows"]] == ["linear"]


@pytest.mark.parametrize(
    ("arguments", "file", "named"),
    [
        (["frames", "--rows", "logistic-el-3"], "frames-digits-paper", "'logistic-el-15'"),
        (["search", "--rows", "linear"], "search-digits", "'logistic-el-3', 'logistic-el-15'"),
        (["search"], "search-digits", "'mlp-50'"),
        (["times", "--rows", "linear"], "times-digits", "'mlp-50'"),
        (["frontier", "--rows", "logistic-el-3"], "frontier-digits", "'cnn-8-16'"),
    ],
)
def test_no_experiment_loses_rows(tmp_path, capsys, arguments, file, named):
    reports = {
        "frames": {"rows": [{"model": "logistic-el-15"}, {"model": "logistic-el-mass-15"}]},
        "search": {"models": ["logistic-el-3", "logistic-el-15", "mlp-50"], "rows": []},
        "times": {"rows": [{"model": "mlp-50", "mean": 1.0}]},
        "frontier": {"entries": [], "candidates": [{"model": "cnn-8-16"}]},
    }
    text = json.dumps(reports[arguments[0]])
    (tmp_path / f"{file}.json").write_text(text)
    assert main(["reproduce", *arguments, "--dataset", "digits", "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line
    assert "Nothing was changed" in line
    assert "logistic-el-mass" not in line
    assert [*tmp_path.iterdir()] == [tmp_path / f"{file}.json"]
    assert (tmp_path / f"{file}.json").read_text() == text


def test_results_are_of_the_same_data(short, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    for k in range(12):
        place = tmp_path / "shades" / f"{k % 2}" / f"{k}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (20 * k, 0, 0)).save(place)
    command = ["reproduce", "table2", "--rows", "logistic-el-3", "--seeds", "1"]
    command += ["--processes", "1", "--out", str(tmp_path / "out")]
    command += ["--dataset", f"folder:{tmp_path / 'shades'}"]
    assert main(command) == 0
    Image.new("RGB", (32, 32), "blue").save(place)
    os.utime(place, (1, 1))
    folder._load.cache_clear()
    capsys.readouterr()
    assert main(command) == 2  # though all is trained
    (line,) = capsys.readouterr().err.splitlines()
    assert "has changed since the first training in 'out': the same number of images" in line
    (record,) = (tmp_path / "out").glob("data-*.json")
    record.write_text("{}")
    assert main(command) == 2
    assert f"The file '{record.name}' in 'out' is damaged" in capsys.readouterr().err


def shades(root: Path, brightness: int) -> str:
    """A folder of small grey pictures in two classes, as the name of a data set."""
    for k in range(12):
        place = root / f"{k % 2}" / f"{k}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (9, 9), 20 * k + brightness).save(place)
    return f"folder:{root}"


def test_two_folders_of_one_name_have_no_common_results(short, tmp_path, monkeypatch, capsys):
    """The results of the second one replaced those of the first."""
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    first, second = (shades(tmp_path / part / "shades", k) for k, part in enumerate("ab"))
    out = tmp_path / "out"
    command = ["reproduce", "table1", "--rows", "linear", "--seeds", "1", "--processes", "1"]
    command += ["--out", str(out), "--dataset"]
    assert main([*command, first]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert main([*command, second]) == 2
    said = capsys.readouterr().err
    assert "The folder 'out' has results of another data set that is called 'shades', too" in said
    assert second in said
    assert first not in said
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert main([*command, first]) == 0


def test_a_folder_called_mnist_does_not_pass_for_it(short, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    out, name = tmp_path / "out", shades(tmp_path / "mnist", 0)
    command = ["reproduce", "table1", "--rows", "linear", "--seeds", "1", "--processes", "1"]
    command += ["--dataset", name, "--out", str(out), "--gallery", str(tmp_path / "gallery")]
    assert main(command) == 0
    assert "The paper's errors are of MNIST." in capsys.readouterr().out
    assert json.loads((out / "table1-folder-mnist-paper.json").read_bytes())["dataset"] != "mnist"
    assert (out / "folder-mnist/paper/linear/0.safetensors").is_file()
    assert (tmp_path / "gallery/linear-folder-mnist.safetensors").is_file()
    assert not (out / "table1-mnist-paper.json").exists()
    table = Settings(dataset="csv:data/mnist1d", seeds=1, out=out)
    assert (table.title, table.slug) == ("table mnist1d", "table-mnist1d")
    own = Settings(dataset="mnist", seeds=1, out=out)
    assert (own.title, own.slug, own.folder) == ("mnist", "mnist", out / "mnist")


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rows", ""],
        ["--rows", " "],
        ["--dataset", ""],
        ["--seeds", "0"],
        ["--seeds", "1000000000"],
        ["--processes", "100000"],
        ["--processes", "x"],
        ["--processes", "0"],
        ["--processes", "-1"],
    ],
    ids=" ".join,
)
def test_arguments_that_would_train_something_else(wrong, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "table1", *wrong, "--out", str(tmp_path / "out")])
    assert f"argument {wrong[0]}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", [["--rows", "resnet"], ["--rows", ","]])
def test_wrong_arguments_are_one_sentence(wrong, tmp_path, capsys):
    assert main(["reproduce", "table1", *wrong, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_figure1_has_the_fields_of_its_models(short, tmp_path, digits):
    made = {model: table_jobs([model], settings(tmp_path)) for model in figures.FIGURE1}
    for (job,) in made.values():
        together([job])
    checkpoints = {model: merge(part) for model, part in made.items()}
    pictures = digits.test.images[:3]
    parts = figures.figure1_of(checkpoints, pictures)
    assert list(parts) == list(figures.FIGURE1)
    moving, *fixed = parts.values()
    heats = [trace.z for trace in moving.data]
    assert len(heats) == 3 * 3
    views = [view(checkpoints[figures.FIGURE1[0]], x, [0, -1]) for x in pictures]
    for k, (picture, of) in enumerate(zip(pictures, views, strict=True)):
        assert (heats[3 * k] == picture[0].numpy() / np.float32(255)).all()
        assert (heats[3 * k + 1] == of.fields[0].sum(0)).all()
        assert (heats[3 * k + 2] == of.fields[-1].sum(0)).all()
    assert not (heats[2] == heats[5]).all()
    assert moving.layout.coloraxis.cmax == max(of.top for of in views)
    assert [len(figure.data) for figure in fixed] == [2, 2]
    page = figures.figure1_page("Figure 1 on digits with recipe paper", parts)
    assert page.count("<h2>") == 3
    assert page.count("Plotly.newPlot") >= 3
    assert "<script src=" not in page  # it opens without a network


def test_figure1_of_the_included_models_says_so(tmp_path, capsys, monkeypatch):
    """Not the recipe, which is another one, nor that they are models of the inputs' data set."""
    shipped = Path(__file__).parents[2] / "checkpoints" / "paper"
    monkeypatch.setenv("DENSEMBED_GALLERY", str(shipped))
    arguments = ["reproduce", "figure1", "--included", "--dataset", "digits", "--inputs", "7, 2, 1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    title = "Figure 1 of the included models with inputs from digits"
    assert f"### {title}\n" in capsys.readouterr().out
    (path,) = tmp_path.iterdir()
    assert path.name == "figure1-digits-included.html"
    assert f"<title>{title}</title>" in path.read_text()


def test_figure1_of_the_included_models_takes_grey_pictures(tmp_path, capsys, monkeypatch):
    shipped = Path(__file__).parents[2] / "checkpoints" / "paper"
    monkeypatch.setenv("DENSEMBED_GALLERY", str(shipped))
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    for k in range(12):
        place = tmp_path / "hues" / f"{k % 3}" / f"{k}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 20), (20 * k, 99, 0)).save(place)
    command = ["reproduce", "figure1", "--included", "--out", str(tmp_path / "out"), "--dataset"]
    assert main([*command, f"folder:{tmp_path / 'hues'}"]) == 2
    assert capsys.readouterr().err == (
        "densembed: The included models take grey images of 28 × 28 pixels, but hues has colour "
        "images. Leave out --included to train models for them, or write folder:PATH@1x28x28 to "
        "convert the images of a folder.\n"
    )
    assert not (tmp_path / "out").exists()
    assert main([*command, f"folder:{tmp_path / 'hues'}@1x28x28"]) == 0


def test_times_are_of_the_device_that_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(reproduce.Times, "epochs", 2)
    used = []
    monkeypatch.setattr(
        reproduce, "train", lambda config, data: used.append(config) or train(config, data)
    )
    name, out = shades(tmp_path / "private" / "shades", 0), tmp_path / "out"
    command = ["reproduce", "times", "--rows", "linear", "--dataset", name, "--out", str(out)]
    assert main([*command, "--device", "cuda"]) == 2
    assert "This machine has no cuda device" in capsys.readouterr().err
    assert (used, out.exists()) == ([], False)
    assert main([*command, "--device", "cpu"]) == 0
    assert [(config.device, config.epochs) for config in used] == [("cpu", 3)]
    text = (out / "times-shades.json").read_text()
    assert (json.loads(text)["dataset"], json.loads(text)["runs"]) == ("shades", 2)
    assert "private" not in text


@pytest.fixture(scope="module")
def small_cifar(tmp_path_factory):
    """A folder of CIFAR-10's classes and form: four JPEGs of noise a class to train on."""
    root = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(1)
    for part, count in (("train", 4), ("test", 2)):
        for name in cifar.CLASSES:
            folder = root / "mine" / part / name
            folder.mkdir(parents=True)
            for n in range(count):
                pixels = random.integers(0, 256, (32, 32, 3), np.uint8)
                Image.fromarray(pixels).save(folder / f"{n}.jpg")
    return root


def test_table2_has_the_papers_parameters_and_says_what_it_learned_from(
    short, small_cifar, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("DENSEMBED_DATA", str(tmp_path / "elsewhere"))
    gallery = tmp_path / "gallery"
    gallery.mkdir()
    arguments = ["reproduce", "table2", "--dataset", "folder:mine", "--seeds", "2", "--rows"]
    arguments += ["linear,logistic-el-15,logistic-el-mnn-10-5", "--data-dir", str(small_cifar)]
    arguments += ["--processes", "1"]
    assert main([*arguments, "--out", str(tmp_path), "--gallery", str(gallery)]) == 0
    assert r"### CIFAR\-10 \(JPEG\), recipe paper" in capsys.readouterr().out
    name = "table2-cifar-10-jpeg-paper"
    assert r"### CIFAR\-10 \(JPEG\)" in (tmp_path / f"{name}.md").read_text()
    text = (gallery / f"{name}.json").read_text()
    assert str(small_cifar) not in text
    table = json.loads(text)
    assert table["dataset"] == "CIFAR-10 (JPEG)"
    assert [row["parameters"] for row in table["rows"]] == [30_730, 9_460, 49_510]
    assert all(row["parameters"] == row["paper_parameters"] for row in table["rows"])
    kept = Checkpoint.open(gallery / "logistic-el-15-cifar-10-jpeg.safetensors")
    assert kept.header.provenance.dataset_title == "CIFAR-10 (JPEG)"
    assert kept.config.dataset == "folder:mine"
    errors = table["rows"][1]["errors"]
    assert kept.errors[0] == pytest.approx(min(errors, key=lambda e: abs(e - sum(errors) / 2)))


def test_every_row_of_table2_is_built_with_the_papers_parameters():
    for row in TABLES["cifar10"]:
        assert parameter_count(build(row.model, (3, 32, 32))) == row.parameters


def test_data_that_cannot_be_had_is_one_sentence_before_anything_starts(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(jobs, "run", lambda *_, **__: pytest.fail("started to train"))
    command = ["reproduce", "table2", "--dataset", f"folder:{tmp_path}/gone"]
    assert main([*command, "--out", str(tmp_path)]) == 2
    assert "was not found" in capsys.readouterr().err
