"""What the tests of layers and densities cover, as tables: python -m tests.coverage.

Nothing here is typed by hand. The tests run, and every layer that one makes is noted, with the
arguments that it gets and the test that is running. A second table counts the collected tests
that are parametrised by each family of densities.
"""

import inspect
import sys
from collections import defaultdict
from functools import wraps

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from densembed import layers
from densembed.functional.densities import FAMILIES, Density

RUN = ["tests/layers", "tests/functional/test_densities.py", "tests/functional/test_gamma.py"]
MADE_OF = ("in_channels", "out_channels", "channels", "in_features", "out_features", "sizes")
"""Arguments for the size of a layer, not for its behaviour."""


class LayerCoverage:
    """A pytest plugin that notes which layers are made, how, and by which tests."""

    def __init__(self):
        self.test = None
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.options: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
        self.axes: dict[str, set[int]] = defaultdict(set)
        self.families: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.outcomes: dict[str, int] = defaultdict(int)

    def pytest_collection_modifyitems(self, items):
        for item in items:
            values = getattr(item, "callspec", None)
            for value in values.params.values() if values else ():
                if isinstance(value, str) and value in FAMILIES:
                    self.families[value][item.path.stem.removeprefix("test_")] += 1

    def pytest_runtest_logstart(self, nodeid):
        self.test = nodeid.split("[")[0]

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self.outcomes[report.outcome] += 1

    def over(self, layer: type) -> None:
        """Note every instance of just this class."""
        make, signature = layer.__init__, inspect.signature(layer.__init__)

        @wraps(make)
        def noted(this, *args, **kwargs):
            make(this, *args, **kwargs)
            if type(this) is layer and self.test:
                arguments = signature.bind(this, *args, **kwargs)
                arguments.apply_defaults()
                self.note(this, dict(arguments.arguments))

        layer.__init__ = noted

    def note(self, layer, arguments: dict) -> None:
        name = type(layer).__name__
        self.tests[name].add(self.test)
        axes = getattr(layer, "axes", None) or len(getattr(layer, "sizes", (1,)))
        self.axes[name].add(axes)
        for option, value in list(arguments.items())[1:]:
            if option not in MADE_OF:
                self.options[name][option].append(value)


def kind(value) -> tuple[str, float | None]:
    """An argument as a kind with {} for its number, and that number; else as itself."""
    if isinstance(value, Density):
        return value.name, None
    if isinstance(value, bool | str) or value is None:
        return str(value), None
    if isinstance(value, int | float):
        return "{}", value
    return "a function" if inspect.isfunction(value) else "a module", None


def shown(values: list) -> str:
    """All values of an argument: each word, and the range of the numbers."""
    words = defaultdict(set)
    for value in values:
        parts = value if isinstance(value, tuple | list) else [value]
        for word, number in map(kind, parts):
            words[word + " each" * (parts is value)].add(number)
    return ", ".join(word.format(span(numbers)) for word, numbers in sorted(words.items()))


def span(numbers: set) -> str:
    ordered = sorted(number for number in numbers if number is not None)
    return " to ".join(f"{number:g}" for number in dict.fromkeys(ordered[:1] + ordered[-1:]))


def layer_table(watch: LayerCoverage) -> Table:
    table = Table("layer", "dimensions", "families", "options", "tests", box=box.SIMPLE_HEAD)
    for name in sorted(name for name in layers.__all__):
        options = dict(watch.options[name])
        families = {kind(family)[0] for family in options.pop("family", ())}
        many = f"all {len(families)}" if families >= set(FAMILIES) else ", ".join(sorted(families))
        listed = "\n".join(f"{option}: {shown(options[option])}" for option in options)
        dimensions = ", ".join(f"{axes}d" for axes in sorted(watch.axes[name]))
        table.add_row(name, dimensions, many, listed, str(len(watch.tests[name])))
    return table


def family_table(watch: LayerCoverage) -> Table:
    files = sorted({file for counts in watch.families.values() for file in counts})
    table = Table("family", *files, box=box.SIMPLE_HEAD)
    for family in FAMILIES:
        table.add_row(family, *(str(watch.families[family].get(file, 0)) for file in files))
    return table


def main() -> int:
    watch = LayerCoverage()
    for name in layers.__all__:
        watch.over(getattr(layers, name))
    status = pytest.main(
        [*RUN, "-q", "--no-header", "--no-summary", "-p", "no:cacheprovider"], [watch]
    )
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(layer_table(watch), family_table(watch))
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in watch.outcomes.items())
    console.print(f"From the tests as they ran: {outcomes}.")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
