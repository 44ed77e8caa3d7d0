"""Test errors of several members of a model, and how they are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from densembed.text import counted


@dataclass(frozen=True)
class Errors:
    """Test errors in percent, one per member.

    >>> errors = Errors([1.5, 1.7, 1.9])
    >>> print(errors)
    1.70 ± 0.20 % (3 members)
    >>> errors.text(images=10_000)
    '1.70 ± 0.20 % of 10,000 test images (3 members)'
    >>> print(Errors([3.21]))
    3.21 %
    """

    values: Sequence[float]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 0 for one member."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def typical(self) -> int:
        """Index of the member whose error is closest to the mean."""
        middle = self.mean
        return min(range(len(self.values)), key=lambda k: abs(self.values[k] - middle))

    def text(self, images: int | None = None, noun: str = "image") -> str:
        """The error of one member, or mean ± standard deviation.

        Args:
            images: number of test images, included in the text if given.
            noun: "signal" for signals.
        """
        of = f" of {counted(images, f'test {noun}')}" if images else ""
        if len(self.values) == 1:
            return f"{self.mean:.2f} %{of}"
        return f"{self.mean:.2f} ± {self.deviation:.2f} %{of} ({len(self.values)} members)"

    def __str__(self) -> str:
        return self.text()
