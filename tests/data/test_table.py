"""Tables of signals: how they are read, and one sentence for each that is not one."""

import csv
import io
import re

import numpy as np
import pytest
import torch

from densembed.data import DataError, is_available, is_outside, load_dataset, slug, title
from densembed.data.scaling import Scaling
from densembed.data.table import read_rows
from densembed.runs.sweep_plan import read_values
from tests.conftest import is_sentence

LENGTH = 6


def values(count: int = 20) -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, (count, LENGTH)).round(3)


def rows(count: int = 20) -> list[list]:
    classes = ["rest", "move", "fall"]
    return [[*row, classes[k % 3]] for k, row in enumerate(values(count).tolist())]


def text(table: list[list], separator: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(table)
    return file.getvalue()


HEADINGS = [*(f"t{k}" for k in range(LENGTH)), "class"]
GERMAN = text(rows(), ";").replace(".", ",")


@pytest.fixture
def load(tmp_path):
    """Loads a table with some content."""

    def give(content: str | bytes, column: str = ""):
        path = tmp_path / "signals.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_dataset(f"csv:{path}{column}", tmp_path)

    return give


@pytest.fixture
def refused(load):
    def give(content: str | bytes, column: str = "") -> str:
        with pytest.raises(DataError) as error:
            load(content, column)
        assert is_sentence(str(error.value))
        return str(error.value)

    return give


def same(first, second) -> bool:
    return first.classes == second.classes and all(
        torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels)
        for a, b in ((first.train, second.train), (first.test, second.test))
    )


def test_test_signals_that_are_training_signals_are_counted(load):
    table = rows(30)
    data = load(text([HEADINGS, *table]))
    assert data.notes == ()
    known = data.scaling.measured(data.test.images[0, 0].double()).tolist()
    again = [*(round(value, 3) for value in known), data.classes[data.test.labels[0]]]
    assert load(text([HEADINGS, *table, again])).notes == (
        "Of 6 test signals, 1 is the same as a training signal: the test error is not one of new "
        "signals alone.",
    )


@pytest.mark.parametrize("heading", ["id", "Index"])
def test_a_column_that_may_number_the_signals_is_named(load, heading):
    table = [[k, *row] for k, row in enumerate(rows())]
    (note,) = load(text([[heading, *HEADINGS], *table])).notes
    assert note == (
        f"signals.csv: the column '{heading}' is read as a value of the signals. If it numbers "
        "them, delete it, or its heading if it is the first column."
    )
    (note,) = load(text([["", *HEADINGS], *table])).notes
    assert note == "signals.csv: the first column has no heading, so it is not used."


def test_every_fifth_row_of_each_class_is_tested(load):
    data = load(text([HEADINGS, *rows()]))
    assert data.classes == ("fall", "move", "rest")
    assert (data.title, data.input_shape, data.left_out) == ("signals.csv", (1, LENGTH), ())
    labels = np.array([2, 1, 0] * 7)[:20]
    tested = np.zeros(20, bool)
    for label in range(3):
        tested[np.flatnonzero(labels == label)[4::5]] = True
    assert (len(data.train), len(data.test)) == (17, 3) == ((~tested).sum(), tested.sum())
    own = values()
    mean, std = own[~tested].mean(), own[~tested].std()
    for part, chosen in ((data.train, ~tested), (data.test, tested)):
        assert part.labels.tolist() == labels[chosen].tolist()
        expected = ((own[chosen] - mean) / std)[:, None]
        np.testing.assert_allclose(part.images.numpy(), expected, rtol=1e-6, atol=1e-7)
    assert data.scaling.mean == pytest.approx(mean)
    assert data.scaling.std == pytest.approx(std)


@pytest.mark.parametrize(
    "content",
    [
        text(rows()),
        text([HEADINGS, *rows()], ";"),
        text([HEADINGS, *rows()], "\t"),
        GERMAN,
        text([HEADINGS, *rows()]).replace(",", " , "),
        text([HEADINGS, *rows()]).replace("\n", "\r\n\r\n"),
        b"\xef\xbb\xbf" + text([HEADINGS, *rows()]).encode(),
        text([[*map(str, range(LENGTH)), "label"], *rows()]),
        text([[str(k + 1) for k in range(LENGTH)] + ["label"], *rows()]),
        text([HEADINGS, *rows()]).replace("\n", ",\n"),
        text(rows(), "\t").replace("\n", "\t\n"),
        text([[*HEADINGS, "", ""], *([*row, ""] for row in rows())]),
        text([HEADINGS, *([*row, ""] for row in rows())]),
        text([[*HEADINGS, ""], *rows()]),
        "sep=;\n" + GERMAN,
        b"\xef\xbb\xbfSEP=;\r\n" + GERMAN.replace("\n", "\r\n").encode(),
        '"sep=,"\n' + text([HEADINGS, *rows()]),
        "sep=\t\n" + text(rows(), "\t"),
    ],
    ids=[
        *("plain", "semicolons", "tabs", "German", "spaces", "Windows", "mark", "from 0", "from 1"),
        *("separator at the end", "tab at the end", "several at the end", "at the end of rows"),
        *("at the end of headings", "Excel", "Excel, marked", "Excel, quoted", "Excel, tabs"),
    ],
)
def test_other_ways_to_write_the_same(load, content):
    expected = load(text([HEADINGS, *rows()]))
    found = load(content)
    assert same(found, expected)
    assert found.notes == ()


@pytest.mark.parametrize("first", ["id", "Unnamed: 0"])  # as pandas names it
@pytest.mark.parametrize("column", ["", "@class"])
def test_a_named_number_may_stand_before_counted_headings(load, first, column):
    headings = [first, *map(str, range(LENGTH)), "class"]
    data = load(text([headings, *([k, *row] for k, row in enumerate(rows()))]), column)
    assert (len(data.train) + len(data.test), data.input_shape) == (20, (1, LENGTH + 1))
    assert data.classes == ("fall", "move", "rest")
    (note,) = data.notes
    assert f"the column '{first}' is read as a value of the signals." in note


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_mark_within_quotes_separates_no_columns(load, mark):
    named = [[*row[:-1], f"{row[-1]}{mark} a"] for row in rows()]
    quoted = "\n".join(",".join([*map(str, row[:-1]), f'"{row[-1]}"']) for row in named)
    data, expected = load(quoted), load(text(rows()))
    assert torch.equal(data.train.images, expected.train.images)
    assert len(data.classes) == 3


def test_a_class_in_quotes_may_have_two_lines(load):
    named = [[*row[:-1], f'a "big"\n{row[-1]}'] for row in rows()]
    data, expected = load(text(named)), load(text(rows()))
    assert data.classes == tuple(f'a "big"\\n{name}' for name in expected.classes)
    assert torch.equal(data.train.images, expected.train.images)
    spaced = [[*row[:-1], f' "{row[-1]}'] for row in rows()]  # no quotes around a cell
    plain = "\n".join(",".join(map(str, row)) for row in spaced)
    assert load(plain).classes == tuple(f'"{name}' for name in expected.classes)


def test_the_column_of_the_class_has_any_place(load):
    table = [[row[-1], *row[:-1]] for row in [HEADINGS, *rows()]]
    assert same(load(text(table), "@class"), load(text([HEADINGS, *rows()])))


def test_a_column_splits(load):
    parts = ["train", "Test", "train", "train"] * 5
    table = [[part, *row] for part, row in zip(["Split", *parts], [HEADINGS, *rows()], strict=True)]
    data = load(text(table))
    assert (len(data.train), len(data.test), data.input_shape) == (15, 5, (1, LENGTH))
    expected = data.scaling(values()[1::4])
    np.testing.assert_allclose(data.test.images[:, 0].numpy(), expected, rtol=1e-5)


def test_the_row_numbers_of_pandas_are_not_used(load):
    for headings in (HEADINGS, [*map(str, range(LENGTH)), "class"]):
        table = [[k - 1 if k else "", *row] for k, row in enumerate([headings, *rows()])]
        data = load(text(table))
        assert same(data, load(text([HEADINGS, *rows()])))
    (note,) = data.notes
    assert "first column" in note


@pytest.mark.parametrize("place", [0, LENGTH, LENGTH + 1])
@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_headings_may_count_beside_a_column_that_splits(load, place, numbered, first):
    parts = ["train", "test", "train", "train"] * 5
    lines = [[*map(str, range(first, first + LENGTH)), "y"], *rows()]
    for k, (part, line) in enumerate(zip(["split", *parts], lines, strict=True)):
        line.insert(place, part)
        if numbered:
            line.insert(0, k - 1 if k else "")
    data = load(text(lines), "@y")
    assert (len(data.train), len(data.test), data.input_shape) == (15, 5, (1, LENGTH))
    expected = data.scaling(values()[1::4])
    np.testing.assert_allclose(data.test.images[:, 0].numpy(), expected, rtol=1e-5)


def test_many_rows(load):
    data = load(text(rows(100) * 1000))
    assert len(data.train) + len(data.test) == 100_000


def test_the_class_needs_no_heading(load):
    assert same(load(text([[*HEADINGS[:-1], ""], *rows()])), load(text([HEADINGS, *rows()])))


def test_the_line_is_right_below_the_name_of_a_separator(refused):
    wrong = text([HEADINGS, *rows(4), ["1", "x", *rows()[0][2:]]], ";")
    assert re.search("Line 7 .* 'x' in column 2", refused("sep=;\n" + wrong))


WRONG = {
    "value behind the columns": (
        text([[*HEADINGS, ""], *([*row, ""] for row in rows(6)), [*rows()[0], "x"]]),
        "Line 8 of .* has 8 columns, but the first line has 7 and an empty one: all signals",
    ),
    "one column with a separator": ("1,\n2,\n", "Line 1 .* one column"),
    "separator that is not read": ("sep=|\n1|2|a\n", "Line 1 .* one column only: separate the"),
    "empty": ("", "is empty"),
    "blank": ("\n\n", "is empty"),
    "only headings": (text([HEADINGS]), "no signals below"),
    "too short": (text([HEADINGS, *rows(), rows()[0][1:]]), "Line 22 "),
    "text": (text([HEADINGS, *rows(5), ["1", "x", *rows()[0][2:]]]), "Line 7 .* 'x' in column 2"),
    "text in the first row": (text([["1", "x", *rows()[0][2:]], *rows()]), "Line 1 .* 'x'"),
    "missing value": (text([["1", "", *rows()[0][2:]], *rows()]), "Line 1 .* nothing in column 2"),
    "not a number": (text([*rows(), ["nan", *rows()[0][1:]]]), "Line 21 .* 'nan' in column 1"),
    "infinite": (
        text([*rows(), ["1e999", *rows()[0][1:]]]),
        r"Line 21 .* '1e999' in column 1, which is not between −1e\+30 and 1e\+30\.$",
    ),
    "infinite with a decimal comma": (
        text([*rows(), ["-1,5e999", *rows()[0][1:]]], ";").replace(".", ","),
        r"Line 21 .* '-1,5e999' in column 1, which is not between",
    ),
    "the word infinity": (
        text([*rows(), ["inf", *rows()[0][1:]]]),
        "Line 21 .* 'inf' in column 1, where a number is expected",
    ),
    "one line that counts": (
        "0,1,2,3,4,5,6,7,8,9\n",
        "The only line of .* counts from 0, so it is read as headings: if it is a signal, put a "
        "line of headings above it",
    ),
    "one line that counts to a class": ("1,2,3,4,cat\n", "The only line of .* counts from 1"),
    "one line that counts the columns": (",0,1,2,y\n", "has headings, but no signals below"),
    "underscore": (text([*rows(), ["1_0", *rows()[0][1:]]]), "Line 21 .* '1_0'"),
    "thousands": (
        text([*rows(), ["1.234,5", *rows()[0][1:]]], ";"),
        "comma .* line 21 and a point",
    ),
    "quoted": (text([["1,5", *rows()[0][1:]], *rows()]), "Line 1 .* '1,5' in column 1"),
    "no class": (text([*rows(), [*rows()[0][:-1], ""]]), "Line 21 .* no class"),
    "one class": (text([row for row in rows() if row[-1] == "rest"]), "two classes"),
    "one column": ("1\n2\n", "one column"),
    "constant": (text([[1] * LENGTH + [row[-1]] for row in rows()]), "all the same"),
    "tiny": (
        text([[*(k * 1e-35 for _ in row[:-1]), row[-1]] for k, row in enumerate(rows())]),
        "differ too little",
    ),
    "large": (text([[k * 1e35] * LENGTH + [row[-1]] for k, row in enumerate(rows())]), "too large"),
    "huge": (text([[k * 1e306] * LENGTH + [row[-1]] for k, row in enumerate(rows())]), "too large"),
    "constant fraction": (  # whose mean is rounded, so their standard deviation is not 0
        text([[0.1] * LENGTH + [row[-1]] for row in rows()]),
        "all the same",
    ),
    "nearly constant": (
        text([[k * 1e-300] * LENGTH + [row[-1]] for k, row in enumerate(rows())]),
        "differ too little",
    ),
    "huge test value": (
        text(
            [
                ["split", *HEADINGS],
                *(["train", *row] for row in rows()),
                ["test", "1e300", *rows()[0][1:]],
            ]
        ),
        r"Line 22 .* not between −1e\+30 and 1e\+30",
    ),
    "test value far from the others": (
        text(
            [
                ["split", *HEADINGS],
                *(["train", *(x / 1e20 for x in row[:-1]), row[-1]] for row in rows()),
                ["test", "1e25", *rows()[0][1:]],
            ]
        ),
        "Line 22 .* too large, compared with the training signals",
    ),
    "few": (text(rows(6)), "no test signals: a class needs at least 5 rows, and it has 3 classes"),
    "class first": (
        text([[row[-1], *row[:-1]] for row in rows()]),
        "Line 1 .* 'rest' in column 1, where a number is expected. If it is the class, move it to",
    ),
    "class first, below headings": (
        "class,a,b\nmove,1,2\nrest,3,4\n",
        "Line 2 .* 'move' in column 1, where a number is expected. If it is the class, name it, as",
    ),
    "numbers of classes first": (
        text([[k % 2, *row[:-1]] for k, row in enumerate(rows())]),
        "it has [0-9]+ classes in the last column. If the class is in another, move it to",
    ),
    "many classes": (text([[*row[:-1], k] for k, row in enumerate(rows(1200))]), "1,200 classes"),
    "UTF-16": (text(rows()).encode("utf-16"), "not UTF-8"),
    "Latin 1": (text(rows()).replace("move", "läuft").encode("latin-1"), "not UTF-8"),
    "binary": (b"\x00\x01\x02,3\n", "contains the character NUL, so it is no text"),
    "long cell": (f"1,{'x' * 200_000}\n2,b\n", "Line 1 .* is not a table"),
    "quote up to the end": (
        text(rows(10)) + '1,2,3,4,5,6,"rest\n' + text(rows(4)),
        "quote in line 11 .* is not closed",
    ),
    "quote up to the next": (
        "".join(("1,2,a\n", '3,4,"b\n', "5,6,a\n", '7,8,"b"\n', "9,1,a\n")),
        "quote in line 2 .* is not closed",
    ),
    "quote over more than a cell holds": (
        '1,2,a\n\n3,4,"b\n' + "5,6,a\n" * 30_000,
        "quote in line 3 .* is not closed",
    ),
    "quote in the first cell": ('1,2,a\n"3,4,b\n5,6,a\n', "quote in line 2 .* is not closed"),
    "wrong part": (text([["split", *HEADINGS], *(["x", *row] for row in rows())]), "train or test"),
}


@pytest.mark.parametrize(("content", "says"), WRONG.values(), ids=WRONG)
def test_one_sentence_for_each_wrong_table(refused, content, says):
    assert re.search(says, refused(content))


def test_a_column_that_is_not_there_is_named(refused):
    assert "did you mean 'class'?" in refused(text([HEADINGS, *rows()]), "@clas")
    assert "no headings" in refused(text(rows()), "@class")
    twice = [["class", *HEADINGS[1:]], *rows()]
    assert "several columns 'class'" in refused(text(twice), "@class")


def test_a_class_of_the_first_row_only_is_named(load):
    wrong = [[*(k / 10 for k in range(LENGTH)), "class"], *rows()]
    notes = load(text(wrong)).notes
    assert all("'class'" in note and is_sentence(note) for note in notes)
    assert ["first line" in note for note in notes] == [True, False]
    assert "does not cover classes without test signals" in notes[1]


def test_a_first_line_without_values_is_named(load):
    for missing in ("nan", "NA", "?"):
        (note,) = load(text([[missing] * LENGTH + ["rest"], *rows()])).notes
        assert note.startswith("signals.csv: the first line has no numbers")
        assert is_sentence(note)


@pytest.mark.parametrize("start", [0, 1])
def test_a_first_line_that_counts_is_named_if_it_may_be_a_signal(load, start):
    ramp = [str(start + k) for k in range(LENGTH)]
    data = load(text([[*ramp, "rest"], *rows()]))
    assert same(data, load(text(rows())))
    assert data.notes == (
        f"signals.csv: the first line counts from {start}, so it is read as headings and not as a "
        "signal.",
    )
    for sure in ([*ramp, "class"], ["", *ramp, "rest"]):
        table = [sure, *([*range(len(sure) - LENGTH - 1), *row] for row in rows())]
        assert not any("counts" in note for note in load(text(table)).notes)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("index", [False, True])
def test_headings_may_count_the_class_too(load, start, index):
    """As pandas writes a table whose columns have no names."""
    classes = {"rest": str(start + LENGTH), "move": "a", "fall": "b"}
    body = [[*row[:-1], classes[row[-1]]] for row in rows()]
    headings = [start + k for k in range(LENGTH + 1)]
    named = [[*HEADINGS, "class"][-LENGTH - 1 :], *body]
    table = [["", *headings], *([k, *row] for k, row in enumerate(body))]
    data = load(text(table) if index else text([headings, *body]))
    assert same(data, load(text(named)))
    assert len(data.train) + len(data.test) == 20
    assert any("column has no heading" in note for note in data.notes) == index
    assert any(f"counts from {start}, so" in note for note in data.notes) == (not index)


@pytest.mark.parametrize("first", [[], [""]])
def test_headings_that_count_need_no_class(tmp_path, first):
    body = [[k, *row] if first else row for k, row in enumerate(values())]
    table = [[*first, *range(LENGTH)], *body]
    path = tmp_path / "new.csv"
    path.write_text(text(table))
    found = read_rows(path, length=LENGTH)
    np.testing.assert_array_equal(found.values, values())
    (note,) = found.notes
    assert ("has no heading" if first else "counts from 0, so it is read as headings") in note


def test_two_ways_of_writing_a_class_are_one_class(load):
    spelling = {"rest": "caf\u00e9", "move": "cafe\u0301", "fall": "tea"}
    table = [[*HEADINGS[:-1], "anne\u0301e"]] + [[*row[:-1], spelling[row[-1]]] for row in rows()]
    data = load(text(table), "@ann\u00e9e")
    assert data.classes == ("caf\u00e9", "tea")
    assert (len(data.train), len(data.test)) == (17, 3)


def test_one_number_in_two_ways_is_no_two_classes(load, refused):
    def named(*classes: str) -> str:
        return text([[*row[:-1], classes[k % len(classes)]] for k, row in enumerate(rows())])

    assert load(named("0", "1.5", "2")).classes == ("0", "1.5", "2")
    says = refused(named("0", "1", "1.0"))
    assert (
        says == "The classes '1' and '1.0' of signals.csv are the same number: write it in one way."
    )


def test_long_classes_are_not_taken_for_one(load, refused):
    def named(length: int) -> str:
        ends = {"rest": "a", "move": "b", "fall": "c"}
        return text([[*row[:-1], "x" * (length - 1) + ends[row[-1]]] for row in rows()])

    assert len(load(named(200)).classes) == 3
    assert "Line 1 of signals.csv has a class of more than 200 characters" in refused(named(201))


def test_classes_without_test_or_training_signals(load, refused):
    few = [[*row[:-1], "rare" if k < 4 else "usual"] for k, row in enumerate(rows())]
    data = load(text(few))
    assert data.tested == ("usual",)
    (note,) = data.notes
    assert note == "The test error does not cover classes without test signals: 'rare'."
    headings = [*HEADINGS, "split"]
    split = [[*row, "test" if row[-1] == "fall" else "train"] for row in rows()]
    says = refused(text([headings, *split]))
    assert "'fall' of signals.csv has test signals but no training signals" in says


@pytest.mark.parametrize("column", ["m/s", "you@home", "a@b/c@d"])
def test_a_column_of_any_name(load, column):
    table = [[row[-1], *row[:-1]] for row in [[*HEADINGS[:-1], column], *rows()]]
    data = load(text(table), f"@{column}")
    assert same(data, load(text([HEADINGS, *rows()])))
    for listed in ([data.name, "digits"], [data.name, data.name], ["mnist", f"{data.name}, or b"]):
        assert read_values("dataset", ",".join(listed)) == listed


def test_names(tmp_path):
    (tmp_path / "a@b.csv").write_text(text(rows()))
    (tmp_path / "Own data.csv").write_text(text(rows()))
    assert load_dataset("csv:a@b.csv", tmp_path).title == "a@b.csv"
    assert load_dataset("csv:Own data.csv", tmp_path).name == "csv:Own data.csv"
    assert slug("csv:Own data.csv", tmp_path) == "own-data-csv" == slug(title("csv:Own data.csv"))
    assert is_available("csv:Own data.csv", tmp_path)
    assert not is_available("csv:other.csv", tmp_path)
    assert not is_outside("csv:Own data.csv", tmp_path)
    assert is_outside("csv:/etc/passwd", tmp_path)
    assert is_outside("csv:../other.csv", tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    (data / "link.csv").symlink_to(tmp_path / "a@b.csv")  # by whom the folder belongs to
    assert not is_outside("csv:link.csv", data)
    assert is_outside(f"csv:{data}/../a@b.csv", data)
    for name, says in (
        ("csv:", "path of the table is missing"),
        ("csv:@class", "path of the table is missing"),
        ("csv:@home/other.csv", "'@home/other.csv' was not found"),
        ("csv:other.csv", "not found"),
        (f"csv:{tmp_path}", "is a folder"),
        ("csv:/dev/zero", "table '/dev/zero' cannot be read (Not a regular file): check the path"),
        (f"csv:{tmp_path}/a@b.csv/c.csv", "cannot be read (Not a directory): check the path"),
        ("cvs:x", "csv:PATH for a table"),
    ):
        with pytest.raises(DataError) as error:
            load_dataset(name, tmp_path)
        assert says in str(error.value)
        assert "download" not in str(error.value)
        assert is_sentence(str(error.value))


def test_a_file_that_changes_is_read_again(load):
    first = load(text(rows()))
    assert load(text(rows(25))).digest != first.digest


def test_signals_of_a_length_may_have_no_class(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(text([row[:-1] for row in rows()]))
    found = read_rows(path, length=LENGTH)
    assert (found.classes, found.lines) == ([], list(range(1, 21)))
    np.testing.assert_array_equal(found.values, values())


def test_a_column_named_as_the_class_is_no_value(tmp_path):
    path = tmp_path / "new.csv"
    content = text([["a", "b", "state"], [1, 2, 3], [4, 5, 6]])
    path.write_text(content)
    found = read_rows(path, column="state", length=3)
    np.testing.assert_array_equal(found.values, [[1, 2], [4, 5]])
    assert found.classes == ["3", "6"]
    path.write_text(content.replace("state", "c"))
    assert read_rows(path, column="state", length=3).values.shape == (2, 3)


def test_another_scaling(load):
    data, other = load(text(rows())), Scaling(mean=-1.0, std=4.0)
    found = data.scaled_by(other)
    for own, changed in ((data.train, found.train), (data.test, found.test)):
        measured = own.images.double() * data.scaling.std + data.scaling.mean
        torch.testing.assert_close(changed.images.double(), (measured + 1) / 4, rtol=0, atol=1e-6)
    assert found.scaling == other
    assert data.scaled_by(data.scaling) is data
    with pytest.raises(DataError, match="too large, compared with the training signals of the mo"):
        data.scaled_by(Scaling(mean=1e5, std=1e-30))
