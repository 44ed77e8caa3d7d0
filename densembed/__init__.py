"""Density-embedding layers (Cicala & Bortolussi, 2020): adaptive receptive fields in torch.

The public names are in `__init__.pyi`. Their modules, and torch, are imported when they are used.
"""

import lazy_loader

from densembed.models.plugins import load_from_environment
from densembed.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

load_from_environment()
