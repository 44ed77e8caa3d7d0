"""Names as people read them."""

import os

import pytest

from densembed.markup import one_line
from densembed.text import counted, in_seconds, natural, printable, quoted


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("photos/Käse 猫.png", "photos/Käse 猫.png"),
        (b"caf\xe9.png", r"caf\xe9.png"),
        (b"\xff\xfe", r"\xff\xfe"),
        ("two\nlines\x1b[31m", r"two\nlines\x1b[31m"),
        ("\ud800", r"\ud800"),
        ("line\u2028", r"line\u2028"),
    ],
)
def test_any_name_is_printable(name, shown):
    assert printable(name) == shown
    assert printable(os.fsdecode(name)).encode().decode() == shown


def test_a_name_of_any_length_leaves_the_sentence_readable():
    """The sentence about a folder that was not found had all the letters of its path."""
    assert quoted("a" * 300) == f"'{'a' * 300}'"
    assert quoted("ab" * 2500) == f"'{'ab' * 150}…'"
    assert quoted(b"\xff" * 300) == "'" + r"\xff" * 75 + "…'"


def test_numbers_are_in_order():
    names = [str(n) for n in range(1, 13)]
    assert sorted(sorted(names), key=natural) == names
    assert sorted(["b", "a10", "a2", "10", "a", ""], key=natural) == [
        "",
        "10",
        "a",
        "a2",
        "a10",
        "b",
    ]
    assert sorted(["01", "1"], key=natural) == ["01", "1"]
    signed = ["-10", "-2", "-1.5", "0", "3", "20"]
    assert sorted(sorted(signed), key=natural) == signed
    numbers = ["0.5", "1", "1.25", "1.5", "1.50", "2", "10.0", "11"]
    assert sorted(sorted(numbers), key=natural) == numbers
    versions = ["1.2.9", "1.2.10", "a1.2", "a1.10"]
    assert sorted(sorted(versions), key=natural) == versions


@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u200f"])
def test_no_text_turns_its_neighbours_around(mark):
    assert mark not in printable(f"a{mark}b")
    assert mark not in one_line(f"a{mark}b")


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "epoch", "0 epochs"),
        (1, "epoch", "1 epoch"),
        (1000, "epoch", "1,000 epochs"),
        (1, "density", "1 density"),
        (100, "density", "100 densities"),
        (2, "class", "2 classes"),
    ],
)
def test_numbers_of_things(number, noun, words):
    assert counted(number, noun) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (0.0123, "0.012 s"), (0.5, "0.5 s"), (1.04, "1.0 s"), (1234.5, "1,234.5 s")],
)
def test_durations(seconds, words):
    assert in_seconds(seconds) == words
