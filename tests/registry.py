"""Registrations of a test, forgotten after it."""

from collections.abc import Iterator
from contextlib import contextmanager

from densembed.functional.densities import FAMILIES
from densembed.models import names, plugins


@contextmanager
def restored() -> Iterator[None]:
    registries = (FAMILIES, names.MODELS, plugins._origins, plugins._loaded)
    kept = [dict(registry) for registry in registries]
    failures = list(plugins._failure)
    try:
        yield
    finally:
        for registry, before in zip(registries, kept, strict=True):
            registry.clear()
            registry.update(before)
        plugins._failure[:] = failures
