"""A model of a plugin, which the server computes, in the same panels as all others."""

import shutil
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from densembed.data import as_input
from densembed.fields.field import field, pixel_field
from densembed.fields.measures import class_weights, density_field, input_gradient, weighted_field
from densembed.models import plugins
from densembed.training.checkpoint import Checkpoint
from tests.browser.conftest import choose, expect, serve, shows, visitor
from tests.browser.gallery import FIELD, PAPER, SMALL, sample
from tests.models.test_plugins import PLUGIN, saved
from tests.registry import restored

SECOND = ".columns .field.second"


@pytest.fixture(scope="module", params=["student-el-mnn-3-2", "strided-logistic-el-3"])
def model(request, tmp_path_factory, digits) -> Iterator[tuple[str, Checkpoint]]:
    """A server with a model of a plugin, and that model."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "my_densities.py").write_text(PLUGIN)
    (folder / "gallery").mkdir()
    shutil.copy(PAPER / f"{SMALL}.safetensors", folder / "gallery")
    with pytest.MonkeyPatch.context() as patch, restored():
        patch.syspath_prepend(str(folder))
        patch.setenv(plugins.VARIABLE, "my_densities")  # before `load`, which would set it for good
        plugins.load(["my_densities"])
        path = folder / "gallery/mine.safetensors"
        saved(request.param, digits, path)
        patch.setenv("PYTHONPATH", str(folder))
        with serve(folder, gallery=folder / "gallery") as server:
            yield server, Checkpoint.open(path)
    del sys.modules["my_densities"]


def test_explore_and_compare(browser, model):
    server, checkpoint = model
    network = checkpoint.network()

    def fields(pixels) -> np.ndarray:
        return field(network, as_input(pixels[None])).values[0].sum(0)

    with visitor(browser, server) as visit:
        page = visit("/?model=mine&tour=0&for=4")
        shows(page, FIELD, fields(sample(7)))
        choose(page, "Class", "3")
        shows(page, FIELD, fields(sample(3)))
        expect(page.locator(".pair .opinion .heading")).to_contain_text("%")
        x = as_input(sample(3)[None])
        choose(page, "Show", "per pixel")
        shows(page, FIELD, pixel_field(network, x)[0].sum(0))
        choose(page, "Show", "weight for a class")
        shows(page, FIELD, weighted_field(network, x, class_weights(network)[4]).sum(0))
        choose(page, "Show", "densities")
        expect(page.locator(".pair .after ellipse")).to_have_count(class_weights(network).shape[-1])
        choose(page, "More", "One density")
        shows(page, ".detail", density_field(network, x, 0)[0])
        choose(page, "More", "Effect of each pixel")
        gradient = input_gradient(network, x).sum(1)
        shows(page, ".detail figure:nth-child(2)", gradient[4], 1e-4)
        choose(page, "More", "All classes")
        expect(page.locator(".detail figure")).to_have_count(10)
        page = visit("/compare?first=" + SMALL + "&second=mine")
        shows(page, SECOND, fields(sample(7)) / class_weights(network).shape[-1] ** 0)
        page.get_by_label("First model").select_option("mine")
        shows(page, ".columns .field.first", fields(sample(7)))
