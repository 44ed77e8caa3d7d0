"""The settings with which the experiments train."""

from densembed.training.config import RunConfig

TUNED = {
    "learning_rate": 0.02,
    "density_rate": 0.5,
    "locator_rate": 0.2,
    "locator_decay": 0.2,
    "scale_start": -2.0,
    "location_start": "grid",
}
RECIPES: dict[str, dict] = {
    "paper": {},
    "tuned": TUNED,
    "mass": {**TUNED, "scale_start": -2.4},
    "colour": {
        **TUNED,
        "learning_rate": 0.04,
        "density_rate": 0.25,
        "locator_rate": 0.05,
        "scale_start": -3.6,
    },
}
"""The settings of each recipe that differ from the defaults of `RunConfig`.

`paper` uses the defaults (20 epochs, Section 4). `tuned` was chosen on held-out images of MNIST,
`mass` on them for mNN (10, 5) in the frame of the mass, `colour` on held-out images of CIFAR-10
(JPEG).
"""


def recipe_of(config: RunConfig) -> str | None:
    """The recipe that a training followed, or None if it followed none of them."""
    own = config.model_dump(include={"model", "dataset", "seed", "seeds", "device"})
    return next(
        (name for name, part in RECIPES.items() if RunConfig(**own, **part) == config), None
    )
