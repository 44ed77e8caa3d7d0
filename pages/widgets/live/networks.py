"""Networks that the browser cannot compute, such as those of plugins, computed for its views."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from densembed.data import as_input
from densembed.fields.field import field, finite, logits, pixel_field
from densembed.fields.measures import (
    class_weights,
    densities,
    density_field,
    input_gradient,
    on_pixels,
    weighted_field,
)
from densembed.models.architectures import DensityNetwork
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError
from pages.widgets.inputs.checkpoints import opened_anywhere

MOST = 64
"""Inputs of one request."""
Query = Mapping[str, str]


def routes(base: str) -> list[Route]:
    """The routes below the path of the app."""
    return [
        Route(f"{base}/networks/{{key}}", _facts),
        Route(f"{base}/networks/{{key}}/{{what}}", _numbers, methods=["POST"]),
    ]


def _facts(request: Request) -> Response:
    """What a view needs of a checkpoint besides the numbers for an input."""
    try:
        checkpoint = opened_anywhere(request.path_params["key"])
        models = [_model(checkpoint, index) for index in range(len(checkpoint.steps))]
    except CheckpointError as error:
        return _refused(str(error))
    network = models[0]
    placed = _has_places(network)
    weights = [class_weights(each) if placed else None for each in models]
    return JSONResponse(
        {
            "header": checkpoint.header.model_dump(mode="json"),
            "words": describe(checkpoint.config.model),
            "members": checkpoint.members,
            "parameters": checkpoint.parameters,
            "hasDensities": checkpoint.has_densities and placed,
            "adaptive": network.adaptive,
            "onPixels": on_pixels(network),
            "densities": len(densities(network, _blank(checkpoint)).loc) if placed else 0,
            # By snapshot and class.
            "weights": [
                None if each is None else finite(each.flatten(1).float().numpy()).tolist()
                for each in weights
            ],
        }
    )


async def _numbers(request: Request) -> Response:
    """Numbers for the inputs in the request, as float32."""
    compute = NUMBERS.get(request.path_params["what"])
    if compute is None:
        return _refused("There are no such numbers.")
    body = await request.body()
    try:
        return await run_in_threadpool(
            _answer, compute, request.path_params["key"], body, request.query_params
        )
    except CheckpointError as error:
        return _refused(str(error))
    except (IndexError, KeyError, ValueError):
        return _refused("The request is not one of a view.")


def _answer(compute: Callable, key: str, body: bytes, query: Query) -> Response:
    checkpoint = opened_anywhere(key)
    shape = checkpoint.header.input_shape
    kind = np.float32 if checkpoint.header.scaling else np.uint8
    pixels = torch.from_numpy(np.frombuffer(body, kind).reshape(-1, *shape).copy())
    if not 0 < len(pixels) <= MOST:
        raise ValueError("too many inputs")
    models = [_model(checkpoint, index) for index in range(len(checkpoint.steps))]
    values = compute(models, as_input(pixels), query)
    content = finite(np.asarray(values, np.float32)).tobytes()
    return Response(content, media_type="application/octet-stream")


def _model(checkpoint: Checkpoint, index: int) -> DensityNetwork:
    model = checkpoint.network(index)
    if not hasattr(model, "embedding"):
        raise CheckpointError(
            f"{describe(checkpoint.config.model)} has no densities, so it has no field to show."
        )
    return cast(DensityNetwork, model)


def _has_places(model: DensityNetwork) -> bool:
    """Whether it is known where the densities lie: a plugin's embedding may have a field alone."""
    return hasattr(model.embedding, "placement")


def _blank(checkpoint: Checkpoint) -> torch.Tensor:
    return torch.zeros(1, *checkpoint.header.input_shape)


def _predictions(models: list[DensityNetwork], x: torch.Tensor, _query: Query) -> list[np.ndarray]:
    """Per snapshot: logits, probabilities, locations and scales of all densities."""
    rows = []
    for model in models:
        scores = logits(model, x)[0]
        parts = [scores, scores.softmax(0)]
        if _has_places(model):
            placed = densities(model, x)
            parts += [placed.loc, placed.scale]
        rows.append(np.concatenate([np.asarray(each, np.float32).ravel() for each in parts]))
    return rows


def _fields(models: list[DensityNetwork], x: torch.Tensor, query: Query) -> list[np.ndarray]:
    """Per snapshot: the field, of a class if there is a `label`."""
    label = query.get("label")
    if label is None:
        return [_summed(field(model, x).values[0], query) for model in models]
    weights = [class_weights(model) for model in models]
    return [
        _summed(weighted_field(model, x, each[int(label)]), query)
        for model, each in zip(models, weights, strict=True)
        if each is not None
    ]


def _pixel_fields(models: list[DensityNetwork], x: torch.Tensor, query: Query) -> list[np.ndarray]:
    return [_summed(pixel_field(model, x)[0], query) for model in models]


def _summed(values: np.ndarray, query: Query) -> np.ndarray:
    """The sum over the channels, or the one that the view shows."""
    channel = query.get("channel")
    return values.sum(0) if channel is None else values[int(channel) % len(values)]


def _density(models: list[DensityNetwork], x: torch.Tensor, query: Query) -> np.ndarray:
    return density_field(models[int(query["snapshot"])], x, int(query["density"]))


def _gradient(models: list[DensityNetwork], x: torch.Tensor, query: Query) -> np.ndarray:
    return input_gradient(models[int(query["snapshot"])], x)


def _mean_field(models: list[DensityNetwork], x: torch.Tensor, query: Query) -> np.ndarray:
    return field(models[int(query["snapshot"])], x).values.sum(1).mean(0)


NUMBERS: dict[str, Callable[[list[DensityNetwork], torch.Tensor, Query], Any]] = {
    "predictions": _predictions,
    "fields": _fields,
    "pixel-fields": _pixel_fields,
    "density": _density,
    "gradient": _gradient,
    "mean-field": _mean_field,
}


def _refused(sentence: str) -> Response:
    return Response(sentence, 404, media_type="text/plain")
