from . import gamma, steps
from .availability import EDGE, FAMILIES, available, described, installed, name

__all__ = ["EDGE", "FAMILIES", "available", "described", "gamma", "installed", "name", "steps"]
