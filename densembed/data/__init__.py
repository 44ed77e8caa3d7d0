"""Data sets as tensors; the names are in `__init__.pyi`, and their modules load when used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
