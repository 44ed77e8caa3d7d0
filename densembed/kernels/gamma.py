"""The action of densities on images, and its adjoint, without any array of size batch · K · N.

`see` is R = Γx with its slopes by location and scale. R_k depends on density k alone, so these are
the whole Jacobian. `spread` is Σ_k w_k Γ_k. Each is the other's derivative: by the images, and by
the weights. Γ is separable, so both work with one table of masses per axis.

Axes: member m, input n, channel c, density k, axis a (0 along the columns). Densities that several
members, inputs or channels share have length 1 there. Densities are innermost in the tables, padded
to whole vectors. Nothing depends on how a call is cut into pieces, or on the number of threads.
"""

import numpy as np

from densembed.kernels.compiler import kernel, like
from densembed.kernels.contraction import LANES, TILE, contract
from densembed.kernels.families import primitive


@kernel
def _padded(size, to):
    return (size + to - 1) // to * to


@kernel
def _place(loc, scale, middle, inverse):
    """Copy a density's parameters, (K, 2) each, to (2, K): one row per axis."""
    for k in range(loc.shape[0]):
        for a in range(2):
            middle[a, k] = loc[k, a]
            inverse[a, k] = like(1.0, scale[k, a]) / scale[k, a]


@kernel
def _masses(family, first, last, middle, inverse, cdf, pdf, mass):
    """F and f at the edges first … last of an axis, and the differences of F, Γ, between them."""
    primitive(family, first, last, middle, inverse, cdf, pdf)
    pdf[last + 1 : last + TILE] = 0  # of the input before
    for n in range(first, last):
        for k in range(len(middle)):
            mass[n, k] = cdf[n + 1, k] - cdf[n, k]


@kernel
def _edges(first, end, size, moving):
    """The edges of the tiles with ink; all edges if the next input has the same densities."""
    if moving:
        return first // TILE * TILE, min(_padded(end, TILE), size)
    return 0, size


@kernel
def _copy(pixels, image):
    """Copy an image to a padded one; returns the first and last row and column with ink, plus 1."""
    height, width = pixels.shape
    marked = np.zeros(width, np.bool_)
    top, bottom, left, right = height, 0, width, 0
    for r in range(height):
        blank = True
        for column in range(width):
            ink = pixels[r, column] != 0
            image[r, column] = pixels[r, column]
            marked[column] |= ink
            blank &= not ink
        if not blank:
            top, bottom = min(top, r), r + 1
    for column in range(width):
        if marked[column]:
            left, right = min(left, column), column + 1
    return min(top, bottom), bottom, min(left, right), right


@kernel
def _slopes(seen, edge, middle, inverse, pdf, by_middle, by_spread):
    """Add y f(z) and y f(z) z at the edges before the columns of a tile.

    y is the difference of what the pixels on both sides see. Row 0 of `seen` is the pixel before
    the tile, and becomes the tile's last.
    """
    for k in range(len(middle)):
        y0 = (seen[1, k] - seen[0, k]) * pdf[edge, k]
        y1 = (seen[2, k] - seen[1, k]) * pdf[edge + 1, k]
        y2 = (seen[3, k] - seen[2, k]) * pdf[edge + 2, k]
        y3 = (seen[4, k] - seen[3, k]) * pdf[edge + 3, k]
        seen[0, k] = seen[4, k]
        by_middle[k] += y0 + y1 + y2 + y3
        by_spread[k] += (
            y0 * (like(edge, y0) - middle[k])
            + y1 * (like(edge + 1, y0) - middle[k])
            + y2 * (like(edge + 2, y0) - middle[k])
            + y3 * (like(edge + 3, y0) - middle[k])
        ) * inverse[k]


@kernel
def see(family, x, loc, scale, value, slopes, first, end):
    """R and its slopes for the pieces first ≤ m · C · N + c · N + n < end.

    Args:
        family: index in `densembed.kernels.FAMILIES`.
        x: (M or 1, N or 1, C or 1, H, W).
        loc, scale: (M or 1, N or 1, C or 1, K, 2) in pixels.
        value: (M, N, C, K), written.
        slopes: (M, N, C, 4, K), written: by the locations on both axes, then by the scales. Of
            length 0 instead of 4 if they are not wanted.
    """
    height, width = x.shape[3:]
    inputs, channels, densities = value.shape[1:]
    lanes = _padded(densities, LANES)
    tall, wide = _padded(height, TILE), _padded(width, TILE)
    with_slopes = slopes.shape[3] > 0
    image = np.zeros((tall, wide), x.dtype)
    middle, inverse = np.zeros((2, lanes), x.dtype), np.ones((2, lanes), x.dtype)
    cdf = np.empty((max(height, width) + 1, lanes), x.dtype)
    pdf_columns, mass_columns = _tables(wide, lanes, x.dtype)
    pdf_rows, mass_rows = _tables(tall, lanes, x.dtype)
    seen, sums = np.empty((1 + TILE, lanes), x.dtype), np.empty((5, lanes), x.dtype)
    moving, placed = loc.shape[1] > 1 or scale.shape[1] > 1, -1
    for piece in range(first, end):
        group, n = piece // inputs, piece % inputs
        m, c = group // channels, group % channels
        top, bottom, left, right = _copy(_at(x, m, n, c), image)
        if moving or placed != group:
            placed = group
            _place(_at(loc, m, n, c), _at(scale, m, n, c), middle, inverse)
            low, high = _edges(left, right, width, moving)
            _masses(family, low, high, middle[0], inverse[0], cdf, pdf_columns, mass_columns)
            low, high = _edges(top, bottom, height, moving)
            _masses(family, low, high, middle[1], inverse[1], cdf, pdf_rows, mass_rows)
        sums[:] = 0
        seen[:] = 0
        edge = left // TILE * TILE
        while edge < right:
            contract(image, edge, wide, 1, top, bottom, mass_rows, seen)
            for k in range(lanes):
                sums[0, k] += (
                    seen[1, k] * mass_columns[edge, k]
                    + seen[2, k] * mass_columns[edge + 1, k]
                    + seen[3, k] * mass_columns[edge + 2, k]
                    + seen[4, k] * mass_columns[edge + 3, k]
                )
            if with_slopes:
                _slopes(seen, edge, middle[0], inverse[0], pdf_columns, sums[1], sums[3])
            edge += TILE
        for k in range(densities):
            value[m, n, c, k] = sums[0, k]
        if with_slopes:
            seen[1:] = 0
            _slopes(seen, edge, middle[0], inverse[0], pdf_columns, sums[1], sums[3])
            seen[0] = 0
            edge = top // TILE * TILE
            while edge < bottom:
                contract(image, edge * wide, 1, wide, left, right, mass_columns, seen)
                _slopes(seen, edge, middle[1], inverse[1], pdf_rows, sums[2], sums[4])
                edge += TILE
            seen[1:] = 0
            _slopes(seen, edge, middle[1], inverse[1], pdf_rows, sums[2], sums[4])
            for a in range(2):
                for k in range(densities):
                    slopes[m, n, c, a, k] = sums[1 + a, k] * inverse[a, k]
                    slopes[m, n, c, 2 + a, k] = sums[3 + a, k] * inverse[a, k]


@kernel
def _tables(size, lanes, dtype):
    """f at the edges of an axis of padded size, and the masses: zeros beyond the image."""
    return np.zeros((size + TILE, lanes), dtype), np.zeros((size, lanes), dtype)


@kernel
def _at(tensor, m, n, c):
    """The last axes at a place, whatever is shared there."""
    m = min(m, tensor.shape[0] - 1)
    return tensor[m, min(n, tensor.shape[1] - 1), min(c, tensor.shape[2] - 1)]


@kernel(fastmath={"contract", "nsz", "reassoc"})
def spread(family, weight, loc, scale, image, first, end):
    """Σ_k w_k Γ_k for the pieces first ≤ m · C · N + c · N + n < end.

    Args:
        weight: (M or 1, N or 1, C or 1, K).
        loc, scale: (M or 1, N or 1, C or 1, K, 2) in pixels.
        image: (M, N, C, H, W), written.
    """
    inputs, channels, height, width = image.shape[1:]
    densities = weight.shape[3]
    dtype = weight.dtype
    lanes, wide = _padded(densities, LANES), _padded(width, TILE)
    middle, inverse = np.zeros((2, lanes), dtype), np.ones((2, lanes), dtype)
    cdf = np.empty((max(height, width) + 1, lanes), dtype)
    pdf, mass_rows = _tables(height, lanes, dtype)
    pdf_columns, mass_columns = _tables(wide, lanes, dtype)
    weighted = np.zeros(lanes, dtype)
    moving, placed = loc.shape[1] > 1 or scale.shape[1] > 1, -1
    for piece in range(first, end):
        group, n = piece // inputs, piece % inputs
        m, c = group // channels, group % channels
        if moving or placed != group:
            placed = group
            _place(_at(loc, m, n, c), _at(scale, m, n, c), middle, inverse)
            _masses(family, 0, width, middle[0], inverse[0], cdf, pdf_columns, mass_columns)
            _masses(family, 0, height, middle[1], inverse[1], cdf, pdf, mass_rows)
        weights = _at(weight, m, n, c)
        for r in range(height):
            for k in range(densities):
                weighted[k] = weights[k] * mass_rows[r, k]
            for column in range(0, wide, TILE):
                s0 = s1 = s2 = s3 = like(0.0, weighted[0])
                for k in range(lanes):
                    w = weighted[k]
                    s0 += w * mass_columns[column, k]
                    s1 += w * mass_columns[column + 1, k]
                    s2 += w * mass_columns[column + 2, k]
                    s3 += w * mass_columns[column + 3, k]
                image[m, n, c, r, column] = s0
                if column + 1 < width:
                    image[m, n, c, r, column + 1] = s1
                if column + 2 < width:
                    image[m, n, c, r, column + 2] = s2
                if column + 3 < width:
                    image[m, n, c, r, column + 3] = s3


@kernel
def pull(grad, slopes, by_loc, by_scale):
    """Gradients by locations and scales, summed over what the densities share.

    Args:
        grad: (M or 1, N or 1, C or 1, K), by R.
        slopes: (M, N, C, 4, K) from `see`.
        by_loc, by_scale: (M or 1, N or 1, C or 1, K, 2), written.
    """
    members, inputs, channels, _, densities = slopes.shape
    by_loc[:] = 0
    by_scale[:] = 0
    for m in range(members):
        for n in range(inputs):
            for c in range(channels):
                own, slope = _at(grad, m, n, c), slopes[m, n, c]
                loc, scale = _at(by_loc, m, n, c), _at(by_scale, m, n, c)
                for k in range(densities):
                    loc[k, 0] += own[k] * slope[0, k]
                    loc[k, 1] += own[k] * slope[1, k]
                    scale[k, 0] += own[k] * slope[2, k]
                    scale[k, 1] += own[k] * slope[3, k]
