"""The paper's Tables 1 and 2: test error in percent over 5 runs of 20 epochs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedResult:
    """A row of a table: mean and standard deviation of the test error, and the parameters."""

    model: str
    error: float
    deviation: float
    parameters: int


TABLES: dict[str, tuple[PublishedResult, ...]] = {
    "mnist": (
        PublishedResult("linear", 7.34, 0.09, 7850),
        PublishedResult("mlp-50", 2.96, 0.23, 39760),
        PublishedResult("logistic-el-3", 17.80, 0.93, 136),
        PublishedResult("logistic-el-5", 10.52, 0.11, 360),
        PublishedResult("logistic-el-8", 9.13, 0.15, 906),
        PublishedResult("logistic-el-15", 8.48, 0.17, 3160),
        PublishedResult("logistic-el-mnn-6-3", 4.44, 0.13, 1198),
        PublishedResult("logistic-el-mnn-8-4", 3.39, 0.23, 3018),
        PublishedResult("logistic-el-mnn-10-5", 2.91, 0.16, 6510),
    ),
    "cifar10": (
        PublishedResult("linear", 65.06, 0.44, 30730),
        PublishedResult("mlp-50", 51.80, 0.50, 154160),
        PublishedResult("logistic-el-3", 60.87, 0.18, 388),
        PublishedResult("logistic-el-5", 59.55, 0.17, 1060),
        PublishedResult("logistic-el-8", 59.34, 0.27, 2698),
        PublishedResult("logistic-el-15", 59.61, 0.64, 9460),
        PublishedResult("logistic-el-mnn-6-3", 50.97, 0.44, 7462),
        PublishedResult("logistic-el-mnn-8-4", 50.07, 0.44, 21322),
        PublishedResult("logistic-el-mnn-10-5", 50.71, 0.22, 49510),
    ),
}
