"""A CSV file of signals as a data set: one signal per row, with its class in one of the columns.

    t0,t1,t2,class               0,12;0,5;-0,31;rest
    0.12,0.5,-0.31,rest          1,4;0,92;0,07;move
    1.4,0.92,0.07,move

Columns are separated by commas, semicolons or tabs; with semicolons and tabs, numbers may have
decimal commas. A first line such as `sep=;` names the separator, as for Excel, and empty columns at
the end are not used. The class is in the last column, or in the one that is named after an @ in
`csv:PATH@COLUMN`. A column with the heading `split` assigns rows to `train` or `test`; without one,
every fifth row of each class is for testing, so that rows may be added to the end of the file.
Values are standardised by the mean and the standard deviation of the training signals.
"""

import csv
import io
import math
import os
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from densembed.data.dataset import Dataset, Split, known_notes
from densembed.data.names import MAX_CLASSES, MAX_NAME, TABLE, DataError
from densembed.data.scaling import LARGEST, SMALLEST, Scaling
from densembed.files import read_regular
from densembed.text import closest, counted, listed, natural, printable, quoted

MAX_BYTES = 2**29
MAX_LENGTH = 16_384
TEST_SHARE = 5
"""Without a column `split`, one row of each class in so many is for testing."""
CLASS, SPLIT, NUMBER = "class", "split", "number"
"""What columns beside the values have: the class, the part of the data, the number of the row."""
PARTS = ("train", "test")
MISSING = {"", "-", "?", "inf", "-inf", "na", "nan", "n/a", "none", "null"}
"""Cells of a signal without values, which are no headings."""
NUMBERS = {"id", "index", "no", "no.", "nr", "nr.", "number", "row", "#", "unnamed: 0"}
"""Headings of a column that may number the signals."""
SEPARATORS = ";\t,"
"""In the order in which they are looked for: a comma may be a decimal comma."""
MARKED = re.compile(rf'"?sep=([{SEPARATORS}])"?[{SEPARATORS} ]*\r?(\n|$)', re.IGNORECASE)
"""The first line of a file in which Excel names what separates the columns."""
EXAMPLE = "csv:signals.csv, or csv:signals.csv@COLUMN for the column of the class"
NAMED = "name it, as in csv:signals.csv@COLUMN"
MOVE = f"move it to the last column, or put a line of headings above the columns and {NAMED}"
"""What to do if the class is in another column: the first for a table with headings."""


@dataclass(frozen=True)
class SignalTable:
    """The data set `csv:PATH` or `csv:PATH@COLUMN`.

    A relative PATH refers to the working directory or, if it does not exist there, to the data
    folder, as for a folder of images.
    """

    name: str
    path: Path
    column: str

    @classmethod
    def parse(cls, name: str, data_dir: Path | None = None) -> "SignalTable":
        """The table for the name of a data set.

        Both the path and the column may contain an `@`: the path is the longest one that exists.
        If none does, the text after the last `@` is the column unless it contains a slash. Raises
        DataError if the path is missing.
        """
        whole = name.removeprefix(TABLE)
        at = [match.start() for match in re.finditer("@", whole)][::-1]
        splits = [(whole, ""), *((whole[:k], whole[k + 1 :].strip()) for k in at)]
        tables = [cls(name, Path(os.path.expanduser(path)), column) for path, column in splits]
        likely = 1 if at and "/" not in whole[at[0] :] else 0
        chosen = next((k for k, one in enumerate(tables) if one.available(data_dir)), likely)
        if "\0" in whole or not splits[chosen][0].strip():
            raise DataError(f"The path of the table is missing: write {EXAMPLE}.")
        return tables[chosen]

    def root(self, data_dir: Path) -> Path:
        """The path of the file, which need not exist."""
        inside = data_dir / self.path
        return inside if not os.path.isfile(self.path) and os.path.isfile(inside) else self.path

    def available(self, data_dir: Path | None) -> bool:
        return os.path.isfile(self.path if data_dir is None else self.root(data_dir))

    def title(self, data_dir: Path) -> str:
        """The display name, which never contains the parent folders."""
        return printable(self.path.name)[:MAX_NAME]

    def load(self, data_dir: Path) -> Dataset:
        """Read the signals.

        Raises DataError if the file does not exist or has no signals of two classes, with one
        sentence that names the line.
        """
        root = self.root(data_dir)
        if os.path.isdir(root):
            raise DataError(f"{quoted(self.path)} is a folder: name a file, like {EXAMPLE}.")
        try:
            status = os.stat(root)
            stamp = status.st_size, status.st_mtime_ns
            return _load(self.name, root.absolute(), self.column, self.title(data_dir), stamp)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            trouble = "was not found" if missing else f"cannot be read ({error.strerror})"
            raise DataError(
                f"The table {quoted(self.path)} {trouble}: check the path, or name another file, "
                f"like {EXAMPLE}."
            ) from error


@lru_cache(maxsize=2)
def _load(name: str, path: Path, column: str, title: str, stamp: tuple[int, int]) -> Dataset:
    rows = read_rows(path, column or None)
    if (classes := len(set(rows.classes))) < 2:
        raise DataError(
            f"All signals of {title} are of the class {quoted(rows.classes[0][:40])}, but a model "
            f"needs two classes. If the class is in another column, {rows.advice}."
        )
    if classes > MAX_CLASSES:
        raise DataError(
            f"{title} has {classes:,} classes, more than {MAX_CLASSES:,}: if the class is in "
            f"another column, {rows.advice}."
        )
    names = tuple(sorted(set(rows.classes), key=natural))
    values: dict[float, str] = {}
    for each in names:
        if (value := _number(each)) is None:
            continue
        if (other := values.setdefault(value, each)) != each:
            raise DataError(
                f"The classes {quoted(other)} and {quoted(each)} of {title} are the same number: "
                "write it in one way."
            )
    number = {each: k for k, each in enumerate(names)}
    labels = torch.tensor([number[each] for each in rows.classes])
    tested = torch.tensor(rows.tested if rows.tested else _every_fifth(rows.classes))
    if tested.all() or not tested.any():
        part, mark = ("training", "train") if tested.all() else ("test", "test")
        remedy = (
            f"write {mark} in the column {SPLIT} of some rows"
            if rows.tested
            else f"a class needs at least {TEST_SHARE} rows, and it has {classes:,} classes"
        )
        if not (rows.tested or column):
            remedy += f" in the last column. If the class is in another, {rows.advice}"
        raise DataError(f"{title} has no {part} signals: {remedy}.")
    untrained, untested = (
        [each for k, each in enumerate(names) if k not in set(labels[part].tolist())]
        for part in (~tested, tested)
    )
    if untrained:
        raise DataError(
            f"The class {quoted(untrained[0])} of {title} has test signals but no training "
            f"signals: give some of its rows the part train in the column {SPLIT}."
        )
    if untested:
        rows.notes.append(
            f"The test error does not cover classes without test signals: {listed(untested)}."
        )
    training = rows.values[~tested.numpy()]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(training.mean()), float(training.std())
    constant = training.min() == training.max()  # of which std is not 0 if the mean is rounded
    if constant or not (SMALLEST <= std <= LARGEST and abs(mean) <= LARGEST):
        reason = "differ too little" if std < SMALLEST else "are too large"
        reason = "are all the same" if constant else reason
        raise DataError(f"The values of the training signals of {title} {reason}.")
    scaling = Scaling(mean=mean, std=std)
    inputs = as_inputs(rows, scaling, title)
    rows.notes.extend(known_notes(inputs[~tested], inputs[tested]))
    return Dataset(
        name=name,
        title=title,
        classes=names,
        train=Split(inputs[~tested], labels[~tested]),
        test=Split(inputs[tested], labels[tested]),
        notes=tuple(rows.notes),
        scaling=scaling,
    )


def as_inputs(rows: "Rows", scaling: Scaling, title: str) -> torch.Tensor:
    """The signals of a table as inputs of a model, (N, 1, L).

    Raises DataError for a value that is too large, as it is or scaled.
    """
    with np.errstate(over="ignore"):
        inputs = scaling(rows.values)
    fits = (np.maximum(abs(inputs), abs(rows.values)) <= LARGEST).all(1)
    if not fits.all():
        line = f"Line {rows.lines[int(fits.argmin())]:,} of {title}"
        if abs(rows.values).max() > LARGEST:
            raise DataError(f"{line} has a value that is not between −{LARGEST:g} and {LARGEST:g}.")
        raise DataError(
            f"{line} has a value that is too large, compared with the training signals: check its "
            "unit."
        )
    return torch.from_numpy(inputs.astype(np.float32)).unsqueeze(1)


def _every_fifth(classes: Sequence[str]) -> list[bool]:
    seen: Counter[str] = Counter()
    tested = []
    for each in classes:
        seen[each] += 1
        tested.append(seen[each] % TEST_SHARE == 0)
    return tested


class ColumnError(DataError):
    """A table does not have the column that was named for the class."""


@dataclass
class Rows:
    """The rows of a table: `values` (count, length) float64, and what else they have.

    `classes` and `tested` are empty if the table has no such column. `lines` are the numbers of
    the rows in the file, and `advice` is what to do if the class is in another column.
    """

    values: np.ndarray
    classes: list[str]
    tested: list[bool]
    lines: list[int]
    notes: list[str] = field(default_factory=list)
    advice: str = NAMED

    @property
    def has_numbers_as_classes(self) -> bool:
        """Whether every class is a number, so that the last column may be a value instead."""
        return bool(self.classes) and all(_number(each) is not None for each in set(self.classes))


def read_rows(path: Path, column: str | None = None, length: int | None = None) -> Rows:
    """The signals of a file.

    Args:
        column: the heading of the class, by default the last column.
        length: of signals that may have no class: rows of just so many values have none.

    Raises DataError with one sentence for a file that is not such a table.
    """
    title = printable(path.name)
    table, separator = _table(path, title)
    first_line, first = next(table, (0, []))
    if not first:
        raise DataError(f"{title} is empty.")
    second_line, second = next(table, (0, []))
    table = chain([(second_line, second)] if second else [], table)
    # What a separator at the end of each line, or cells that were emptied, leave is no column. One
    # without a heading is a column if the line below has a value in it.
    width = min(len(first), max(_filled(first), _filled(second)))
    ends = " and an empty one" if width < len(first) else ""
    first = first[:width]
    headings = _headings(first)
    if width < 2:
        raise DataError(
            f"Line {first_line:,} of {title} has one column only: separate the columns by commas, "
            "semicolons or tabs."
        )
    places = _places(headings, width, column, length, title)
    used = [k for k in range(width) if k not in places.values()]
    if not 1 <= len(used) <= MAX_LENGTH:
        raise DataError(
            f"A signal has 1 to {MAX_LENGTH:,} values; those of {title} have {len(used):,}."
        )
    found, numbers = Rows(np.empty(0), [], [], []), array("d")
    found.advice = NAMED if headings else MOVE
    comma = point = 0  # the first lines with numbers that have them
    for line, row in table if headings else chain([(first_line, first)], table):
        row = row[: max(width, _filled(row))]
        if len(row) != width:
            raise DataError(
                f"Line {line:,} of {title} has {counted(len(row), 'column')}, but the first line "
                f"has {width:,}{ends}: all signals need the same length."
            )
        cells = [row[place] for place in used]
        joined = " ".join(cells)
        if "," in joined and separator != ",":  # else it may be a thousands separator
            comma = comma or line
            cells = [cell.replace(",", ".") for cell in cells]
        if "." in joined:
            point = point or line
        if comma and point:
            raise DataError(
                f"{title} has a comma in a number in line {comma:,} and a point in one in line "
                f"{point:,}: write all decimals with a point, or all with a comma."
            )
        own = [number for cell in cells if (number := _number(cell)) is not None]
        if len(own) < len(used):
            wrong, cell = next(
                pair for pair in zip(used, cells, strict=True) if _number(pair[1]) is None
            )
            if _is_infinite(cell):
                raise DataError(
                    f"Line {line:,} of {title} has {_shown(row[wrong])} in column {wrong + 1:,}, "
                    f"which is not between −{LARGEST:g} and {LARGEST:g}."
                )
            moved = CLASS in places and not column and _number(row[places[CLASS]]) is not None
            raise DataError(
                f"Line {line:,} of {title} has {_shown(row[wrong])} in column {wrong + 1:,}, where "
                "a number is expected." + (f" If it is the class, {found.advice}." if moved else "")
            )
        numbers.extend(own)
        found.lines.append(line)
        if CLASS in places:
            found.classes.append(_class(row, places[CLASS], line, title))
        if SPLIT in places:
            found.tested.append(_is_tested(row[places[SPLIT]], line, title))
    if not found.lines:
        if start := _count_start(headings, used, places):
            raise DataError(
                f"The only line of {title} counts from {start}, so it is read as headings: if it "
                "is a signal, put a line of headings above it."
            )
        raise DataError(f"{title} has headings, but no signals below them.")
    found.values = np.frombuffer(numbers).reshape(-1, len(used))
    if NUMBER in places:
        found.notes.append(f"{title}: the first column has no heading, so it is not used.")
    if names := [headings[k] for k in used if headings and headings[k].casefold() in NUMBERS]:
        found.notes.append(
            f"{title}: the column {quoted(names[0])} is read as a value of the signals. If it "
            "numbers them, delete it, or its heading if it is the first column."
        )
    if headings and (reason := _like_a_signal(headings, used, places, found.classes)):
        found.notes.append(
            f"{title}: the first line {reason}, so it is read as headings and not as a signal."
        )
    if found.classes and not headings and found.classes.count(found.classes[0]) == 1:
        found.notes.append(
            f"{title}: the first line is read as a signal of the class "
            f"{quoted(found.classes[0][:40])}, which no other line has. Headings that are numbers "
            "are recognised if they count from 0 or 1."
        )
    return found


def _filled(row: list[str]) -> int:
    """The number of cells up to the last that is not empty."""
    return next((count for count in range(len(row), 0, -1) if row[count - 1]), 0)


def _like_a_signal(
    headings: list[str], used: list[int], places: dict[str, int], classes: list[str]
) -> str:
    """What makes headings of a line that may be a signal; "" if it is none."""
    if {headings[k].casefold() for k in used} <= MISSING:
        return "has no numbers"
    start = _count_start(headings, used, places)
    fits = CLASS not in places or _name(headings[places[CLASS]]) in classes
    return f"counts from {start}" if start and fits else ""


def _count_start(headings: list[str], used: list[int], places: dict[str, int]) -> str:
    """The first of headings that count and may be a signal, else ""."""
    first = headings[used[0]]
    counts = NUMBER not in places and _number(first.replace(",", ".")) is not None
    return first if counts else ""


def _places(
    headings: list[str], width: int, column: str | None, length: int | None, title: str
) -> dict[str, int]:
    """The columns that are not values of the signal."""
    places: dict[str, int] = {}
    lowered = [heading.casefold() for heading in headings]
    if SPLIT in lowered and (column or "").casefold() != SPLIT:
        places[SPLIT] = lowered.index(SPLIT)
    if headings and not headings[0] and width > 2:
        places[NUMBER] = 0  # as pandas writes it
    # A table to be read may lack the class, but a column that is named as the class is no value.
    named = bool(column) and _name(column or "") in map(_name, headings)
    if named or width - len(places) != length:
        rest = [k for k in range(width) if k not in places.values()]
        places[CLASS] = _named(column, headings, title) if column else rest[-1]
    return places


def _table(path: Path, title: str) -> tuple[Iterator[tuple[int, list[str]]], str]:
    """The rows that are not blank with their line numbers, and what separates their columns."""
    data = read_regular(path, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"{title} has more than {MAX_BYTES >> 20} MiB: keep fewer rows or digits.")
    try:
        text = data.decode("utf-8-sig")  # spreadsheets begin with a mark
    except UnicodeDecodeError as error:
        raise DataError(f"{title} is not UTF-8 text: save the table as CSV in UTF-8.") from error
    if "\0" in text:
        raise DataError(
            f"{title} contains the character NUL, so it is no text, or text in UTF-16: save the "
            "table as CSV in UTF-8."
        )
    text, separator = without_mark(text)
    if separator:
        return _stripped(split_rows(text, separator, title)), separator
    start = re.search(r".*\S.*", text)
    bare = re.sub(r'"[^"]*"', "", start[0]) if start else ""  # cells in quotes may contain any
    separator = next((each for each in SEPARATORS if each in bare), ",")
    return _stripped(split_rows(text, separator, title)), separator


def _stripped(table: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    for line, row in table:
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield line, cells


def without_mark(text: str) -> tuple[str, str]:
    """A table in which a blank line replaces Excel's `sep=;`, and the separator, "" if not named.

    >>> without_mark("sep=;\\n1,5;rest")
    ('\\n1,5;rest', ';')
    """
    mark = MARKED.match(text)
    return (f"\n{text[mark.end() :]}", mark[1]) if mark else (text, "")


def split_rows(text: str, separator: str, title: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, and the number of its last line, for a file called `title`.

    Raises DataError for a quote that is not closed, which would hide the rows after it.
    """
    lines: list[str] = []  # of one row: a cell in quotes may have several

    def taken() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    reader = csv.reader(taken(), delimiter=separator)
    try:
        for row in reader:
            if len(lines) > 1:
                # The same, but an error if the quote ends in the middle of a cell or nowhere.
                list(csv.reader(lines, delimiter=separator, strict=True))
            lines.clear()
            yield reader.line_num, row
    except csv.Error as error:
        if len(lines) > 1:
            raise DataError(
                f"The quote in line {reader.line_num - len(lines) + 1:,} of {title} is not closed: "
                "end the cell with a second quote, or remove the first."
            ) from error
        raise DataError(f"Line {reader.line_num:,} of {title} is not a table: {error}.") from error


def _headings(row: list[str]) -> list[str]:
    """The first row if it has headings, else nothing.

    Headings are no numbers, or those that are numbers count from 0 or 1.
    """
    numbers = [_number(cell.replace(",", ".")) for cell in row]
    found = [number for number in numbers if number is not None]
    count = len(found)
    counted = count > 1 and found in ([*range(count)], [*range(1, count + 1)])
    return row if not found or counted else []


def _named(column: str, headings: list[str], title: str) -> int:
    if not headings:
        raise ColumnError(
            f"{title} has no headings, so it has no column {quoted(column[:40])}: put a line of "
            "headings above the columns."
        )
    column, headings = _name(column), [_name(heading) for heading in headings]
    if headings.count(column) != 1:
        meant = closest(column, headings)
        number = "several columns" if column in headings else "no column"
        raise ColumnError(
            f"{title} has {number} {quoted(column[:40])}"
            + (f" (did you mean {quoted(meant)}?)." if meant and meant != column else ".")
        )
    return headings.index(column)


def _number(text: str) -> float | None:
    """The number that a cell has, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _is_infinite(text: str) -> bool:
    """Whether a cell has a number that is too large for a float; "inf" has none."""
    try:
        return math.isinf(float(text)) and any(map(str.isdigit, text)) and "_" not in text
    except ValueError:
        return False


def _shown(text: str) -> str:
    return quoted(text[:40]) if text else "nothing"


def _class(row: list[str], place: int, line: int, title: str) -> str:
    if not row[place]:
        raise DataError(f"Line {line:,} of {title} has no class in column {place + 1:,}.")
    if len(name := _name(row[place])) > MAX_NAME:
        raise DataError(
            f"Line {line:,} of {title} has a class of more than {MAX_NAME} characters: shorten it, "
            f"or name the column of the class, as in {EXAMPLE}."
        )
    return name


def _name(cell: str) -> str:
    """A class or a heading. The two ways of writing é as Unicode are one name."""
    return unicodedata.normalize("NFC", printable(cell))


def _is_tested(part: str, line: int, title: str) -> bool:
    if part.casefold() not in PARTS:
        raise DataError(
            f"Line {line:,} of {title} has {_shown(part)} in the column {SPLIT}, where train or "
            "test is expected."
        )
    return part.casefold() == "test"
