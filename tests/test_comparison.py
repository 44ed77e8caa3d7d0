"""Where two models disagree, against the textbook's formula and a loop."""

from math import comb

import numpy as np
import pytest

from densembed.comparison import answers, disagreement, facts
from densembed.data import as_input


def test_answers_are_the_networks(trained, digits):
    images = digits.test.images[:700]  # more than a batch
    for snapshot in (0, -1):
        expected = [trained.model(snapshot)(as_input(x[None])).argmax().item() for x in images]
        assert answers(trained, images, snapshot).tolist() == expected


@pytest.mark.parametrize(("b", "c"), [(0, 0), (5, 5), (1, 9), (12, 3), (0, 6), (40, 61)])
def test_mcnemars_test_is_the_binomials_two_tails(b, c):
    labels = np.zeros(b + c + 7, int)
    first, second = labels.copy(), labels.copy()
    second[:b] = 1
    first[b : b + c] = 2
    first[-3:] = second[-3:] = 4
    found = disagreement(first, second, labels)
    n, k = b + c, min(b, c)
    expected = min(1, 2 * sum(comb(n, j) for j in range(k + 1)) / 2**n)
    assert found.p == pytest.approx(expected)
    assert found.first_only.tolist() == list(range(b))
    assert found.second_only.tolist() == list(range(b, b + c))
    assert (found.both, found.neither) == (4, 3)


def test_facts_of_a_checkpoint(trained):
    found = facts(trained)
    assert found["Parameters"] == f"{sum(p.numel() for p in trained.model().parameters()):,}"
    assert found["Epochs"] == "3 of 3"
    assert found["Learning rate"] == "at most 0.05"
    assert all(found.values())
