"""Names of the families of densities, known without torch; see `densities.FAMILIES`."""

WORDS: dict[str, str] = {
    "logistic": "logistic",
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "cauchy": "Cauchy",
    "hypsecant": "hyperbolic secant",
    "uniform": "uniform",
    "triangular": "triangular",
    "raisedcosine": "raised cosine",
    "plateau": "plateau",
}
"""Display name of each family by its name."""


def in_words(family: str) -> str:
    """Display name of a family, such as "raised cosine"; unknown families keep their name."""
    return WORDS.get(family, family)
