"""The compiled kernels against the plain formulas: values, gradients, members, threads."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, vmap

from densembed.functional import action, native
from densembed.functional.densities import FAMILIES, Logistic, Plateau
from densembed.kernels import available, threads
from densembed.layers import DensityEmbedding2d

pytestmark = pytest.mark.skipif(not available(), reason="needs Numba")
PRECISIONS = [torch.float32, torch.float64]
SHAPES = [(1, 1, 1, 1), (3, 2, 5, 7), (2, 3, 7, 4), (2, 1, 28, 28)]
"""(N, C, H, W): one pixel, rectangles, several channels."""
few = settings(max_examples=20, derandomize=True)


def random(*shape: int, seed: int = 0) -> Tensor:
    """Numbers in [0, 1) that are the same in both precisions."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float32)


def placed(shape, groups, densities, moving, *, seed=0, least=0.3, most=4.0):
    """Locations from outside of the image on one side to outside on the other, and scales."""
    batch, _, height, width = shape
    lead = (batch, groups) if moving else (groups,)
    lengths = torch.tensor([width, height])
    loc = (random(*lead, densities, 2, seed=seed + 1) * 1.4 - 0.2) * lengths
    scale = least * (most / least) ** random(*((1,) * moving), groups, densities, 2, seed=seed + 2)
    return loc, scale


def as_leaves(parts, dtype):
    return [part.detach().to(dtype).requires_grad_() for part in parts]


def gradients(value, by):
    cotangent = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)
    return torch.autograd.grad(value, by, cotangent, retain_graph=True)


def check(fast, plain, parts, dtype):
    """The kernel in a precision against the plain formulas in float64: value and gradients.

    Args:
        fast, plain: functions of the parts.
    """
    own, exact = as_leaves(parts, dtype), as_leaves(parts, torch.float64)
    got, wanted = fast(*own), plain(*exact)
    pairs = [(got, wanted), *zip(gradients(got, own), gradients(wanted, exact), strict=True)]
    for one, other in pairs:
        assert one.dtype == dtype
        assert one.isfinite().all()
        size = max(0.02, other.abs().max().item() if other.numel() else 0.0)  # sums may cancel
        rtol = 2e-5 if dtype == torch.float32 else 1e-12
        torch.testing.assert_close(one.double(), other, rtol=rtol, atol=rtol * size)


def check_action(x, loc, scale, family, dtype):
    leaves = as_leaves((x, loc, scale), dtype)
    assert native.usable(family, *leaves)
    check(
        lambda *parts: action.embed(*parts, family),
        lambda *parts: action.embed_plain(*parts, family),
        (x, loc, scale),
        dtype,
    )


def check_fold(weight, loc, scale, family, sizes, dtype):
    check(
        lambda *parts: action.fold(*parts, family, sizes),
        lambda *parts: action.fold_plain(*parts, family, sizes),
        (weight, loc, scale),
        dtype,
    )


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_equal_the_formulas(family, shape, dtype):
    x = random(*shape)
    for moving in (True, False):
        for groups in {1, shape[1]}:
            check_action(x, *placed(shape, groups, 17, moving), family, dtype)
    weight = random(4, shape[1], 17, seed=9) - 0.5
    check_fold(weight, *placed(shape, shape[1], 17, False), family, shape[2:], dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
@few
@given(
    st.tuples(*(st.integers(1, 6) for _ in range(2)), *(st.integers(1, 19) for _ in range(2))),
    st.integers(1, 40),
    st.sampled_from(list(FAMILIES.values())),
    st.booleans(),
    st.integers(0, 1000),
)
def test_any_shape(dtype, shape, densities, family, moving, seed):
    x = random(*shape, seed=seed) * (random(*shape, seed=seed + 1) > 0.6)
    check_action(x, *placed(shape, 1, densities, moving, seed=seed), family, dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize(("least", "most"), [(1e-3, 1e-2), (0.01, 1.0), (10.0, 1e3)])
def test_narrow_and_wide_densities(family, least, most, dtype):
    """Scales from a thousandth of a pixel to a thousand pixels."""
    shape = (2, 1, 9, 11)
    loc, scale = placed(shape, 1, 33, True, least=least, most=most)
    check_action(random(*shape), loc, scale, family, dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("distance", [-1e6, -100.0, 100.0, 1e6])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_densities_far_outside(family, distance, scale, dtype):
    """Absolute accuracy: what is left of a density there is rounded like F near 1."""
    x = random(2, 1, 5, 7)
    loc, width = torch.full((2, 1, 3, 2), distance), torch.full((1, 1, 3, 2), scale)
    leaves = as_leaves((x, loc, width), dtype)
    fast, plain = action.embed(*leaves, family), action.embed_plain(*leaves, family)
    atol = 1e-6 if dtype == torch.float32 else 1e-14
    torch.testing.assert_close(fast, plain, rtol=0, atol=atol)
    for got, wanted in zip(gradients(fast, leaves), gradients(plain, leaves), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=atol * max(1, 1 / scale))


@pytest.mark.parametrize("dtype", PRECISIONS)
@few
@given(
    st.tuples(st.integers(1, 21), st.integers(1, 21)),
    st.sampled_from(list(FAMILIES.values())),
    st.randoms(use_true_random=False),
)
def test_ink_in_a_part_of_the_image(dtype, sizes, family, source):
    """Only the edges around the ink are computed, other edges for each image of a batch."""
    shape = (6, 1, *sizes)
    x = torch.zeros(shape)
    for image in x[1:]:
        box = tuple(slice(*sorted(source.choices(range(size + 1), k=2))) for size in sizes)
        image[:, *box] = random(1, *sizes, seed=source.randrange(1000))[:, *box]
    check_action(x, *placed(shape, 1, 17, True), family, dtype)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_an_undefined_location_spreads_to_no_other_input(family):
    shape = (3, 1, 9, 13)
    x, (loc, scale) = random(*shape), placed(shape, 1, 5, True)
    x[1], x[2] = 1, 0
    x[2, :, :2, :3] = 0.5
    loc[1] = torch.nan
    parts = as_leaves((x, loc, scale.expand(3, -1, -1, -1)), torch.float32)
    value = action.embed(*parts, family)
    assert value[1].isnan().all()
    assert (
        action.fold(torch.ones(1, 1, 5), *(p.detach()[1] for p in parts[1:]), family, shape[2:])
        .isnan()
        .all()
    )
    for part in (value, *gradients(value, parts)):
        assert part[[0, 2]].isfinite().all()


@pytest.mark.parametrize("moving", [True, False])
def test_blank_images_and_empty_batches(moving):
    for batch in (0, 3):
        shape = (batch, 2, 6, 5)
        parts = as_leaves((torch.zeros(shape), *placed(shape, 2, 5, moving)), torch.float32)
        value = action.embed(*parts, Logistic())
        assert value.shape == (batch, 2, 5)
        assert (value == 0).all()
        by_x, by_loc, by_scale = gradients(value, parts)
        assert by_x.shape == shape
        assert (by_loc == 0).all()
        assert (by_scale == 0).all()


@pytest.mark.parametrize("moving", [True, False])
def test_inputs_that_are_not_contiguous(moving):
    shape = (3, 2, 6, 5)
    x = random(3, 2, 5, 6).mT
    loc, scale = placed(shape, 1, 8, moving)
    loc, scale = loc.flip(-1), scale.expand(*scale.shape[:-3], 2, 8, 2)
    check_action(x[..., ::1, :], loc, scale, Logistic(), torch.float32)
    weight = random(8, 2, 4, seed=5).movedim(0, -1).movedim(0, 1)
    loc, scale = placed(shape, 2, 8, False)
    check_fold(weight, loc.flip(0), scale, Logistic(), (6, 5), torch.float32)


def test_double_backward_and_finite_differences():
    shape = (2, 1, 4, 5)
    parts = as_leaves((random(*shape), *placed(shape, 1, 3, True)), torch.float64)
    assert torch.autograd.gradcheck(lambda *p: action.embed(*p, Logistic()), parts)
    assert torch.autograd.gradgradcheck(lambda *p: action.embed(*p, Logistic()), parts)
    fixed = as_leaves((random(2, 1, 3), *placed(shape, 1, 3, False)), torch.float64)
    assert torch.autograd.gradgradcheck(lambda *p: action.fold(*p, Logistic(), (4, 5)), fixed)


@pytest.mark.parametrize("act", ["moving", "fixed", "fold"])
@pytest.mark.parametrize("shared", [None, 0, 1, 2])
def test_members_equal_one_at_a_time(act, shared):
    """Along an axis of `vmap`, where one of the three inputs may be that of all members."""
    shape = (3, 2, 5, 7)

    def parts(seed):
        first = random(4, 2, 6, seed=seed) if act == "fold" else random(*shape, seed=seed)
        return [first, *placed(shape, 2, 6, act == "moving", seed=seed)]

    def apply(*tensors):
        if act == "fold":
            return action.fold(*tensors, Logistic(), (5, 7))
        return action.embed(*tensors, Logistic())

    members = [parts(seed) for seed in (0, 10, 20)]
    leaves = as_leaves(
        [
            members[0][k] if k == shared else torch.stack([member[k] for member in members])
            for k in range(3)
        ],
        torch.float64,
    )
    dims = tuple(None if k == shared else 0 for k in range(3))
    together = vmap(apply, in_dims=dims)(*leaves)
    alone = torch.stack(
        [
            apply(*(leaves[k] if k == shared else leaves[k][m] for k in range(3)))
            for m in range(len(members))
        ]
    )
    torch.testing.assert_close(together, alone)
    for got, wanted in zip(gradients(together, leaves), gradients(alone, leaves), strict=True):
        torch.testing.assert_close(got, wanted)
    twice = vmap(vmap(apply, in_dims=dims), in_dims=dims)(
        *(leaf if k == shared else leaf[None] for k, leaf in enumerate(leaves))
    )
    torch.testing.assert_close(twice[0], together)
    for got, wanted in zip(gradients(twice, leaves), gradients(together, leaves), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("moving", [True, False])
def test_the_number_of_threads_changes_no_bit(moving, monkeypatch):
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    shape = (13, 2, 9, 8)
    parts = as_leaves((random(*shape), *placed(shape, 2, 20, moving)), torch.float32)
    results = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "_limit", number)
        value = action.embed(*parts, Logistic())
        results.append([value, *gradients(value, parts)])
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0], strict=True))


@pytest.mark.parametrize(
    ("loc", "scale"),
    [
        ((3, 25, 2), (3, 10, 2)),
        ((3, 10, 2), (3, 25, 2)),
        ((3, 25, 2), (3, 1, 2)),
        ((2, 25, 2), (3, 25, 2)),
        ((2, 25, 2), (2, 25, 2)),
        ((3, 25, 1), (3, 25, 1)),
        ((25, 2), (25, 2)),
        ((5, 3, 25, 2), (4, 3, 25, 2)),
        ((2, 3, 25, 2), (2, 3, 25, 2)),
        ((4, 3, 25, 2), (3, 25, 2)),
    ],
)
def test_shapes_that_do_not_fit_reach_no_kernel(loc, scale):
    """The kernels do not check bounds: they would read and write memory of others."""
    x, placed = random(4, 3, 6, 5), (torch.ones(loc), torch.ones(scale))
    with pytest.raises(ValueError, match=r"^Expected locations and scales of shape"):
        action.embed(x, *placed, Logistic())
    if len(loc) == len(scale) == 3:
        with pytest.raises(ValueError, match=r"^Expected locations and scales of shape"):
            action.fold(random(4, 3, 25), *placed, Logistic(), (6, 5))


def test_weights_of_other_densities_reach_no_kernel():
    placed = torch.ones(3, 25, 2), torch.ones(3, 25, 2)
    for weight in (random(4, 3, 10), random(4, 3, 40), random(4, 2, 25), random(4, 1, 25)):
        with pytest.raises(ValueError, match=r"^Expected locations and scales of shape"):
            action.fold(weight, *placed, Logistic(), (6, 5))


def test_parameters_of_a_layer_that_do_not_fit_raise_an_error():
    layer = DensityEmbedding2d(8, 3, num_densities=25)
    x = random(2, 3, 8, 8)
    for beta in (torch.zeros(3, 10, 2), torch.zeros(2, 25, 2)):
        with pytest.raises(ValueError, match=r"\(2 or 1, 3 or 1, 25, 2\); got \(1, 3, 25, 2\)"):
            functional_call(layer, {"beta": beta}, (x,))
    both = {name: part[:, :10] for name, part in layer.named_parameters()}
    wanted = layer(x)[..., :10]
    torch.testing.assert_close(functional_call(layer, both, (x,)), wanted)  # ten of them


class Student(Logistic):
    name = "student"


def test_where_the_kernels_do_not_apply(monkeypatch):
    shape = (2, 1, 4, 5)
    parts = [random(*shape), *placed(shape, 1, 3, True)]
    logistic = FAMILIES["logistic"]
    assert native.usable(logistic, *parts)
    assert not native.usable(Student(), *parts)
    assert not native.usable(logistic, *(part.bfloat16() for part in parts))
    assert not native.usable(logistic, parts[0], *(part.double() for part in parts[1:]))
    truncated = action.embed(*parts, logistic, truncate=True)
    plain = action.embed_plain(*parts, logistic, truncate=True)
    assert torch.equal(truncated, plain)

    def along(x):
        assert not native.usable(logistic, x, *parts[1:])
        return action.embed(x, *parts[1:], logistic)

    value, tangent = torch.func.jvp(along, (parts[0],), (parts[0],))
    torch.testing.assert_close(tangent, value)  # it is linear in x


class Wide(Plateau):
    edge = 0.3


@pytest.mark.parametrize("where", ["instance", "class", "subclass", "method"])
def test_the_kernels_leave_changed_densities_to_the_formulas(where, monkeypatch):
    """A plateau with wider edges: the integral of f over each pixel, by many midpoints."""
    family = Wide() if where == "subclass" else Plateau()
    if where == "class":
        monkeypatch.setattr(Plateau, "edge", 0.3)
    elif where == "instance":
        family.edge = 0.3
    elif where == "method":  # all of one instance
        for method in ("pdf", "cdf", "cdf_pdf", "mass"):
            monkeypatch.setattr(family, method, getattr(Wide(), method), raising=False)
    x = random(2, 1, 4, 5)
    loc, scale = torch.tensor([[[2.2, 1.7]]]), torch.tensor([[[1.5, 1.1]]])
    assert not native.usable(family, x, loc, scale)
    fine = (torch.arange(5000, dtype=torch.float64) + 0.5) / 1000

    def masses(axis, size):
        z = (fine[: 1000 * size] - loc[0, 0, axis]) / scale[0, 0, axis]
        height = (torch.sigmoid((z + 1) / 0.3) - torch.sigmoid((z - 1) / 0.3)) / 2
        return height.view(size, 1000).mean(1) / scale[0, 0, axis]

    wanted = (x.double() * (masses(1, 4)[:, None] * masses(0, 5))).sum((-2, -1), keepdim=True)
    torch.testing.assert_close(
        action.embed(x, loc, scale, family).double(), wanted[..., 0], rtol=1e-5, atol=1e-6
    )


QUIET = """
import sys, torch, densembed
model = densembed.build("logistic-el-mnn-3-2", (1, 9, 9))
assert "numba" not in sys.modules
with torch.no_grad():
    model(torch.rand(2, 1, 9, 9))
assert "numba" not in sys.modules, "for a prediction"
"""


@pytest.mark.slow
def test_neither_an_import_nor_a_prediction_imports_numba():
    subprocess.run([sys.executable, "-c", QUIET], check=True)
