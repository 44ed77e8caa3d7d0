"""Errors of members."""

from statistics import stdev

from densembed.training import Errors


def test_mean_deviation_and_typical_member():
    several = Errors([9.0, 10.0, 11.5, 17.0])
    assert several.mean == 11.875
    assert several.deviation == stdev(several.values)
    assert several.typical == 2
    assert Errors([4.0]).deviation == 0.0
    assert Errors([4.0]).text(images=1) == "4.00 % of 1 test image"
    assert not Errors([])
