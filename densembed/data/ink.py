"""Detects ink in an image and segments the digit.

Ink differs from the paper around it and is narrow, like strokes. The paper is estimated by a
morphological closing (or an opening, if the ink is brighter), which follows shadows and their
edges, gradients and coloured paper. A single threshold for the whole image would not.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from PIL import Image
from scipy import ndimage

# Every length below is a share of the picture's side unless it says otherwise.
WORK_SIDES = (128, 512)  # the longer side is brought into this range: small digits get whole
#                          pixels to work on, sensor noise is averaged out and the time is bounded
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
OWN_CONTRAST = 0.4  # of a stroke's own core, where its edge lies
RAMP = (0.3, 0.7)  # of the core: what is below is paper, above full ink; symmetric about half, so
#                    that blur changes no stroke's width
LEAST_EXTENT = 0.03  # of the longer side: smaller marks are specks
BLOB = 0.3  # half-width over extent: a disc has 0.5, the fattest MNIST digits 0.2
FAT = 0.2  # half-width over extent at which a mark counts half as a digit
ALONG = 0.4  # of its own extent: a mark this far along the picture's edge is likely no digit
BORDER = 0.5  # of a side: marks in touch with more of it are a frame, a shadow or the table
BAND = (0.95, 0.5, 0.15, 0.15)  # around the page: 95 % of a row is within 0.15 of one colour, then
#                               suddenly less than half; within 15 % of the side
NEAR = 0.3  # of the digit's extent: separate strokes of one digit are this near (5's bar)
PART = 0.12  # of the digit's extent: smaller marks next to it are specks
ALIKE = 0.5  # share of height and contrast from which a second mark is a second digit
STRAY = 0.05  # of the digit's area: more marks of its strength elsewhere, and it is a photograph
UNEVEN = 0.12  # of the ink's contrast, as root mean square: less even paper is none
AROUND = 32  # pixels on which the paper's evenness is judged: writing on its back is lost there
THIN = 2.2  # pixels of 20: thinner strokes are thickened to this (MNIST has 2 to 4)


class Content(StrEnum):
    """What an image shows. The values appear in the output of `densembed read --json`."""

    DIGIT = "digit"
    SEVERAL_DIGITS = "several digits"
    BLANK = "no ink"
    IMAGE = "picture"
    """An image of any kind, in which no digit was looked for."""


def find_digit(rgba: np.ndarray) -> tuple[np.ndarray, Content, bool]:
    """Segment the handwritten digit in an image.

    Args:
        rgba: (height, width, 4) in [0, 1], as `decode` returns it.

    Returns:
        The ink, (h, w) float32 in [0, 1] at a working size: of the digit, of all digits if there
        are several, all zero for a blank image; the content; and whether the background is a
        page, which is even and has no other marks of similar contrast.
    """
    rgba = _working_size(rgba)
    strength = _alpha_ink(rgba)
    page = None
    if strength is not None:
        maps: list[tuple[np.ndarray, float]] = [(strength, np.inf)]
    else:
        page = _planes(_fill_holes(rgba))
        page = page[_without_bands(page)]
        maps = _paper_ink(page)
    best = None
    for strength, window in maps:
        marks = _marks(strength)
        main = max(marks, key=lambda mark: mark.score, default=None)
        if main and (best is None or _is_better(main, window, *best)):
            best = main, marks, strength
    if best is None:
        return np.zeros(rgba.shape[:2], np.float32), Content.BLANK, True
    main, marks, strength = best
    digits = [main, *(mark for mark in marks if _is_second_digit(mark, main))]
    kept = _with_near_strokes(digits, marks, strength.shape)
    ink = _full_strokes(strength, kept, main.core)
    clean = _is_page(page, strength / main.core > OWN_CONTRAST, kept)
    return ink, Content.SEVERAL_DIGITS if len(digits) > 1 else Content.DIGIT, clean


def _is_better(
    main: "_Mark", window: float, best: "_Mark", marks: list["_Mark"], strength: np.ndarray
) -> bool:
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
    scale = min(max(1.0, least / max(height, width)), most / max(height, width))
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
    alpha = rgba[..., 3]
    solid = alpha > 0.5
    if not solid.any():
        return np.zeros(alpha.shape, np.float32)
    if solid.mean() > 0.995:
        return None
    rows, columns = np.nonzero(solid)
    box = solid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    colours = rgba[solid][:, :3]
    uniform = np.ptp(np.percentile(colours, (2, 98), axis=0), axis=0).max() < 0.3
    # Opaque, of two colours, and nearly filling its own box: a sheet with cut corners, not strokes.
    sheet = box.mean() > 0.7 and not uniform
    return None if sheet else alpha


def _fill_holes(rgba: np.ndarray) -> np.ndarray:
    """Fill the transparent parts of a sheet with the colour of its paper."""
    alpha = rgba[..., 3:]
    if alpha.min() == 1:
        return rgba[..., :3]
    paper = np.median(rgba[alpha[..., 0] > 0.5][:, :3], axis=0)
    return rgba[..., :3] * alpha + paper * (1 - alpha)


def _planes(rgb: np.ndarray) -> np.ndarray:
    """One plane (h, w, 1) for a grey image, which saves time; otherwise all three."""
    grey = (rgb == rgb[..., :1]).all()
    return rgb[..., :1] if grey else rgb


# --- ink on paper -----------------------------------------------------------------------------


def _paper_ink(page: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Colour distance from the paper, less the noise, and stroke width in pixels, for each of
    `STROKES`."""
    page = ndimage.gaussian_filter(page, (SMOOTH * max(page.shape),) * 2 + (0,))
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
            _stroke_contrast(page[..., c], calm[..., c], light[..., c], max(3, window))
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
    plane: np.ndarray, calm: np.ndarray, light: np.ndarray, window: int
) -> np.ndarray:
    """How much `plane` differs from its paper, of which strokes narrower than `window` are no part.

    `calm` is the plane without specks, which would raise the closing; both are less `light`.
    """
    if _ink_is_brighter(plane, window):
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


# --- the digit among the marks ----------------------------------------------------------------


@dataclass(frozen=True)
class _Mark:
    """A connected piece of ink."""

    mask: np.ndarray  # (H, W) bool, of the whole picture
    box: tuple[slice, slice]
    core: float  # strength inside its strokes
    half_width: float  # of its strokes at their widest, in pixels
    contact: float  # the largest share of a side of the picture it is in touch with
    touched: int  # sides of the picture it is in touch with
    along: float  # the longest touch, as a share of its own extent

    @property
    def height(self) -> int:
        return self.box[0].stop - self.box[0].start

    @property
    def width(self) -> int:
        return self.box[1].stop - self.box[1].start

    @property
    def extent(self) -> int:
        return max(self.height, self.width)

    @property
    def score(self) -> float:
        """How likely it is the digit: large, strong, of thin lines, not along the edge."""
        thin = 1 / (1 + (self.half_width / self.extent / FAT) ** 4)
        inner = 0.3 if self.along > ALONG or self.touched > 1 else 1.0
        return (self.extent * self.core) ** 0.5 * thin * inner


def _marks(strength: np.ndarray) -> list[_Mark]:
    least = max(3.0, LEAST_EXTENT * max(strength.shape))
    candidates = [mark for mark in _label(strength, strength > 0) if mark.extent >= least]
    # A mark's edge is where it falls to a share of its own core: a faint shadow around a strong
    # stroke goes, a faint pencil far from a strong cursor stays.
    mask = np.zeros(strength.shape, bool)
    for mark in candidates:
        mask |= mark.mask & (strength > OWN_CONTRAST * mark.core)
    marks = [mark for mark in _label(strength, mask) if mark.extent >= least / 2]
    return _writing(marks, strength.shape, least)


def _label(strength: np.ndarray, mask: np.ndarray) -> list[_Mark]:
    labels, _ = ndimage.label(mask, np.ones((3, 3)))
    depth = ndimage.distance_transform_edt(np.pad(mask, 1, mode="edge"))[1:-1, 1:-1]
    marks = []
    for index, box in enumerate(ndimage.find_objects(labels), start=1):
        if max(side.stop - side.start for side in box) < 3:
            continue
        piece = labels[box] == index
        whole = np.zeros(mask.shape, bool)
        whole[box] = piece
        core = float(np.quantile(strength[box][piece], 0.8))
        sides = (whole[0], whole[-1], whole[:, 0], whole[:, -1])
        contact = max(float(side.mean()) for side in sides)
        along = max(side.sum() for side in sides) / max(piece.shape)
        half_width = float(depth[box][piece].max())
        touched = sum(bool(side.any()) for side in sides)
        marks.append(_Mark(whole, box, core, half_width, contact, touched, float(along)))
    return marks


def _writing(marks: list[_Mark], shape: tuple[int, int], least: float) -> list[_Mark]:
    """Marks that may be a digit or a part of one."""
    strokes = [mark for mark in marks if mark.half_width <= max(2.5, BLOB * mark.extent)]
    inner = [mark for mark in strokes if not _is_edge(mark, shape) and not _is_frame(mark, marks)]
    # What remains may be nothing but dust: then the mark at the edge was the digit.
    if any(mark.extent >= least for mark in inner):
        return inner
    return strokes if any(mark.extent >= least for mark in strokes) else []


def _is_edge(mark: _Mark, shape: tuple[int, int]) -> bool:
    """Table, shadow or a rule that crosses the picture."""
    if mark.contact > BORDER:
        return True
    touches = [
        (side.start == 0, side.stop == length) for side, length in zip(mark.box, shape, strict=True)
    ]
    across = all(touches[1]) and mark.height < 0.3 * mark.width
    down = all(touches[0]) and mark.width < 0.3 * mark.height
    return across or down


def _is_frame(mark: _Mark, marks: list[_Mark]) -> bool:
    """A drawn box around something: its ink is along the sides of its own box."""
    rows, columns = mark.box
    piece = mark.mask[mark.box]
    rim = max(2, round(0.12 * min(piece.shape)))
    if min(piece.shape) <= 3 * rim or piece[rim:-rim, rim:-rim].sum() > 0.1 * piece.sum():
        return False
    return any(
        other is not mark
        and other.extent > 0.15 * mark.extent
        and rows.start < other.box[0].start
        and other.box[0].stop < rows.stop
        and columns.start < other.box[1].start
        and other.box[1].stop < columns.stop
        for other in marks
    )


def _is_second_digit(mark: _Mark, main: _Mark) -> bool:
    """Of the main mark's height, pen and contrast, and beside or clearly below it."""
    if mark is main or mark.height < ALIKE * main.height or mark.core < ALIKE * main.core:
        return False
    if mark.along > ALONG or mark.touched > main.touched:
        return False
    if not 0.5 < (mark.half_width + 0.5) / (main.half_width + 0.5) < 2:
        return False
    gap_y, gap_x = (
        max(a.start, b.start) - min(a.stop, b.stop) for a, b in zip(mark.box, main.box, strict=True)
    )
    return gap_x >= 0 or gap_y > 0.3 * main.height


def _with_near_strokes(
    digits: list[_Mark], marks: list[_Mark], shape: tuple[int, int]
) -> np.ndarray:
    """The digits and the strokes that belong to them, as one mask."""
    kept = np.zeros(shape, bool)
    for digit in digits:
        kept |= digit.mask
    extent, core = digits[0].extent, digits[0].core
    # What touches the picture's edge where the digit does not is something that goes on outside.
    rest = [
        mark
        for mark in marks
        if mark.extent >= PART * extent
        and mark.core >= ALIKE * core
        and mark.touched <= digits[0].touched
    ]
    far = ndimage.distance_transform_edt(~kept)
    for mark in rest:
        if far[mark.mask].min() <= NEAR * extent:
            kept |= mark.mask
    return kept


# --- the page around it -----------------------------------------------------------------------


def _is_page(page: np.ndarray | None, marked: np.ndarray, kept: np.ndarray) -> bool:
    """Whether what is not the digit is paper: light may fall off over it, but little else.

    Args:
        page: colours (h, w, 3 or 1), None for strokes on transparency.
        marked: where something is as strong as ink; `kept`, where the digit is. Both (h, w).
    """
    width = 4 * float(ndimage.distance_transform_edt(kept)[kept].mean()) - 2  # as `_full_strokes`
    beyond = ndimage.distance_transform_edt(~kept) > 2 + max(1.0, width) / 4
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
    share = resample(kept.astype(np.float32), side).ravel()
    contrast = np.linalg.norm(share @ rest) / share.sum()
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
