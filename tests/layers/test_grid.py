"""The same densities and networks on other grids (`at`)."""

from collections import OrderedDict

import pytest
import torch
from torch import nn

from densembed.data.dataset import Split
from densembed.data.transform import scaled
from densembed.functional.uniform import cell_means
from densembed.layers import AdaptiveDensityEmbedding, DensityEmbedding
from densembed.models.registry import build

MODELS = (
    "linear",
    "mlp-4",
    "logistic-el-3",
    "gaussian-el-mass-3",
    "logistic-el-mnn-3-2",
    "laplace-el-mnn-scale-mass-3-2",
    "stages-3-4-logistic-el-2",
    "stages-3-logistic-el-mnn-mass-3-2",
    "cnn-2-3",
)


def finer(x: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """The same piecewise constant image with more pixels."""
    return x.repeat_interleave(rows, -2).repeat_interleave(columns, -1)


@pytest.mark.parametrize("name", MODELS)
def test_a_finer_grid_of_the_same_signal_gives_the_same(name):
    model = build(name, (2, 8, 12), classes=3).double()
    x = torch.rand(2, 2, 8, 12, dtype=torch.float64)
    torch.testing.assert_close(model.at((24, 24))(finer(x, 3, 2)), model(x))
    field = model.receptive_field(x, resolution=3)
    same = model.at((24, 36)).receptive_field(finer(x, 3, 3), resolution=1)
    torch.testing.assert_close(9 * same, field)  # densities are per pixel


@pytest.mark.parametrize("name", MODELS)
def test_the_parameters_are_shared(name):
    model = build(name, (1, 8, 8), classes=3)
    other = model.at(16)
    assert list(other.state_dict()) == list(model.state_dict())
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine is theirs
    assert other.embedding.sizes == (16, 16)
    assert model.embedding.sizes == (8, 8)
    assert other.at(8).embedding.sizes == (8, 8)


@pytest.mark.parametrize("name", MODELS)
def test_hooks_and_modes_are_not_shared(name):
    model = build(name, (1, 8, 8), classes=3)
    other = model.at(16).eval()
    calls = []
    for module in other.modules():
        module.register_forward_hook(lambda *call: calls.append(call))
    model(torch.rand(2, 1, 8, 8))
    assert not calls
    assert all(module.training for module in model.modules())
    assert not {*map(id, model.modules())} & {*map(id, other.modules())}


def test_one_axis():
    layer = DensityEmbedding(20, num_densities=5).double()
    x = torch.rand(3, 1, 20, dtype=torch.float64)
    torch.testing.assert_close(layer.at(60)(x.repeat_interleave(3, -1)), layer(x))


def test_a_locator_that_counts_pixels_has_one_grid():
    locator = nn.Sequential(nn.Flatten(), nn.Linear(64, 8))
    layer = AdaptiveDensityEmbedding(locator, (8, 8), num_densities=4)
    with pytest.raises(ValueError, match="made for one grid"):
        layer.at(16)


@pytest.mark.parametrize("sizes", [(7,), (3,), (20,), (1,)])
def test_means_of_cells_are_integrals(sizes):
    x = torch.rand(2, 10, dtype=torch.float64)
    sampled = x.repeat_interleave(420, -1)  # a multiple of all numbers of cells
    expected = sampled.unflatten(-1, (sizes[0], -1)).mean(-1)
    torch.testing.assert_close(cell_means(x, sizes), expected)


def test_images_on_another_grid():
    images = torch.randint(0, 256, (3, 1, 6, 4), dtype=torch.uint8)
    split = Split(images, torch.arange(3))
    assert torch.equal(scaled(split, (12, 4)).images, images.repeat_interleave(2, -2))
    half = images.float().unflatten(-2, (3, 2)).unflatten(-1, (2, 2)).mean((-3, -1))
    assert torch.equal(scaled(split, (3, 2)).images, half.round().to(torch.uint8))
    assert scaled(split, (6, 4)) is split


class Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


def test_a_locator_of_a_kind_and_names_of_its_own_keeps_them():
    inner = DensityEmbedding((8, 8), num_densities=4)
    parts = OrderedDict(inner=inner, flat=nn.Flatten(), linear=nn.Linear(4, 6))
    layer = AdaptiveDensityEmbedding(Doubled(parts), (8, 8), num_densities=3).eval()
    other, x = layer.at(16), torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(other(finer(x, 2, 2)), layer(x))
    assert list(other.state_dict()) == list(layer.state_dict())
    assert not any(part.training for part in other.modules())
    assert layer.locator[0] is inner


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("size", "cells"), [(300, 28), (3000, 784), (40, 28), (70_000, 10)])
def test_means_of_cells_in_half_precision(size, cells, dtype):
    means = cell_means(torch.ones(1, size, dtype=dtype), (cells,))
    assert means.dtype == dtype
    torch.testing.assert_close(means, torch.ones(1, cells, dtype=dtype))
