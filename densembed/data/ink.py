"""Detects ink in an image and segments the digit.

Ink differs from the paper around it and is narrow, like strokes. The paper is estimated by a
morphological closing (or an opening, if the ink is brighter), which follows shadows and their
edges, gradients and coloured paper. A single threshold for the whole image would not.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy import ndimage

from densembed.data.content import Polarity
from densembed.data.marks import (
    OWN_CONTRAST,
    Mark,
    find_marks,
    in_reading_order,
    is_second_digit,
    side_length,
    with_near_strokes,
)

# Every length below is a share of the picture's `side_length` unless it says otherwise.
WORK_SIDES = (128, 512)  # the side is brought into this range: small digits get whole
#                          pixels to work on, sensor noise is averaged out and the time is bounded
WORK_PIXELS = 512 * 512  # at most, also of a strip
SMOOTH = 0.002  # Gaussian against sensor noise, 1 pixel in 512; thin pens survive it
STROKES = (0.35, 0.1, 0.03)  # of the shorter side, wider than the pen: the first holds for any
#                              pen, the others see thinner ones in shadows, which the first merges
CLEARLY = 0.6  # of that width: a mark nearly as wide may have lost its wider parts
WIDE_FIRST = 1.4  # how much better a mark found with a narrower width must be
EXPLAINED = 0.3  # of the unevenness at most remains where light falls off smoothly; a quadratic
#                  through a shadow's edge would make valleys beside it
LEAST_WINDOW = 9  # pixels: narrower ones see only noise
STANDS_OUT = 1.25  # how much stronger than a shadow around it a line is
DARKEST_PAPER = 0.25  # contrast is taken relative to the paper (a shadow dims both), down to this
LEAST_CONTRAST = 0.06  # colour distance (black to white: 1) under which nothing is ink: JPEG's
#                        own artefacts and the banding of gradients stay below it
NOISE_LOW, NOISE_HIGH = 4.0, 6.0  # in noise deviations: where ink may be, where it surely is
RAMP = (0.3, 0.7)  # of the core: what is below is paper, above full ink; symmetric about half, so
#                    that blur changes no stroke's width
BAND = (0.95, 0.5, 0.15, 0.15)  # around the page: 95 % of a row is within 0.15 of one colour, then
#                               suddenly less than half; within 15 % of the side
ENDS, CUT = 1, 0.4  # a digit is cut off if more strokes end at the edges, or if this much of its
#                     extent lies along one
STRAY = 0.1  # of the digit's area: more marks of its strength elsewhere, and it is a photograph
UNEVEN = 0.12  # of the ink's contrast, as root mean square: less even paper is none
RING = 8  # pixels around a digit, and twice its pen's width: the paper to compare its ink with
AROUND = 32  # pixels on which the paper's evenness is judged: writing on its back is lost there
THIN = 2.2  # pixels of 20: thinner strokes are thickened to this (MNIST has 2 to 4)


Box = tuple[float, float, float, float]
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Digit:
    """A digit in an image.

    Attributes:
        ink: (h, w) float32 in [0, 1], of this digit alone.
        box: its left, top, right and bottom edge, as shares of the image's width and height.
        cut_off: whether its strokes end at the edge of the part that was searched.
    """

    ink: np.ndarray
    box: Box
    cut_off: bool


@dataclass(frozen=True)
class Sheet:
    """What was found in an image.

    Attributes:
        digits: in reading order; none for a blank image.
        frame: the part that was searched, inside of an even border, as a `Digit.box`.
        polarity: how ink and paper differ.
        paper: the colour of the paper, (red, green, blue) in [0, 1]; None if it is transparent.
        ink: the colour of the ink; None if there is none.
        clean: whether the background is a page, which is even and has no other marks of similar
            contrast.
    """

    digits: tuple[Digit, ...]
    frame: Box
    polarity: Polarity
    paper: Colour | None
    ink: Colour | None
    clean: bool


def find_digits(rgba: np.ndarray, light_on_dark: bool | None = None) -> Sheet:
    """Segment the handwritten digits in an image.

    Args:
        rgba: (height, width, 4) in [0, 1], as `decode` returns it.
        light_on_dark: whether the ink is lighter than the paper; by default this is detected.
    """
    rgba = _working_size(rgba)
    strength = None if light_on_dark is not None else _alpha_ink(rgba)
    page = rows = columns = None
    if strength is not None:
        maps: list[tuple[np.ndarray, float]] = [(strength, np.inf)]
        rows, columns = slice(0, len(rgba)), slice(0, rgba.shape[1])
    else:
        page = _planes(_fill_holes(rgba, light_on_dark))
        rows, columns = _without_bands(page)
        page = page[rows, columns]
        maps = _paper_ink(page, light_on_dark)
    best = None
    for strength, window in maps:
        marks, lines = find_marks(strength)
        main = max(marks, key=lambda mark: mark.score, default=None)
        if main and (best is None or _is_better(main, window, best[0], best[2])):
            best = main, marks, strength, lines
    height, width = rgba.shape[:2]
    frame = _shares((rows, columns), (0, 0), (height, width))
    colours = rgba[rows, columns, :3]
    if best is None:
        polarity = _polarity(light_on_dark, page is None)
        paper = None if page is None else _median(colours.reshape(-1, 3))
        return Sheet((), frame, polarity, paper, None, True)
    main, marks, strength, lines = best
    chosen = [main, *(mark for mark in marks if is_second_digit(mark, main))]
    masks = with_near_strokes(chosen, marks)
    kept = np.logical_or.reduce(masks)
    rules = np.zeros(kept.shape, bool)
    for line in lines:
        rules |= line.mask
    clean = _is_page(page, strength > OWN_CONTRAST * main.core, kept, rules & ~kept)
    of_mark = {id(mark): mask for mark, mask in zip(chosen, masks, strict=True)}
    digits = tuple(
        Digit(
            _full_strokes(strength, of_mark[id(mark)], mark.core),
            _shares(_bounds(of_mark[id(mark)]), (rows.start, columns.start), (height, width)),
            _is_cut_off(of_mark[id(mark)]),
        )
        for mark in in_reading_order(chosen)
    )
    ink = _median(colours[kept & (strength >= main.core)])
    if page is None:
        return Sheet(digits, frame, Polarity.TRANSPARENT, None, ink, clean)
    paper = _median(colours[ndimage.distance_transform_edt(strength <= 0) > 0])
    lighter = light_on_dark if light_on_dark is not None else _luma(ink) > _luma(paper)
    return Sheet(digits, frame, _polarity(lighter, False), paper, ink, clean)


def _polarity(light_on_dark: bool | None, transparent: bool) -> Polarity:
    if transparent:
        return Polarity.TRANSPARENT
    return Polarity.LIGHT_ON_DARK if light_on_dark else Polarity.DARK_ON_LIGHT


def _median(colours: np.ndarray) -> Colour | None:
    """The median of colours (n, 3)."""
    if not len(colours):
        return None
    red, green, blue = np.median(colours, axis=0)
    return float(red), float(green), float(blue)


def _luma(colour: Colour | None) -> float:
    red, green, blue = colour or (0.0, 0.0, 0.0)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _bounds(mask: np.ndarray) -> tuple[slice, slice]:
    return ndimage.find_objects(mask.astype(np.uint8))[0]


def _shares(place: tuple[slice, slice], start: tuple[int, int], size: tuple[int, int]) -> Box:
    """A place in an image as left, top, right, bottom in shares of its size (height, width)."""
    (rows, columns), (top, left), (height, width) = place, start, size
    return (
        (left + columns.start) / width,
        (top + rows.start) / height,
        (left + columns.stop) / width,
        (top + rows.stop) / height,
    )


def _is_cut_off(mask: np.ndarray) -> bool:
    """Whether several strokes end at the edges, or one lies along an edge.

    The tip of a single stroke may touch an edge of a tight crop.
    """
    sides = (mask[0], mask[-1], mask[:, 0], mask[:, -1])
    ends = sum(
        int(np.count_nonzero(np.diff(side.astype(np.int8), prepend=0) == 1)) for side in sides
    )
    along = max(int(side.sum()) for side in sides)
    extent = max(side.stop - side.start for side in _bounds(mask))
    return ends > ENDS or along > CUT * extent


def _is_better(main: Mark, window: float, best: Mark, strength: np.ndarray) -> bool:
    """Whether a mark detected with a narrower window is the digit, not a part of a thick one.

    A line in a shadow has more contrast than the mark of both; a part of a digit has not.
    """
    if 2 * main.half_width > CLEARLY * window or main.score < WIDE_FIRST * best.score:
        return False
    inside = best.mask[main.mask].mean() > 0.5
    return not inside or strength[main.mask].mean() > STANDS_OUT * best.core


def resample(
    plane: np.ndarray,
    size: tuple[int, int],
    box: tuple[float, float, float, float] | None = None,
    how: Image.Resampling = Image.Resampling.HAMMING,
) -> np.ndarray:
    """Resize an (h, w) array to `size` (height, width), averaging where it shrinks."""
    image = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.asarray(image.resize((size[1], size[0]), how, box=box))


def _working_size(rgba: np.ndarray) -> np.ndarray:
    height, width = rgba.shape[:2]
    least, most = WORK_SIDES
    side = side_length(rgba.shape)
    scale = min(max(1.0, least / side), most / side, (WORK_PIXELS / (height * width)) ** 0.5)
    if scale == 1.0:
        return rgba
    size = (max(1, round(height * scale)), max(1, round(width * scale)))
    how = Image.Resampling.BICUBIC if scale > 1 else Image.Resampling.BOX
    # Colours are weighted by alpha, as the colour of a transparent pixel is arbitrary.
    alpha = np.clip(resample(rgba[..., 3], size, how=how), 0, 1)
    planes = [resample(rgba[..., c] * rgba[..., 3], size, how=how) for c in range(3)]
    planes = [np.clip(plane / np.maximum(alpha, 1e-3), 0, 1) for plane in planes]
    return np.stack([*planes, alpha], axis=-1)


# --- strokes on transparency ------------------------------------------------------------------


def _alpha_ink(rgba: np.ndarray) -> np.ndarray | None:
    """The alpha channel if it contains the strokes, otherwise None."""
    alpha = rgba[..., 3] / max(rgba[..., 3].max(), 1e-6)
    solid = alpha > 0.5
    if not solid.any():
        return np.zeros(alpha.shape, np.float32)
    if _is_cut_out(rgba, solid):
        return None
    if solid.mean() > 0.995 or _is_translucent_sheet(rgba, alpha, solid):
        return None
    rows, columns = np.nonzero(solid)
    box = solid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    colours = rgba[solid][:, :3]
    uniform = np.ptp(np.percentile(colours, (2, 98), axis=0), axis=0).max() < 0.3
    # Opaque, of two colours, and nearly filling its own box: a sheet with cut corners, not strokes.
    sheet = box.mean() > 0.7 and not uniform
    if sheet:
        return None
    ground = np.median(alpha[~solid])  # 0 unless the strokes are on a translucent ground
    return np.clip((alpha - ground) / (1 - ground), 0, 1)


def _is_cut_out(rgba: np.ndarray, solid: np.ndarray) -> bool:
    """Whether the image is a sheet of one colour, opaque all around, with transparent parts."""
    edges = solid[[0, -1]].all() and solid[:, [0, -1]].all()
    if not edges or solid.all():
        return False
    colours = np.percentile(rgba[solid][:, :3], (0.2, 99.8), axis=0)
    return float(np.ptp(colours, axis=0).max()) < 0.3


def _is_translucent_sheet(rgba: np.ndarray, alpha: np.ndarray, solid: np.ndarray) -> bool:
    """Whether the image is a partly translucent sheet, whose colours show the strokes.

    There are two kinds. The ink is translucent and the paper around it is opaque; or the opacity
    varies over the whole image and is zero nowhere, as if it had been computed from the brightness.
    In both, the pixels that are not opaque differ in colour from those that are. Strokes on
    transparency with soft edges or a halo are not a sheet.
    """
    edges = np.concatenate([solid[0], solid[-1], solid[:, 0], solid[:, -1]])
    faint = alpha[~solid]
    uneven = np.subtract(*np.percentile(faint, (75, 25))) > 0.05
    if edges.mean() < 0.9 and not (faint.min() > 0.02 and uneven):
        return False
    other = np.abs(rgba[~solid][:, :3] - np.median(rgba[solid][:, :3], axis=0)).max(-1) > 0.3
    return float((other & (faint > 0.02)).mean()) > 0.5


def _fill_holes(rgba: np.ndarray, light_on_dark: bool | None) -> np.ndarray:
    """Fill the transparent parts of a sheet with the colour of its paper.

    If the polarity is given, the paper may be what is transparent. Parts that are cut out of a
    sheet of one colour are the strokes: they become black in a light sheet, white in a dark one.
    """
    alpha = rgba[..., 3:]
    if alpha.min() == 1:
        return rgba[..., :3]
    if light_on_dark is not None and _alpha_ink(rgba) is not None:
        return rgba[..., :3] * alpha + (0.0 if light_on_dark else 1.0) * (1 - alpha)
    solid = alpha[..., 0] > 0.5 * alpha.max()
    fill = np.median(rgba[solid][:, :3], axis=0) if solid.any() else np.ones(3, np.float32)
    if _is_cut_out(rgba, solid):
        fill = np.float32(_luma(_median(rgba[solid][:, :3])) < 0.5)
    return rgba[..., :3] * alpha + fill * (1 - alpha)


def _planes(rgb: np.ndarray) -> np.ndarray:
    """One plane (h, w, 1) for a grey image, which saves time; otherwise all three."""
    grey = (rgb == rgb[..., :1]).all()
    return rgb[..., :1] if grey else rgb


# --- ink on paper -----------------------------------------------------------------------------


def _paper_ink(page: np.ndarray, light_on_dark: bool | None) -> list[tuple[np.ndarray, float]]:
    """Colour distance from the paper, less the noise, and stroke width in pixels, for each of
    `STROKES`."""
    page = ndimage.gaussian_filter(page, (SMOOTH * side_length(page.shape),) * 2 + (0,))
    channels = range(page.shape[-1])
    light = np.stack([_light(page[..., c]) for c in channels], axis=-1)
    page = page - light
    calm = ndimage.median_filter(page, (5, 5, 1), mode="nearest")
    maps: list[tuple[np.ndarray, float]] = []
    for stroke in STROKES:
        window = int(stroke * min(page.shape[:2])) | 1
        if maps and window < LEAST_WINDOW:
            break
        planes = [
            _stroke_contrast(
                page[..., c], calm[..., c], light[..., c], max(3, window), light_on_dark
            )
            for c in channels
        ]
        maps.append((_above_noise(np.stack(planes)), window))
    return maps


def _light(plane: np.ndarray) -> np.ndarray:
    """The smooth fall-off of light over the page: a quadratic that ink hardly bends, or one level.

    Without it, closing would fill the dark end of a gradient as if it were a stroke.
    """
    small = resample(plane, (24, 24)).ravel()
    terms = _quadratic(24, 24)
    weights = np.ones_like(small)
    for _ in range(6):
        root = np.sqrt(weights)
        factors = np.linalg.lstsq(terms * root[:, None], small * root, rcond=None)[0]
        rest = small - terms @ factors
        weights = 1 / (1 + (rest / (2 * np.median(np.abs(rest)) + 1e-4)) ** 2)
    level = np.median(small)
    if np.median(np.abs(rest)) > EXPLAINED * np.median(np.abs(small - level)):
        return np.full(plane.shape, level, np.float32)
    return (_quadratic(*plane.shape) @ factors).reshape(plane.shape).astype(np.float32)


def _quadratic(height: int, width: int) -> np.ndarray:
    y, x = np.meshgrid(
        (np.arange(height) + 0.5) / height - 0.5,
        (np.arange(width) + 0.5) / width - 0.5,
        indexing="ij",
    )
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=-1).reshape(-1, 6)


def _without_bands(page: np.ndarray) -> tuple[slice, slice]:
    """The page inside an even band that a scan or a screenshot has around it."""
    height, width = page.shape[:2]
    sides = (page, page[::-1], page.swapaxes(0, 1), page.swapaxes(0, 1)[::-1])
    ends = [_band_depth(side) for side in sides]
    # One side alone may be the bar of a 7 that fills the picture.
    if sum(end > 0 for end in ends) < 3:
        return slice(0, height), slice(0, width)
    top, bottom, left, right = (end + (2 if end else 0) for end in ends)  # 2: its blurred edge
    return slice(top, height - bottom), slice(left, width - right)


def _band_depth(page: np.ndarray) -> int:
    """Rows of one colour from the top to where most of a row is suddenly of another."""
    share, suddenly, distance, deepest = BAND
    limit = int(deepest * len(page))
    colour = np.median(page[0], axis=0)
    alike = (np.abs(page[: limit + 4] - colour).max(-1) < distance).mean(1)
    depth = int(np.argmin(alike > share))  # 0 if all are alike
    return depth if 0 < depth <= limit and alike[depth : depth + 4].min() < suddenly else 0


def _stroke_contrast(
    plane: np.ndarray,
    calm: np.ndarray,
    light: np.ndarray,
    window: int,
    light_on_dark: bool | None,
) -> np.ndarray:
    """How much `plane` differs from its paper, of which strokes narrower than `window` are no part.

    `calm` is the plane without specks, which would raise the closing; both are less `light`.
    """
    if _ink_is_brighter(plane, window) if light_on_dark is None else light_on_dark:
        plane, calm, light = -plane, -calm, 1 - light
    paper = ndimage.grey_closing(calm, (window, window), mode="reflect")
    return (paper - plane) / np.maximum(paper + light, DARKEST_PAPER)


def _ink_is_brighter(plane: np.ndarray, window: int) -> bool:
    """Ink is the rarer, hence longer, tail of the distances from the mean around."""
    rest = plane - ndimage.uniform_filter(plane, window, mode="reflect")
    return float(np.mean(rest**3)) > 0


def _above_noise(planes: np.ndarray) -> np.ndarray:
    """Length of the contrast, (channels, h, w), above the paper's unevenness; zero at the paper.

    The lower quantiles belong to the paper even where a thick digit covers half the picture.
    """
    low, high = np.quantile(planes.reshape(len(planes), -1), (0.1, 0.3), axis=1)
    deviations = (high - low) / 0.757  # the distance of these quantiles of a normal distribution
    levels = high + 0.524 * deviations
    rest = np.clip(planes - levels[:, None, None], 0, None)
    rest = np.sqrt(np.mean(rest**2, axis=0))
    deviation = float(np.sqrt(np.mean(deviations**2)))
    rest[rest < max(NOISE_LOW * deviation, 0.6 * LEAST_CONTRAST)] = 0
    if rest.max(initial=0) < max(NOISE_HIGH * deviation, LEAST_CONTRAST):
        rest[:] = 0
    return rest


# --- the page around it -----------------------------------------------------------------------


def _is_page(
    page: np.ndarray | None, marked: np.ndarray, kept: np.ndarray, rules: np.ndarray
) -> bool:
    """Whether what is not the digit is paper: light may fall off over it, but little else.

    Args:
        page: colours (h, w, 3 or 1), None for strokes on transparency.
        marked: where something is as strong as ink.
        kept: where the digits are.
        rules: where the lines of ruled paper are, which belong to a page.
    """
    width = 4 * float(ndimage.distance_transform_edt(kept)[kept].mean()) - 2  # as `_full_strokes`
    beyond = ndimage.distance_transform_edt(~kept) > 2 + max(1.0, width) / 4
    beyond &= ndimage.distance_transform_edt(~rules) > 2 if rules.any() else True
    if (marked & beyond).sum() > STRAY * kept.sum():
        return False
    side = (AROUND, AROUND)
    paper = resample(beyond.astype(np.float32), side).ravel() > 0.9
    if page is None or paper.sum() < AROUND:  # too little of it to say
        return True
    planes = [resample(page[..., c], side).ravel() for c in range(page.shape[-1])]
    colours = np.stack(planes, axis=-1)
    light = _quadratic(*side)
    shade = light @ np.linalg.lstsq(light[paper], colours[paper], rcond=None)[0]
    rest = colours - shade
    # In full resolution: averaged over a cell, a thin pen on a large sheet has hardly any contrast.
    around = beyond & (ndimage.distance_transform_edt(~kept) < RING + 2 * width)
    if not around.any():
        return True
    contrast = float(np.linalg.norm(page[kept].mean(0) - page[around].mean(0)))
    return float(np.sqrt((rest[paper] ** 2).sum(1).mean())) <= UNEVEN * contrast


# --- strokes as MNIST has them ----------------------------------------------------------------


def _full_strokes(strength: np.ndarray, kept: np.ndarray, core: float) -> np.ndarray:
    """Ink in [0, 1] of the kept marks: full inside, soft at the edge, no thinner than `THIN`."""
    rows, columns = np.nonzero(kept)
    size = max(np.ptp(rows), np.ptp(columns)) + 1
    depth = ndimage.distance_transform_edt(kept)
    width = max(1.0, 4 * float(depth[kept].mean()) - 2)  # of a line w wide, the mean is (w + 2) / 4
    low, high = RAMP
    around = ndimage.distance_transform_edt(~kept)
    ink = np.clip((strength / core - low) / (high - low), 0, 1) * (around <= 1 + width / 4)
    grow = (THIN * size - 20 * width) / (2 * (20 - THIN))  # in a box that grows along
    if grow <= 0:
        return ink.astype(np.float32)
    pad = int(np.ceil(grow)) + 1
    around = ndimage.distance_transform_edt(~np.pad(kept, pad))
    return np.maximum(np.pad(ink, pad), np.clip(grow + 1 - around, 0, 1)).astype(np.float32)
