from . import gamma, steps
from .availability import FAMILIES, available, described, installed, name

__all__ = ["FAMILIES", "available", "described", "gamma", "installed", "name", "steps"]
