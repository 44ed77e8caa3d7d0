"""Table 1: MNIST."""

from pages.widgets.paper.tables import show_table


def show() -> None:
    show_table("table1", "mnist")
