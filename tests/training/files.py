"""Checkpoints as the tests write them, and everything that is wrong with others."""

import json
import struct

import numpy as np
import safetensors.torch
import torch

from densembed.models.registry import build
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import Header

PROVENANCE = {
    "created": "2024-05-01T12:00:00+00:00",
    "densembed": "0.1.0",
    "torch": "2.4.0",
    "python": "3.11.9",
    "machine": "Linux x86_64",
    "device": "cpu",
    "threads": 1,
    "dataset_title": "digits",
    "train_images": 1438,
    "test_images": 359,
}


def header(members: int = 1, **values) -> dict:
    """The JSON of a header, with two epochs, as a dictionary to spoil."""
    epochs = [
        {
            "epoch": epoch,
            "step": 10 * epoch,
            "train_loss": [1.5] * members,
            "test_error": [30.0 + 2 * member - epoch for member in range(members)],
            "learning_rate": 0.002,
            "seconds": 0.5,
        }
        for epoch in (1, 2)
    ]
    return {
        "config": {"model": "logistic-el-2"},
        "input_shape": [1, 28, 28],
        "classes": list("0123456789"),
        "steps_per_epoch": 10,
        "steps": [0, 1, 10, 20],
        "epochs": epochs,
        "outcome": "done",
        "provenance": PROVENANCE,
    } | values


def tensors(members: int = 1, snapshots: int = 4, model: str = "logistic-el-2", **shape) -> dict:
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.randn(snapshots, members, *value.shape, generator=generator)
        for name, value in build(model, **shape).state_dict().items()
    }


def content(head=None, parts=None, **metadata) -> bytes:
    """A file's bytes; what is given replaces what a whole one would have."""
    head = header() if head is None else head
    metadata = {
        "format": "densembed",
        "version": "1",
        "header": head if isinstance(head, str) else json.dumps(head),
    } | metadata
    metadata = {key: value for key, value in metadata.items() if value is not None}
    return safetensors.torch.save(tensors() if parts is None else parts, metadata)


def made(members: int = 1, **values) -> Checkpoint:
    return Checkpoint(Header(**header(members, **values)), tensors(members))


def zeros(**shapes):
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


def with_length(length: int) -> bytes:
    return struct.pack("<Q", length) + content()[8:]


def raw(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


NOT_ONE = {
    "empty": b"",
    "one byte": b"x",
    "eight zeros": bytes(8),
    "many zeros": bytes(10_000),
    "a web page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>" * 20,
    "text": "Liebe Grüße\n".encode() * 100,
    "noise": np.random.default_rng(0).bytes(5000),
    "header as long as can be": with_length(2**64 - 1),
    "header longer than the file": with_length(len(content())),
    "header of half the integers": with_length(2**63),
    "header of length zero": with_length(0),
    "header cut": with_length(10),
    "header not JSON": raw(b"{" * 100),
    "header nested deeply": raw(b"[" * 100_000),
    "header a list": raw(b"[1, 2, 3]   "),
    "header a number": raw(b"1" * 10_000),
    "header null": raw(b"null    "),
    "header not UTF-8": raw(b'{"\xff\xfe": 1}'),
    "metadata a list": raw(b'{"__metadata__": [1]}  '),
    "metadata null": raw(b'{"__metadata__": null} '),
    "no metadata": safetensors.torch.save(tensors()),
    "another program's": safetensors.torch.save(zeros(w=(3, 3)), {"format": "pt"}),
    "wrong format": content(format="densembedding"),
    "no format": content(format=None),
}


BAD_HEADERS = {
    "missing": None,
    "empty": "",
    "not JSON": "{",
    "a list": "[]",
    "null": "null",
    "empty object": "{}",
    "deep": "[" * 50_000,
    "a surplus field": header(colour="red"),
    "a surplus field with a long name": header(**{"colour" * 500: 1}),
    "a surplus field with lines": header(**{"a\nb\nc": 1}),
    "unknown model": header(config={"model": "transformer"}),
    "a model of absurd size": header(config={"model": "logistic-el-99999"}),
    "a model of endless size": header(config={"model": "logistic-el-" + "9" * 5000}),
    "a model with lines": header(config={"model": "logistic-el-2\nrm"}),
    "shape of two": header(input_shape=[28, 28]),
    "shape of zero": header(input_shape=[1, 0, 28]),
    "negative shape": header(input_shape=[1, -28, 28]),
    "a large shape": header(input_shape=[1, 28, 257]),
    "an image with a scaling": header(scaling={"mean": 0.5, "std": 2.0}),
    "a signal of many channels": header(input_shape=[257, 9], scaling={"mean": 0.5, "std": 2.0}),
    "a long signal": header(input_shape=[1, 16_385], scaling={"mean": 0.5, "std": 2.0}),
    "a scaling without spread": header(input_shape=[1, 9], scaling={"mean": 0.5, "std": 0.0}),
    "a scaling that overflows": header(input_shape=[1, 9], scaling={"mean": -1e300, "std": 1.0}),
    "a tiny deviation": header(input_shape=[1, 9], scaling={"mean": 0.0, "std": 1e-300}),
    "a huge deviation": header(input_shape=[1, 9], scaling={"mean": 0.0, "std": 1e300}),
    "half a scaling": header(input_shape=[1, 9], scaling={"mean": 0.5}),
    "text as shape": header(input_shape="abc"),
    "no classes": header(classes=[]),
    "too many classes": header(classes=["x"] * 1001),
    "a long class": header(classes=["x" * 201]),
    "a number as class": header(classes=[1]),
    "a class without a name": header(classes=[*"012345678", " "]),
    "no steps": header(steps=[]),
    "negative step": header(steps=[-1, 0, 1, 2]),
    "half a step": header(steps=[0, 0.5, 1, 2]),
    "steps as text": header(steps="0123"),
    "too many steps": header(steps=list(range(1001))),
    "no steps an epoch": header(steps_per_epoch=0),
    "unknown outcome": header(outcome="wonderful"),
    "NaN": json.dumps(header()).replace("30.0", "NaN").replace("29.0", "NaN"),
    "infinite": json.dumps(header()).replace("29.0", "1e999"),
    "a loss that no training computes": json.dumps(header()).replace("[1.5]", "[-1e300]"),
    "seconds of an eternity": json.dumps(header()).replace("0.5}", "1e300}"),
    "a number as a change of the data": header(data_changes=[1]),
    "a long change of the data": header(data_changes=["x" * 2001]),
    "no provenance": header(provenance={}),
    "long provenance": header(provenance=PROVENANCE | {"machine": "x" * 201}),
}


def spoilt(change) -> bytes:
    parts = tensors()
    change(parts)
    return content(parts=parts)


def set_value(name, index, value):
    def change(parts):
        parts[name][index] = value

    return change


BAD_TENSORS = {
    "missing": (lambda p: p.pop("embedding.beta"), "lacks the tensor embedding.beta"),
    "all missing": (lambda p: p.clear(), "lacks the tensor classifier.bias"),
    "extra": (lambda p: p.update(extra=torch.zeros(4, 1)), "'extra'"),
    "extra with a long name": (lambda p: p.update({"e" * 5000: torch.zeros(4, 1)}), "'eeee"),
    "extra with lines": (lambda p: p.update({"e\nf": torch.zeros(4, 1)}), r"'e\nf'"),
    "other shape": (
        lambda p: p.update({"embedding.beta": torch.zeros(4, 1, 1, 5, 2)}),
        "tensor embedding.beta of the wrong shape: expected (4, 1, 1, 4, 2), got (4, 1, 1, 5, 2)",
    ),
    "no members' axis": (
        lambda p: p.update({"embedding.beta": torch.zeros(4, 1, 4, 2)}),
        "of the wrong shape",
    ),
    "other snapshots": (
        lambda p: p.update({"classifier.bias": torch.zeros(3, 1, 10)}),
        "tensor classifier.bias of the wrong shape",
    ),
    "other members": (
        lambda p: p.update({"classifier.bias": torch.zeros(4, 2, 10)}),
        "tensor classifier.bias of the wrong shape",
    ),
    "no members": (
        lambda p: p.update({k: v[:, :0] for k, v in p.items()}),
        "of the wrong shape",
    ),
    "no axes": (lambda p: p.update({k: torch.tensor(0.0) for k in p}), "of the wrong shape"),
    "float64": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].double() + 2**-40}),
        "float64 values in embedding.beta that are not exact in float32. Convert",
    ),
    "float64 beyond float32": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].double() + 1e300}),
        "float64 values in embedding.beta that are not exact in float32. Convert",
    ),
    "int": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].int()}),
        "int32 values in embedding.beta, where a model has floating-point numbers. "
        "Convert its tensors with .float(), and multiply quantised ones by their scale",
    ),
    "bool": (
        lambda p: p.update({"embedding.beta": p["embedding.beta"].bool()}),
        "bool values in embedding.beta, where a model has floating-point numbers",
    ),
    "float16 NaN": (
        lambda p: p.update({"classifier.bias": p["classifier.bias"].half() / 0}),
        "not finite",
    ),
    "float64 NaN": (
        lambda p: p.update({"classifier.bias": p["classifier.bias"].double() * float("nan")}),
        "not finite",
    ),
    "NaN": (set_value("classifier.weight", (2, 0, 3, 1), float("nan")), "not finite"),
    "infinite": (set_value("embedding.alpha", (0, 0, 0, 0, 0), float("-inf")), "not finite"),
}


WHOLE = content()
