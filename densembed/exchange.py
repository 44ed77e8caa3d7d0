"""Models and their densities for other programs: ONNX, torch.export and CSV.

The networks take images with ink from 0 to 1, (batch, channels, height, width), or scaled signals,
(batch, channels, length), and return the logits, (batch, classes), for any size of the batch. Where
a network equals one linear map of the input (`DensityNetwork.fold`), this map is exported.
"""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from densembed.data import as_input, noun
from densembed.fields.field import field
from densembed.fields.measures import densities
from densembed.figures.export import cells
from densembed.models.defaults import float32_on_cpu
from densembed.training.checkpoint import Checkpoint

EXAMPLES = 2
"""Images in the batch that is traced. A batch of one would be taken for a constant."""
OUTPUT = "logits"
"""Name of the output; the input is called `images` or `signals`."""
NORMALISATION = "ink from 0 to 1: pixel values from 0 to 255, divided by 255"
SCALED = "values minus {mean}, divided by {std}"
"""The normalisation of signals."""
TABLES = ("densities", "weights", "field")
LOCATIONS = ("x_px", "y_px", "scale_x_px", "scale_y_px")
IN_FLOAT32 = {"Atan", "Erf"}
"""Operators that onnxruntime computes in float32 only, in the primitives of some families."""


class ExportError(ValueError):
    """A model cannot be exported in this way; the message is one sentence."""


@float32_on_cpu()
def network(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> nn.Module:
    """The trained network as it is exported: one `nn.Linear` after `nn.Flatten` where it is one.

    The linear map is computed in float64 and then rounded.
    """
    linear = folded(checkpoint)
    if linear is not None:
        return nn.Sequential(nn.Flatten(), linear.to(dtype)).eval().requires_grad_(False)
    return checkpoint.model().to(dtype)


@float32_on_cpu()
def folded(checkpoint: Checkpoint) -> nn.Linear | None:
    """The linear map of the pixels, in float64, that a trained network equals, or None."""
    fold = getattr(checkpoint.model().double(), "fold", None)
    try:
        return fold() if fold else None
    except ValueError:  # its densities move, lie on feature maps, or feed a hidden layer
        return None


def metadata(checkpoint: Checkpoint) -> dict[str, str]:
    """What a file says about its model. Values that are not text are JSON."""
    header = checkpoint.without_path().header
    return {
        "model": header.config.model,
        "classes": json.dumps(header.classes, ensure_ascii=False),
        "input_shape": json.dumps(header.input_shape),
        "normalisation": SCALED.format(**header.scaling.model_dump())
        if header.scaling
        else NORMALISATION,
        "step": str(header.steps[-1]),
        "test_error_percent": json.dumps(header.errors[checkpoint.typical])
        if header.errors
        else "null",
        "config": header.config.model_dump_json(),
        "provenance": header.provenance.model_dump_json(),
    }


@float32_on_cpu()
def to_torch(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> bytes:
    """The content of a file for `torch.export.load`, with `metadata` as JSON beside the program."""
    file = io.BytesIO()
    extra = {"metadata.json": json.dumps(metadata(checkpoint), ensure_ascii=False)}
    torch.export.save(_program(checkpoint, dtype), file, extra_files=extra)
    return file.getvalue()


class ConvolutionByProducts(TorchFunctionMode):
    """Computes convolutions in float64 as matrix products; onnxruntime has them in float32 only."""

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function in (torch.conv1d, torch.conv2d) and args[0].dtype == torch.float64:
            return _convolved(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


_single = torch.nn.modules.utils._single


def _convolved(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`torch.conv2d` as one matrix product per group: (N, C, H, W) → (N, O, H', W').

    `torch.conv1d` is the same for images with one row: (N, C, L) → (N, O, L').
    """
    if weight.dim() == 3:
        (stride,), (padding,), (dilation,) = map(_single, (stride, padding, dilation))
        options = ((1, stride), (0, padding), (1, dilation), groups)
        return _convolved(x.unsqueeze(-2), weight.unsqueeze(-2), bias, *options).squeeze(-2)
    kernel = weight.shape[2:]
    window = {"stride": stride, "padding": padding, "dilation": dilation}
    sizes = torch.conv2d(x[:0], weight, None, stride, padding, dilation, groups).shape[2:]
    windows = nn.functional.unfold(x, kernel, **window).unflatten(1, (groups, -1))
    product = weight.unflatten(0, (groups, -1)).flatten(2) @ windows
    product = product.flatten(1, 2).unflatten(-1, sizes)
    return product if bias is None else product + bias[:, None, None]


def _program(checkpoint: Checkpoint, dtype: torch.dtype) -> torch.export.ExportedProgram:
    images = torch.zeros(EXAMPLES, *checkpoint.header.input_shape, dtype=dtype)
    batch = torch.export.Dim("batch", min=1)
    with ConvolutionByProducts():
        return torch.export.export(
            network(checkpoint, dtype), (images,), dynamic_shapes=({0: batch},)
        )


@float32_on_cpu()
def to_onnx(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> bytes:
    """The content of an ONNX file, with `metadata` as its properties.

    Raises ExportError if onnx or onnxscript is not installed, or if onnxruntime could not run the
    file.
    """
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ExportError(
            f"The export to ONNX needs {error.name}: pip install onnx onnxscript."
        ) from error
    with np.errstate(all="ignore"):  # constants are folded by NumPy; F far from 0 overflows in exp
        made = torch.onnx.export(
            _program(checkpoint, dtype),
            input_names=[f"{noun(checkpoint.header.input_shape)}s"],
            output_names=[OUTPUT],
            dynamo=True,
            verbose=False,
            custom_translation_table={torch.ops.aten.scalar_tensor.default: _constant},
        )
    if made is None:
        raise ExportError("The export to ONNX returned no program.")
    model = made.model_proto
    operators = {node.op_type for node in model.graph.node}
    if dtype == torch.float64 and (lacking := sorted(operators & IN_FLOAT32)):
        raise ExportError(
            f"{checkpoint.config.model} needs the operator {lacking[0]}, which onnxruntime has in "
            "float32 only: export it to onnx in float32, or to torch."
        )
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    model.doc_string = "Density-embedding network (arXiv 2006.12779), exported by densembed"
    onnx.helper.set_model_props(model, metadata(checkpoint))
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _constant(s: float, dtype: int, **unused: Any) -> Any:
    """`torch.scalar_tensor` in ONNX. The exporter's own rounds to float32, whatever the dtype."""
    from onnx import helper
    from onnxscript import opset18

    return opset18.Constant(value=helper.make_tensor("constant", dtype, (), [s]))


@float32_on_cpu()
def to_csv(checkpoint: Checkpoint, table: str | None = None, pixels: Tensor | None = None) -> str:
    """A table of a trained network. Lengths are in pixels, from the upper left corner.

    Args:
        table: `densities` has one line per density: channel, location, scale, and its weight for
            each class unless there is a hidden layer. `weights` has one line per pixel, with its
            weight for each class. `field` has one line per pixel, with the sum of the densities
            per square pixel at its centre. By default, the first of these that the model has.
        pixels: the input (C, H, W) uint8, for densities that move with the input.

    Raises:
        ExportError: for another table, if the model has no such table, or if it needs an input.
    """
    if checkpoint.header.scaling:
        raise ExportError(
            "Tables are for images: export a model of signals to onnx or torch, or save its fields "
            "with render --out FILE.npz."
        )
    if table not in (None, *TABLES):
        raise ExportError(f"Expected a table of {', '.join(TABLES)}; got {table!r:.40}.")
    model: Any = checkpoint.model()
    table = table or ("densities" if checkpoint.has_densities else "weights")
    if table == "weights":
        return _weights(checkpoint)
    if not checkpoint.has_densities:
        raise ExportError(
            f"{checkpoint.config.model} has no densities: choose the table of weights."
        )
    if model.adaptive and pixels is None:
        raise ExportError(
            f"The densities of {checkpoint.config.model} move with the input: add --image FILE."
        )
    shape = checkpoint.header.input_shape
    x = as_input((torch.zeros(shape, dtype=torch.uint8) if pixels is None else pixels)[None])
    if table == "field":
        made = field(model, x, resolution=1)
        return cells(made.x, made.y, {"field_per_px2": made.values[0]})
    placed = densities(model, x)
    channel = np.arange(len(placed.loc)) // model.embedding.num_densities
    columns = {"channel": channel}
    columns |= dict(zip(LOCATIONS, (*placed.loc.T, *placed.scale.T), strict=True))
    return _table(columns | _by_class(checkpoint, placed.weights))


def _weights(checkpoint: Checkpoint) -> str:
    linear = folded(checkpoint)
    if linear is None:
        raise ExportError(
            f"{checkpoint.config.model} is not one linear map of the pixels, so it has no table of "
            "weights. Export it as a network, as onnx or torch."
        )
    places = np.indices(checkpoint.header.input_shape).reshape(3, -1)
    columns = dict(zip(("channel", "row", "column"), places, strict=True))
    return _table(columns | _by_class(checkpoint, linear.weight.detach().numpy()))


def _by_class(checkpoint: Checkpoint, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """A column of weights for each class."""
    if weights is None:
        return {}
    names = checkpoint.header.classes
    return {f"weight_{name}": row for name, row in zip(names, weights, strict=True)}


def _table(columns: dict[str, np.ndarray]) -> str:
    file = io.StringIO()
    table = np.stack([np.asarray(column, dtype=float) for column in columns.values()], -1)
    csv.writer(file, lineterminator="\n").writerow(columns)
    np.savetxt(file, table, "%.9g", ",")
    return file.getvalue()
