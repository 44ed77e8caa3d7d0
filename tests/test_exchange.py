"""Models for other programs, against the networks that they come from."""

import csv
import io
import json
import sys
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from densembed import exchange
from densembed.cli.main import main
from densembed.data import as_input, load_dataset
from densembed.data.images import read_picture
from densembed.fields.field import field
from densembed.functional.densities import FAMILIES
from densembed.models.names import MODELS
from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.loop import Snapshot
from densembed.training.recorder import Recorder
from tests.onnx_table import compare

FIXED, MOVING, MAPS, PLAIN, HIDDEN = (
    "gaussian-el-3",
    "logistic-el-mnn-scale-4-2",
    "stages-2-3-laplace-el-mnn-2-2",
    "linear",
    "mlp-5",
)
CNN = "cnn-2-3"


def untrained(name: str, digits) -> Checkpoint:
    torch.manual_seed(0)
    model = build(name)
    recorder = Recorder(RunConfig(model=name), digits)
    state = {key: value[None].clone() for key, value in model.state_dict().items()}
    recorder.add(Snapshot(0, state))
    return recorder.checkpoint("done")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stages-2-3-logistic-el-mnn-3-2", "cnn-2-3"])
def test_onnxruntime_has_the_same_logits_for_signals(name):
    data = load_dataset("mnist1d")
    torch.manual_seed(0)
    model = build(name, data.input_shape, classes=10)
    recorder = Recorder(RunConfig(model=name, dataset="mnist1d"), data)
    recorder.add(Snapshot(0, {key: value[None] for key, value in model.state_dict().items()}))
    checkpoint, signals = recorder.checkpoint("done"), data.test.images[:20]
    assert compare(checkpoint, signals).difference <= 1e-5
    assert compare(checkpoint, signals, torch.float64).difference <= 1e-12


@pytest.fixture(scope="module")
def checkpoints(digits) -> dict[str, Checkpoint]:
    names = (FIXED, MOVING, MAPS, PLAIN, HIDDEN, CNN)
    return {name: untrained(name, digits) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("name", [FIXED, MOVING, MAPS, HIDDEN, CNN])
def test_onnxruntime_has_the_same_logits(checkpoints, digits, name):
    """In float64 up to rounding, although onnxruntime has convolutions in float32 only."""
    images = digits.test.images[:20]
    assert compare(checkpoints[name], images).difference <= 1e-5
    assert compare(checkpoints[name], images, torch.float64).difference <= 1e-12


@pytest.mark.slow
def test_scalars_of_a_network_are_exported_in_float64(digits):
    """The box around the mass of the image holds the scalar 1/12, which float32 rounds."""
    checkpoint = untrained("logistic-el-mnn-mass-6-3", digits)
    images = digits.test.images[:20]
    assert compare(checkpoint, images, torch.float64).difference <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_that_onnxruntime_cannot_run_is_refused(digits, family):
    """It has no erf and no arctan in float64, which the primitives of some families need."""
    checkpoint = untrained(f"{family}-el-mnn-2-2", digits)
    if family in ("gaussian", "cauchy", "hypsecant"):
        with pytest.raises(exchange.ExportError, match=r"float32 only: .* or to torch\.$"):
            exchange.to_onnx(checkpoint, torch.float64)
    else:
        images = digits.test.images[:3]
        assert compare(checkpoint, images, torch.float64).difference <= 1e-10


@pytest.mark.parametrize("stride", [1, 2, (3, 1)])
@pytest.mark.parametrize("padding", [0, (1, 2)])
@pytest.mark.parametrize("dilation", [1, (2, 1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_as_a_matrix_product(stride, padding, dilation, groups, monkeypatch):
    x = torch.rand(3, 4, 9, 8, dtype=torch.float64)
    weight = torch.rand(6, 4 // groups, 3, 2, dtype=torch.float64)
    arguments = (x, weight, torch.rand(6, dtype=x.dtype), stride, padding, dilation, groups)
    expected = torch.conv2d(*arguments)
    product_of = Mock(wraps=exchange._convolved)
    monkeypatch.setattr(exchange, "_convolved", product_of)
    with exchange.ConvolutionByProducts():
        product = torch.nn.functional.conv2d(*arguments)
    product_of.assert_called_once()  # on some machines it has the same bits
    torch.testing.assert_close(product, expected, atol=1e-13, rtol=1e-13)


@pytest.mark.slow
def test_what_an_onnx_file_says(trained, digits):
    import onnx

    model = onnx.load_from_string(exchange.to_onnx(trained))
    said = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(said["classes"]) == list(digits.classes)
    assert "divided by 255" in said["normalisation"]
    assert json.loads(said["provenance"])["dataset_title"] == digits.title
    assert json.loads(said["config"])["model"] == said["model"] == "logistic-el-mnn-4-2"
    assert json.loads(said["test_error_percent"]) == trained.errors[trained.typical]
    (images,), (logits,) = model.graph.input, model.graph.output
    assert (images.name, logits.name) == ("images", "logits")
    sizes = [dim.dim_param or dim.dim_value for dim in images.type.tensor_type.shape.dim]
    assert sizes == ["batch", 1, 28, 28]
    sizes = [dim.dim_param or dim.dim_value for dim in logits.type.tensor_type.shape.dim]
    assert sizes == ["batch", 10]


def test_no_file_for_others_names_a_folder_of_this_machine(trained):
    config = trained.config.model_copy(update={"dataset": "folder:/home/me/photos"})
    header = trained.header.model_copy(update={"config": config})
    said = exchange.metadata(Checkpoint(header, trained.tensors))
    assert "/home/me" not in "".join(said.values())
    assert json.loads(said["config"]) == {**trained.config.model_dump(), "dataset": "elsewhere"}


@pytest.mark.parametrize("name", [FIXED, MOVING, MAPS])
def test_torch_loads_a_program_with_any_batch(checkpoints, digits, name):
    extra = {"metadata.json": ""}
    program = torch.export.load(
        io.BytesIO(exchange.to_torch(checkpoints[name])), extra_files=extra
    ).module()
    for count in (1, 5):
        x = as_input(digits.test.images[:count])
        expected = checkpoints[name].model()(x)
        torch.testing.assert_close(program(x), expected, atol=1e-5, rtol=1e-5)
    assert json.loads(extra["metadata.json"])["model"] == name


@pytest.mark.parametrize("name", [FIXED, PLAIN])
def test_a_fold_is_the_network(checkpoints, digits, name):
    linear = exchange.folded(checkpoints[name])
    x = as_input(digits.test.images[:5], torch.float64)
    expected = checkpoints[name].model().double()(x)
    torch.testing.assert_close(linear(x.flatten(1)), expected, atol=1e-12, rtol=1e-12)
    assert [type(layer) for layer in exchange.network(checkpoints[name])] == [
        torch.nn.Flatten,
        torch.nn.Linear,
    ]


@pytest.mark.parametrize("name", [MOVING, MAPS, HIDDEN, CNN])
def test_a_network_that_is_no_linear_map_has_no_fold(checkpoints, name):
    assert exchange.folded(checkpoints[name]) is None


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_table_of_densities(checkpoints, digits):
    pixels = digits.test.images[0]
    found = rows(exchange.to_csv(checkpoints[MOVING], pixels=pixels))
    model = checkpoints[MOVING].model()
    loc, scale = (part[0, 0] for part in model.embedding.placement(as_input(pixels[None])))
    assert len(found) == 16
    for k, row in enumerate(found):
        expected = [*loc[k].tolist(), *scale[k].tolist()]
        values = [float(row[name]) for name in exchange.LOCATIONS]
        np.testing.assert_allclose(values, expected, 1e-6)
        weights = [float(row[f"weight_{name}"]) for name in digits.classes]
        np.testing.assert_allclose(weights, model.classifier.weight[:, k].tolist(), 1e-6)


def test_a_table_of_weights_computes_the_logits(checkpoints, digits):
    x = as_input(digits.test.images[:3], torch.float64)
    found = rows(exchange.to_csv(checkpoints[FIXED], "weights"))
    weights = np.array([[float(row[f"weight_{name}"]) for name in digits.classes] for row in found])
    model = checkpoints[FIXED].model().double()
    logits = x.flatten(1).numpy() @ weights + model.classifier.bias.numpy()
    np.testing.assert_allclose(logits, model(x).numpy(), 1e-6, 1e-6)
    assert [found[29][name] for name in ("channel", "row", "column")] == ["0", "1", "1"]
    assert exchange.to_csv(checkpoints[PLAIN]) == exchange.to_csv(checkpoints[PLAIN], "weights")


def test_a_table_of_a_field(checkpoints, digits):
    pixels = digits.test.images[0]
    found = rows(exchange.to_csv(checkpoints[MAPS], "field", pixels))
    model = checkpoints[MAPS].model()
    expected = field(model, as_input(pixels[None]), resolution=1).values[0, 0]
    values = np.array([float(row["field_per_px2"]) for row in found]).reshape(28, 28)
    np.testing.assert_allclose(values, expected, 1e-6, 1e-9)
    assert (found[1]["column"], found[1]["row"]) == ("1.5", "0.5")


def test_what_a_table_needs(checkpoints):
    with pytest.raises(exchange.ExportError, match="move with the input: add --image FILE"):
        exchange.to_csv(checkpoints[MOVING])
    with pytest.raises(exchange.ExportError, match="not one linear map of the pixels"):
        exchange.to_csv(checkpoints[MOVING], "weights")
    for table in ("densities", "field"):
        with pytest.raises(exchange.ExportError, match="linear has no densities: choose"):
            exchange.to_csv(checkpoints[PLAIN], table)


@pytest.mark.parametrize("table", ["wieghts", "", 3])
def test_an_unknown_table_is_named(checkpoints, table):
    with pytest.raises(exchange.ExportError, match=r"densities, weights, field; got .{1,9}\.$"):
        exchange.to_csv(checkpoints[FIXED], table)


def test_names_of_classes_do_not_break_a_table(checkpoints):
    classes = ["a,b", "a b", 'c"d', "e;'", r"f\n", *"01234"]
    header = checkpoints[FIXED].header.model_copy(update={"classes": classes})
    text = exchange.to_csv(Checkpoint(header, checkpoints[FIXED].tensors))
    found, plain = rows(text), rows(exchange.to_csv(checkpoints[FIXED]))
    assert list(found[0])[5:] == [f"weight_{name}" for name in classes]
    assert [list(row.values()) for row in found] == [list(row.values()) for row in plain]


def test_the_command(trained_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "seven.png"
    from PIL import Image

    ink = np.full((40, 40), 255, np.uint8)
    ink[8:11, 8:30] = ink[8:32, 26:29] = 0
    Image.fromarray(ink).save(picture)
    arguments = ["export", str(trained_file), "--to", "csv", "--image", str(picture)]
    assert main(arguments) == 0
    out = tmp_path / f"{trained_file.stem}.csv"
    assert f"saved: {out.name} (" in capsys.readouterr().out
    checkpoint = Checkpoint.open(trained_file)
    pixels = read_picture(picture).pixels
    assert out.read_text() == exchange.to_csv(checkpoint, pixels=pixels)
    assert main(["export", str(trained_file), "--to", "torch", "--out", "a.pt2"]) == 0
    assert torch.export.load(tmp_path / "a.pt2")
    for wrong, words in (
        (["--to", "onnx", "--table", "field"], "are for --to csv"),
        (["--to", "onnx", "--out", "a.csv"], "must end in .onnx for --to onnx"),
        (["--to", "csv"], "move with the input"),
    ):
        assert main(["export", str(trained_file), *wrong]) == 2
        assert words in capsys.readouterr().err


def test_every_kind_of_model_is_exported():
    """One of each: fixed, moving, on feature maps, linear, with a hidden layer, without densities.

    Another kind of model needs an example above.
    """
    assert len(MODELS) == 10


def test_a_missing_package_is_named(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(
        exchange.ExportError, match=r"needs onnxscript: pip install onnx onnxscript"
    ):
        exchange.to_onnx(trained)
