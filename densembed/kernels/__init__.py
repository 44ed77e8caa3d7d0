"""Loops that Numba compiles for this machine's CPU, to do in one pass what takes torch many.

Importing this package imports no Numba: `available` tells whether there is one, and the modules
with kernels, `gamma` and `steps`, load when they are used. They know arrays only, no tensors.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
