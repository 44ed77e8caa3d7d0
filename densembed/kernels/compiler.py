"""Compilation by Numba, and functions that Numba lacks in a form that becomes vector instructions.

LLVM turns a loop over densities into vector instructions only if all of its body can be: math.exp
and its like are calls of scalar functions. Those here are polynomials, accurate to a few units in
the last place, with fewer terms in float32.
"""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from llvmlite import ir
from numba import config, extending, njit, types
from numba.core.caching import FunctionCache

settings: Any = config
intrinsic: Any = extending.intrinsic
"""Defines a function of kernels by its LLVM code; called without the context that it takes."""
CONTRACTED = {"contract", "nsz"}
"""a · b + c may be rounded once. Sums keep their order, and infinities their meaning."""


class _Cache(FunctionCache):
    """Compiled code on disk. Nothing depends on it: what cannot be read is compiled again."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of a damaged file, whatever its bytes mean
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with suppress(Exception):  # a full disk, or a damaged file in a folder that is read-only
            super().save_overload(sig, data)


def kernel(function: Callable | None = None, *, fastmath: set[str] | None = None) -> Any:
    """Compiles at the first call, runs without the interpreter's lock, and keeps the code on disk.

    If no folder can be written, the function is compiled once per process.
    """
    if function is None:
        return lambda wrapped: kernel(wrapped, fastmath=fastmath)
    options: Any = {"fastmath": fastmath or CONTRACTED, "nogil": True, "error_model": "numpy"}
    compiled = njit(**options)(function)
    folder, settings.CACHE_DIR = settings.CACHE_DIR, settings.CACHE_DIR or _folder()
    try:
        compiled._cache = _Cache(function)
    except RuntimeError:
        pass
    finally:
        settings.CACHE_DIR = folder
    return compiled


@cache
def _folder() -> str:
    """A folder for the compiled code of exactly these sources.

    Numba notices a change of a function's own file only, not of those that it calls. The folder is
    beside the source, or in the user's cache if that is read-only.
    """
    here = Path(__file__).parent
    digest = sha256(b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))).hexdigest()
    for parent in (
        here / "__pycache__",
        platformdirs.user_cache_path("densembed", appauthor=False),
    ):
        folder = parent / f"kernels-{digest[:16]}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
    return ""


@intrinsic
def like(typing, value, other):
    """`value` in the dtype of `other`; without it, constants would make everything float64."""

    def generate(context, builder, signature, args):
        kinds = signature.args[0], signature.return_type
        return context.cast(builder, args[0], *kinds)

    return other(value, other), generate


@intrinsic
def select(typing, condition, one, other):
    """`one` where the condition holds, both computed: a branch would end the vector."""

    def generate(context, builder, signature, args):
        return builder.select(*args)

    return one(types.boolean, one, one), generate


@kernel
def largest(x, y):
    """NaN if x is, so that F and f of an undefined location are."""
    return select(y > x, y, x)


def polynomial(single: Sequence[float], double: Sequence[float]) -> Any:
    """A function of x with these coefficients, the constant first, for float32 and float64."""

    @intrinsic
    def evaluate(typing, x):
        def generate(context, builder, signature, args):
            kind = signature.return_type
            constants = [
                context.get_constant(kind, c)
                for c in reversed(single if kind == types.float32 else double)
            ]
            value = constants[0]
            for constant in constants[1:]:
                value = builder.fma(value, args[0], constant)
            return value

        return x(x), generate

    return evaluate


@intrinsic
def _power_of_two(typing, exponent):
    """2ⁿ from the bits of a float, for a whole n within the range of normal numbers."""

    def generate(context, builder, signature, args):
        if signature.return_type == types.float32:
            number, whole, shift, bias = ir.FloatType(), ir.IntType(32), 23, 127
        else:
            number, whole, shift, bias = ir.DoubleType(), ir.IntType(64), 52, 1023
        biased = builder.add(builder.fptosi(args[0], whole), ir.Constant(whole, bias))
        return builder.bitcast(builder.shl(biased, ir.Constant(whole, shift)), number)

    return exponent(exponent), generate


_least_exponent = polynomial((-40.0,), (-350.0,))
"""Products of two larger exponentials are normal numbers. Others take a hundred times as long."""
_exp_of_rest = polynomial(
    (1.0, 1.000000038, 0.5000000047, 0.1666641551, 0.0416663529, 0.008375126398, 0.001394110843),
    (1.0, 1.0, 0.5, 0.16666666666666702, 0.041666666666666692, 0.0083333333333095271,
     0.0013888888888871888, 0.00019841269909217101, 2.4801587350110796e-5, 2.7557224958392623e-6,
     2.7557251904174913e-7, 2.5114869528657765e-8, 2.09215799649503e-9),
)  # fmt: skip


@kernel
def exp_negative(x):
    """e^x for x ≤ 0; zero below 4e-18 in float32 and 1e-152 in float64."""
    small = x < _least_exponent(x)
    x = largest(x, _least_exponent(x))
    n = np.floor(x * like(1.4426950408889634, x) + like(0.5, x))
    rest = x - n * like(0.693359375, x) + n * like(2.1219444005469058e-4, x)  # log 2 in two parts
    return select(small, like(0.0, x), _exp_of_rest(rest) * _power_of_two(n))


_atan_ratio = polynomial(
    (0.9999999994, -0.3333330689, 0.1999818304, -0.1423953267, 0.1056982881, -0.06026305228),
    (1.0, -0.33333333333333324, 0.19999999999997014, -0.14285714285329708, 0.11111111085322109,
     -0.09090908059031191, 0.076922810999377433, -0.066662052599765262, 0.058768340046141607,
     -0.05217312574061591, 0.04499500728984032, -0.033387824501211952, 0.015113765096600925),
)  # fmt: skip


@kernel
def atan_of_fraction(x):
    """atan x for 0 ≤ x ≤ 1, as twice the angle of the halved one, whose tangent is below 0.42."""
    one = like(1.0, x)
    half = x / (one + math.sqrt(one + x * x))
    return (half + half) * _atan_ratio(half * half)


_atanh_ratio = polynomial(
    (0.9999999999, 0.3333333951, 0.1999935562, 0.143101037, 0.1069928025, 0.1219695404),
    (1.0, 0.33333333333333342, 0.19999999999996433, 0.14285714286311464, 0.11111111059551837,
     0.090909117112476262, 0.076922235302299838, 0.066684384078719177, 0.058576373340552126,
     0.05488308318973747, 0.03490195249166216, 0.082441429656947843),
)  # fmt: skip


@kernel
def log1p_of_fraction(x):
    """log(1 + x) = 2 atanh(x / (2 + x)) for 0 ≤ x ≤ 1."""
    y = x / (like(2.0, x) + x)
    return (y + y) * _atanh_ratio(y * y)


_sine_ratio = polynomial(
    (0.9999999957, -0.1666665795, 0.008333050171, -0.0001980901741, 2.605107635e-6),
    (1.0, -0.16666666666666667, 0.008333333333333333, -0.0001984126984126967,
     2.7557319223940713e-6, -2.5052108378602197e-8, 1.6059043206300948e-10,
     -7.6471277399664175e-13, 2.8102145350022103e-15, -7.9825189617838324e-18),
)  # fmt: skip


@kernel
def sine_of_acute(x):
    """sin x for 0 ≤ x ≤ π/2."""
    return x * _sine_ratio(x * x)


_erfcx_scaled = polynomial(
    (1.237512631, -0.140240659, 0.003585438016, 0.0822784339, -0.1088045645, 0.09229069167,
     -0.05868825205, 0.02840943039, -0.009764690498, 0.001675734251, 0.0003253884646,
     -0.0002240520495, 2.363482007e-5),
    (1.2375126308378276, -0.14024059858554521, 0.0035854154854663069, 0.08227673848999159,
     -0.10880393014193915, 0.09230432116435616, -0.058693398584491848, 0.028362277371370046,
     -0.0097465796208150901, 0.0017556261692276721, 0.00029371408777227682,
     -0.00029015536563947128, 5.1647371238718377e-5, 2.2387592725347689e-5,
     -1.143961526007595e-5, -9.7929752909982292e-7, 1.7438577411359181e-6,
     -5.0816911811698188e-8, -2.4996538037405242e-7, 1.8778501156468797e-8,
     3.2564990837985129e-8, -1.9527901629748369e-9, -2.7293941332533855e-9),
)  # fmt: skip


@kernel
def erfcx_of_positive(x):
    """e^(x²) erfc x for x ≥ 0: 1 + 2x of it is smooth in (x − k) / (x + k)."""
    k, one = like(3.75, x), like(1.0, x)
    return _erfcx_scaled((x - k) / (x + k)) / (one + x + x)
