"""Registrations of a test, forgotten after it."""

from collections.abc import Iterator
from contextlib import contextmanager

from densembed.functional.densities import FAMILIES
from densembed.functional.families import WORDS
from densembed.models import names, plugins, registry


@contextmanager
def restored() -> Iterator[None]:
    registries = (
        FAMILIES,
        WORDS,
        names.MODELS,
        registry.BUILDERS,
        plugins._origins,
        plugins._loaded,
    )
    kept = [dict(each) for each in registries]
    failures = list(plugins._failure)
    try:
        yield
    finally:
        for each, before in zip(registries, kept, strict=True):
            each.clear()
            each.update(before)
        plugins._failure[:] = failures
