"""User-defined densities and models, selected by the person who runs the program."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch

import densembed
from densembed.cli.main import main
from densembed.fields.field import field, view
from densembed.functional.densities import FAMILIES, Cauchy, Logistic
from densembed.layers import DensityEmbedding2d
from densembed.models import plugins
from densembed.models.architectures import DensityNetwork
from densembed.models.names import MODELS, check_name, describe
from densembed.models.plugins import PluginError
from densembed.models.registry import build, register_density, register_model
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.header import CheckpointError
from densembed.training.loop import Snapshot
from densembed.training.recorder import Recorder
from tests.conftest import is_sentence
from tests.registry import restored
from tests.test_docs import EXAMPLES
from tests.training.files import content, header

PLUGIN = next(text for title, text in EXAMPLES.items() if title.startswith("Plugins"))
"""The module `my_densities` of docs/engineers.md: a density "student", a model "strided-…"."""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Plugins to import, and registries and modules as they were afterwards."""
    (tmp_path / "my_densities.py").write_text(PLUGIN)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "unfinished.py").write_text("def f(:\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit\n")
    (tmp_path / "needing.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "taking.py").write_text(
        "import densembed\nfrom densembed.functional.densities import Logistic\n"
        "densembed.register_density(Logistic())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(plugins.VARIABLE, "")
    with restored():
        yield tmp_path
    for name, module in list(sys.modules.items()):  # not those of torch, which load when needed
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def named(name: str) -> Logistic:
    return type("Mine", (Logistic,), {"name": name, "__module__": __name__})()


# Registering


def test_a_registered_density_is_known_everywhere():
    family = register_density(named("mine"))
    assert FAMILIES["mine"] is family
    assert describe("mine-el-mnn-4-2") == "Mine-EL with mNN, B = 4, B₀ = 2"
    torch.manual_seed(0)
    model = build("mine-el-4", (1, 6, 8))
    assert model.embedding.family is family
    torch.manual_seed(0)
    other = build("logistic-el-4", (1, 6, 8))
    x = torch.rand(2, 1, 6, 8)
    torch.testing.assert_close(model(x), other(x))
    with pytest.raises(ValueError, match="Unknown model"):
        check_name("yours-el-4")


def test_a_registered_model_is_built_with_what_its_name_says():
    calls = []

    def builder(*arguments):
        calls.append(arguments)
        return torch.nn.Flatten()

    register_model("mine-{size}-{family}", builder, words="Mine {} {}", max_size=100)
    register_model("mine", builder)
    build("mine-100-cauchy", (1, 4, 5), classes=20)
    build("mine", (1, 4, 5), classes=20)
    assert calls == [((1, 4, 5), 20, 100, "cauchy"), ((1, 4, 5), 20)]
    assert describe("mine-7-cauchy") == "Mine 7 Cauchy"
    assert describe("mine") == "mine"
    with pytest.raises(ValueError, match="between 1 and 100"):
        build("mine-101-cauchy")


@pytest.mark.parametrize(
    ("builder", "fault"),
    [
        (lambda shape, classes: 3, "is no torch.nn.Module; its builder returned int."),
        (lambda shape, classes: torch.nn.Linear(3, classes), "RuntimeError, mat1 and mat2"),
        (lambda shape, classes: torch.nn.Identity(), "got (2, 1, 6, 8)."),
        (lambda shape, classes: Tuples(), "got tuple."),
    ],
)
def test_a_model_that_does_not_fit_its_inputs_is_a_sentence(builder, fault, capsys, tmp_path):
    register_model("unfit", builder)
    with pytest.raises(ValueError, match=r"^The model unfit of a plugin") as caught:
        build("unfit", (1, 6, 8))
    assert is_sentence(str(caught.value))
    assert fault in str(caught.value)
    assert main(["train", "unfit", "--epochs=1", "--out", str(tmp_path / "a.safetensors")]) == 2
    assert "The model unfit of a plugin" in capsys.readouterr().err


class Tuples(torch.nn.Module):
    def forward(self, x):
        return (x,)


def test_ones_own_may_be_replaced_and_others_not():
    register_density(named("mine"))
    again = register_density(named("mine"))
    assert FAMILIES["mine"] is again
    stranger = named("mine")
    type(stranger).__module__ = "somewhere.different"
    with pytest.raises(ValueError, match=r"'mine' is taken by tests\.models\.test_plugins"):
        register_density(stranger)
    with pytest.raises(ValueError, match="'logistic' is taken by densembed"):
        register_density(Logistic())
    assert FAMILIES["mine"] is again
    for form in ("linear", "{family}-el-{size}", "mlp-50"):
        with pytest.raises(ValueError, match="taken by densembed"):
            register_model(form, torch.nn.Flatten)


def test_what_is_replaced_is_shown_anew(digits):
    """Networks are cached; a notebook registers its density or model again and again."""

    def wide(classes, family):
        embedding = DensityEmbedding2d((28, 28), num_densities=(3, 3), family=family)
        return DensityNetwork(embedding, classes)

    register_density(named("mine"))
    register_model("own", lambda shape, classes: wide(classes, "mine"))
    for name in ("mine-el-3", "own"):
        torch.manual_seed(0)
        state = {key: value[None] for key, value in build(name).state_dict().items()}
        recorder = Recorder(RunConfig(model=name, device="cpu"), digits)
        recorder.add(Snapshot(0, state))
        checkpoint = recorder.checkpoint()
        first = view(checkpoint, digits.test.images[0])
        if name == "own":
            register_model("own", lambda shape, classes: wide(classes, "cauchy"))
        else:
            cauchy = type("Mine", (Cauchy,), {"name": "mine", "__module__": __name__})
            register_density(cauchy())
        second = view(checkpoint, digits.test.images[0])
        fresh = field(checkpoint.model(), None, 4).values[0]
        assert not (first.fields[0] == second.fields[0]).all()
        assert (second.fields[0] == fresh).all()
        register_density(named("mine"))


@pytest.mark.parametrize("name", ["", "Mine", "my-own", "8", "ünï", "x" * 21, "a\n", 3, None])
def test_names_that_models_cannot_hold_are_refused(name):
    with pytest.raises(ValueError, match="lowercase letters and digits") as caught:
        register_density(named(name))
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (Logistic, "Expected an instance of Density"),
        ("logistic", "Expected an instance of Density"),
        (type("Wide", (Logistic,), {"name": "mine", "std": -1.0})(), "positive std and iqr"),
        (type("Odd", (Logistic,), {"name": "mine", "iqr": None})(), "positive std and iqr"),
    ],
)
def test_what_is_no_density_is_refused(family, message):
    with pytest.raises(ValueError, match=message):
        register_density(family)
    assert "mine" not in FAMILIES


@pytest.mark.parametrize(
    "form",
    [
        "",
        "-",
        "a-",
        "A",
        "a b",
        "a/{size}",
        "{size",
        "{other}",
        "{family}{size}",
        "a.*",
        "ä",
        "a\n",
    ],
)
def test_malformed_forms_are_refused(form):
    with pytest.raises(ValueError, match="A template of names"):
        register_model(form, torch.nn.Flatten)


@pytest.mark.parametrize("words", ["{} and {}", "{other}", "{"])
def test_words_that_do_not_fit_the_form_are_refused(words):
    with pytest.raises(ValueError, match=r"\{\} 1 times"):
        register_model("mine-{size}", torch.nn.Flatten, words=words)


# Loading


def test_a_plugin_is_loaded_by_name():
    plugins.load(["my_densities"])
    model = build("strided-student-el-6", (1, 28, 28))
    x = torch.rand(2, 1, 28, 28)
    assert model(x).shape == (2, 10)
    assert field(model, x, 2).values.shape == (1, 1, 56, 56)
    assert os.environ[plugins.VARIABLE] == "my_densities"
    plugins.load(["my_densities"])
    assert os.environ[plugins.VARIABLE] == "my_densities"


def test_plugins_needed_by_a_model():
    plugins.load(["my_densities"])
    assert plugins.needed("strided-logistic-el-6") == ["my_densities"]
    assert plugins.needed("student-el-6") == ["my_densities"]
    assert plugins.needed("logistic-el-6") == []


def test_a_package_is_named_for_what_its_parts_register(folder):
    package = folder / "mine_all"
    package.mkdir()
    (package / "__init__.py").write_text("from mine_all import parts\n")
    (package / "parts.py").write_text(PLUGIN)
    plugins.load(["mine_all"])
    assert plugins.needed("student-el-6") == ["mine_all"]


REFUSED = {
    "no_such_plugin": "no module no_such_plugin",
    "my_densities.part": "no module my_densities.part",
    "no.such.plugin": "no module no.such.plugin",
    "no_such_plugin.py": "write no_such_plugin, the name without .py.",
    "broken": "plugin broken failed to load: ZeroDivisionError, division by zero",
    "unfinished": "plugin unfinished failed to load: SyntaxError",
    "leaving": "plugin leaving failed to load: SystemExit",
    "needing": "plugin needing needs the module no_such_module_at_all",
    "taking": "name 'logistic' is taken by densembed",
    "colorsys": "module colorsys registers no density and no model",
    "../my_densities": "the name of a Python module",
    "my_densities.py; rm": "the name of a Python module",
    "": "the name of a Python module",
    "x" * 10_000: "the name of a Python module",
    "a\nb": "the name of a Python module",
}


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: repr(name[:20]))
def test_plugins_that_cannot_be_loaded_are_refused_with_a_sentence(name, capsys):
    with pytest.raises(PluginError, match=re.escape(REFUSED[name])) as caught:
        plugins.load([name])
    assert is_sentence(str(caught.value))
    assert len(str(caught.value)) < 300
    assert main(["info", "none.safetensors", "--plugin", name]) == 2
    assert capsys.readouterr().err == f"densembed: {caught.value}\n"


def test_every_command_takes_plugins(capsys):
    assert main(["info", "--plugin", "my_densities", "--plugin", "broken", "x.safetensors"]) == 2
    assert "student" in FAMILIES
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = re.findall(r"^    ([a-z]+)  ", capsys.readouterr().out, re.M)
    assert {"train", "evaluate", "info", "read", "render"} <= set(commands)
    for command in commands:
        with pytest.raises(SystemExit):
            main([command, "--plugin"])
        assert "--plugin: expected one argument" in capsys.readouterr().err


def run(folder, named: str, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {plugins.VARIABLE: named, "PYTHONPATH": f"{folder}:{os.getcwd()}"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_environment_names_plugins_to_every_process(folder):
    code = "import densembed; print(densembed.build('student-el-3').embedding.family.name)"
    assert run(folder, " my_densities ,", "-c", code).stdout == "student\n"


@pytest.mark.slow
def test_a_broken_plugin_in_the_environment_is_one_sentence(folder):
    result = run(folder, "broken", "-m", "densembed", "info", "x")
    assert result.returncode == 2
    assert result.stderr == (
        "densembed: The plugin broken failed to load: ZeroDivisionError, division by zero.\n"
    )


# Checkpoints


def saved(name: str, digits, path) -> None:
    torch.manual_seed(0)
    model = build(name)
    recorder = Recorder(RunConfig(model=name, device="cpu"), digits)
    recorder.add(Snapshot(0, {key: value[None] for key, value in model.state_dict().items()}))
    recorder.checkpoint().save(path)


@pytest.mark.parametrize("name", ["student-el-3", "strided-logistic-el-3"])
def test_a_checkpoint_says_which_plugin_it_needs(name, digits, folder, capsys):
    path = folder / "mine.safetensors"
    with restored():
        plugins.load(["my_densities"])
        saved(name, digits, path)
        assert Checkpoint.open(path).header.plugins == ["my_densities"]
        expected = Checkpoint.open(path).model()(torch.ones(1, 1, 28, 28))
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(path)
    assert str(caught.value) == (
        "mine.safetensors needs the plugin my_densities, which is not loaded. "
        "Add it with --plugin or in DENSEMBED_PLUGINS."
    )
    assert main(["info", str(path)]) == 2
    assert capsys.readouterr().err == f"densembed: {caught.value}\n"
    del sys.modules["my_densities"]
    assert main(["info", str(path), "--plugin", "my_densities"]) == 0
    torch.testing.assert_close(Checkpoint.open(path).model()(torch.ones(1, 1, 28, 28)), expected)


SCRIPT = """
import sys
import densembed
from densembed.data import load_dataset
from densembed.functional.densities import Logistic
from densembed.training.loop import Snapshot

densembed.register_density(type("Mine", (Logistic,), {"name": "mine", "__module__": __name__})())
recorder = densembed.Recorder(densembed.RunConfig(model="mine-el-2"), load_dataset("digits"))
state = densembed.build("mine-el-2").state_dict()
recorder.add(Snapshot(0, {key: value[None] for key, value in state.items()}))
recorder.checkpoint().save(sys.argv[-1])
densembed.load(sys.argv[-1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", ["-", "my-net 2.py"])
def test_what_no_module_registers_is_named_at_once_and_when_it_is_opened(folder, script, capsys):
    path = folder / "mine.safetensors"
    (folder / "my-net 2.py").write_text(SCRIPT)
    arguments = ["-c", SCRIPT] if script == "-" else [str(folder / script)]
    result = run(folder, "", *arguments, str(path))
    assert result.returncode == 0
    assert "UserWarning: mine-el-2 is registered in a notebook, or in a script" in result.stderr
    assert main(["info", str(path)]) == 2
    assert capsys.readouterr().err == (
        "densembed: mine.safetensors needs a density or a model that a notebook or a script "
        "registered. Register it again before you open the file in Python. For --plugin, register "
        "it in a module file of its own, and train again.\n"
    )
    assert main(["info", str(path), "--plugin", "__main__"]) == 2


def test_a_checkpoint_without_plugins_needs_none(digits, folder):
    saved("logistic-el-3", digits, folder / "plain.safetensors")
    assert Checkpoint.open(folder / "plain.safetensors").header.plugins == []


def test_a_file_cannot_have_a_module_imported():
    """Not even one that is there: the names in a file are compared and no more."""
    with pytest.raises(CheckpointError, match="needs the plugin my_densities"):
        Checkpoint.from_bytes(content(header(plugins=["my_densities"])))
    assert "my_densities" not in sys.modules
    with pytest.raises(CheckpointError, match="needs the plugin antigravity"):
        Checkpoint.from_bytes(content(header(plugins=["antigravity"])))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "listed",
    ["my_densities", {"a": 1}, 3, None, [3], [None], [["a"]], ["x"] * 21, ["x" * 201]],
    ids=lambda value: str(value)[:20],
)
def test_a_malformed_list_of_plugins_is_refused(listed):
    with pytest.raises(CheckpointError, match=r"damaged header|needs the plugin x,") as caught:
        Checkpoint.from_bytes(content(json.dumps(header(plugins=listed))))
    assert is_sentence(str(caught.value))
    assert len(str(caught.value)) < 400


def test_the_public_names():
    assert densembed.register_density is register_density
    assert densembed.register_model is register_model
    assert len(MODELS) == 10
