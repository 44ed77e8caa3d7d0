"""Finds the digits among the marks of ink in an image."""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

# Every length is a share of the picture's `side_length` unless it says otherwise.
OWN_CONTRAST = 0.4  # of a stroke's own core, where its edge lies
LEAST_EXTENT = 0.03  # smaller marks are specks
BLOB = 0.3  # half-width over extent: a disc has 0.5, the fattest MNIST digits 0.2
FAT = 0.2  # half-width over extent at which a mark counts half as a digit
ALONG = 0.4  # of its own extent: a mark this far along the picture's edge is likely no digit
BORDER = 0.5  # of a side: marks in touch with more of it are a frame, a shadow or the table
NEAR = 0.3  # of the digit's extent: separate strokes of one digit are this near (5's bar)
PART = 0.12  # of the digit's extent: smaller marks next to it are specks
ALIKE = 0.5  # a mark with at least this share of the digit's height and contrast is another digit
SAME_ROW = 0.5  # of the lower height: digits that overlap this far in height are in one row
STRIP = 3  # a picture more than this many times as long as wide is a row or a column of digits
LONGEST = 8  # bounds the number of marks that are no specks, hence the time


@dataclass(frozen=True)
class Mark:
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


def side_length(shape: tuple[int, ...]) -> float:
    """The length in pixels that others are shares of, for a picture of this (height, width, ...).

    It is the longer side. In a strip, the digits of a row or a column are small beside that one, so
    it is `STRIP` times the shorter side, if that is not less than the longer one / `LONGEST`.

    >>> side_length((100, 200)), side_length((100, 1200)), side_length((100, 4000))
    (200, 300, 500.0)
    """
    shorter, longer = sorted(shape[:2])
    return max(min(longer, STRIP * shorter), longer / LONGEST)


def find_marks(strength: np.ndarray) -> tuple[list[Mark], list[Mark]]:
    """Marks that may be digits or parts of them, and the lines of ruled paper."""
    least = max(3.0, LEAST_EXTENT * side_length(strength.shape))
    candidates = [mark for mark in _label(strength, strength > 0) if mark.extent >= least]
    # A mark's edge is where it falls to a share of its own core: a faint shadow around a strong
    # stroke goes, a faint pencil far from a strong cursor stays. A large shadow hides the core of
    # the stroke in it, which is known after a first pass.
    candidates = _within(strength, candidates)
    candidates = _within(strength, candidates)
    marks = [mark for mark in candidates if mark.extent >= least / 2]
    return _writing(marks, strength.shape, least), [mark for mark in marks if _is_rule(mark)]


def _within(strength: np.ndarray, marks: list[Mark]) -> list[Mark]:
    """The marks without what is much fainter than their cores."""
    mask = np.zeros(strength.shape, bool)
    for mark in marks:
        mask |= mark.mask & (strength > OWN_CONTRAST * mark.core)
    return _label(strength, mask)


def _label(strength: np.ndarray, mask: np.ndarray) -> list[Mark]:
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
        marks.append(Mark(whole, box, core, half_width, contact, touched, float(along)))
    return marks


def _writing(marks: list[Mark], shape: tuple[int, int], least: float) -> list[Mark]:
    """Marks that may be a digit or a part of one."""
    strokes = [mark for mark in marks if mark.half_width <= max(2.5, BLOB * mark.extent)]
    inner = [mark for mark in strokes if not _is_edge(mark, shape) and not _is_frame(mark, marks)]
    # What remains may be nothing but dust: then the mark at the edge was the digit.
    if any(mark.extent >= least for mark in inner):
        return inner
    return strokes if any(mark.extent >= least for mark in strokes) else []


def _is_edge(mark: Mark, shape: tuple[int, int]) -> bool:
    """Table, shadow or a rule that crosses the picture."""
    if mark.contact > BORDER:
        return True
    touches = [
        (side.start == 0, side.stop == length) for side, length in zip(mark.box, shape, strict=True)
    ]
    across = all(touches[1]) and mark.height < 0.3 * mark.width
    down = all(touches[0]) and mark.width < 0.3 * mark.height
    return across or down


def _is_rule(mark: Mark) -> bool:
    """A line that comes in from an edge, as of ruled paper."""
    flat = 0.3
    return mark.touched > 0 and min(mark.height, mark.width) < flat * mark.extent


def _is_frame(mark: Mark, marks: list[Mark]) -> bool:
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


def is_second_digit(mark: Mark, main: Mark) -> bool:
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


def with_near_strokes(digits: list[Mark], marks: list[Mark]) -> list[np.ndarray]:
    """The mask of each digit with the separate strokes that belong to it."""
    masks = [digit.mask.copy() for digit in digits]
    main = digits[0]
    far = [ndimage.distance_transform_edt(~digit.mask) for digit in digits]
    for mark in marks:
        # What touches the picture's edge where the digit does not goes on outside of the picture.
        if (
            any(mark is digit for digit in digits)
            or mark.extent < PART * main.extent
            or mark.core < ALIKE * main.core
            or mark.touched > main.touched
        ):
            continue
        distances = [float(each[mark.mask].min()) for each in far]
        nearest = int(np.argmin(distances))
        if distances[nearest] <= NEAR * main.extent:
            masks[nearest] |= mark.mask
    return masks


def in_reading_order(digits: list[Mark]) -> list[Mark]:
    """Row by row from the top, each row from the left."""
    rows: list[list[Mark]] = []
    for digit in sorted(digits, key=lambda each: each.box[0].start + each.box[0].stop):
        if rows and _overlap(digit, rows[-1][-1]) >= SAME_ROW:
            rows[-1].append(digit)
        else:
            rows.append([digit])
    return [each for row in rows for each in sorted(row, key=lambda each: each.box[1].start)]


def _overlap(one: Mark, other: Mark) -> float:
    """The common height, as a share of the lower one."""
    (a, _), (b, _) = one.box, other.box
    return (min(a.stop, b.stop) - max(a.start, b.start)) / min(one.height, other.height)
