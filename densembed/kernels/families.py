"""F and f of each family of densities, in standard form, as in `densembed.functional.densities`.

Both come from the left tail h = F(−|z|), which each function returns with f, so that neither side
overflows. Absolute accuracy is enough here, since F near 1 is rounded relative to 1.
"""

import math

from densembed.kernels.compiler import (
    atan_of_fraction,
    erfcx_of_positive,
    exp_negative,
    kernel,
    largest,
    like,
    log1p_of_fraction,
    select,
    sine_of_acute,
)

PLATEAU_HEIGHT = -math.expm1(-20) / 2


@kernel
def _logistic(y):
    one = like(1.0, y)
    e = exp_negative(-y)
    upper = one / (one + e)
    return e * upper, e * upper * upper


@kernel
def _gaussian(y):
    e = exp_negative(like(-0.5, y) * y * y)
    root = like(math.sqrt(0.5), y)
    return like(0.5, y) * e * erfcx_of_positive(y * root), e * like(1 / math.sqrt(2 * math.pi), y)


@kernel
def _laplace(y):
    half = like(0.5, y) * exp_negative(-y)
    return half, half


@kernel
def _cauchy(y):
    one, part = like(1.0, y), like(1 / math.pi, y)
    near = y < one
    angle = part * atan_of_fraction(select(near, y, one / largest(y, one)))
    return select(near, like(0.5, y) - angle, angle), part / (one + y * y)


@kernel
def _hypsecant(y):
    e = exp_negative(like(-math.pi / 2, y) * y)
    return like(2 / math.pi, y) * atan_of_fraction(e), e / (like(1.0, y) + e * e)


@kernel
def _uniform(y):
    one, half = like(1.0, y), like(0.5, y)
    inside = largest(one - y, like(0.0, y))
    return half * inside, select(y <= one, half, like(0.0, y))


@kernel
def _triangular(y):
    inside = largest(like(1.0, y) - y, like(0.0, y))
    return like(0.5, y) * inside * inside, inside


@kernel
def _raisedcosine(y):
    inside = largest(like(1.0, y) - y, like(0.0, y))
    sine = sine_of_acute(like(math.pi / 2, y) * inside)
    cosine = sine_of_acute(like(math.pi / 2, y) * (like(1.0, y) - inside))
    return like(0.5, y) * inside - like(1 / math.pi, y) * sine * cosine, sine * sine


@kernel
def _plateau(y):
    one = like(1.0, y)
    inner = (one - y) * like(10.0, y)  # edges of scale 0.1
    e = exp_negative(-abs(inner))
    beyond = exp_negative((-one - y) * like(10.0, y))
    softplus = largest(inner, like(0.0, y)) + log1p_of_fraction(e)
    tail = like(0.05, y) * (softplus - log1p_of_fraction(beyond))
    fall = select(inner > like(0.0, y), one, e) / (one + e)
    return tail, like(PLATEAU_HEIGHT, y) * fall / (one + beyond)


@kernel
def _standard(edge, middle, inverse):
    return (like(edge, middle) - middle) * inverse


@kernel
def _whole(z, tail):
    return select(z < like(0.0, z), tail, like(1.0, z) - tail)


@kernel
def primitive(family, first, last, middle, inverse, cdf, pdf):
    """F and f at the edges first … last of an axis: one loop per family, without branches or calls.

    Args:
        family: index in `densembed.kernels.FAMILIES`.
        middle, inverse: (K,), the locations and reciprocal scales.
        cdf, pdf: (edges, K), written.
    """
    if family == 0:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _logistic(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 1:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _gaussian(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 2:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _laplace(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 3:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _cauchy(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 4:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _hypsecant(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 5:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _uniform(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 6:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _triangular(abs(z))
                cdf[edge, k] = _whole(z, tail)
    elif family == 7:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _raisedcosine(abs(z))
                cdf[edge, k] = _whole(z, tail)
    else:
        for edge in range(first, last + 1):
            for k in range(len(middle)):
                z = _standard(edge, middle[k], inverse[k])
                tail, pdf[edge, k] = _plateau(abs(z))
                cdf[edge, k] = _whole(z, tail)
