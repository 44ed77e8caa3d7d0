"""Details that Explore shows on demand: one density, the effect of each pixel, all classes."""

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.data import as_input
from densembed.fields.field import TOP_PERCENTILE, View, finite
from densembed.fields.measures import (
    MASS,
    class_weights,
    densities,
    input_gradient,
    on_pixels,
    one_density,
)
from densembed.figures.densities import path_figure, weights_figure
from densembed.models.names import describe
from densembed.training.checkpoint import Checkpoint
from pages.widgets.canvas.moving import colours
from pages.widgets.canvas.stills import NAME, UNIT, show_classes, show_stills, still
from pages.widgets.common.cache import averaged_images, class_fields
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART, panel
from pages.widgets.explore.views import Show, density_parameter
from pages.widgets.inputs.choose import test_images

ABOUT, DENSITY, EFFECT, CLASSES, EXPORT = "about", "density", "effect", "classes", "export"
DETAILS = {
    ABOUT: "What am I looking at?",
    DENSITY: "One density",
    EFFECT: "Effect of each pixel",
    CLASSES: "All classes",
    EXPORT: "Export",
}
OLD_DETAILS = {text: slug for slug, text in DETAILS.items()} | {
    "What it computes": EFFECT,
    "Take it away": EXPORT,
}
MEANING = (
    "Instead of one weight for each pixel it learns densities φᵢ over the picture. The heatmaps "
    "show their sum, Σᵢ φᵢ per square pixel, on one colour scale."
)
PIXELS = (
    "It is fully connected: as a special case of the framework (Section 3.1) it has one uniform "
    "density on each pixel, so their sum is 1 everywhere, before and after training. What it "
    "learns is in its weights alone."
)
CELLS = (
    "It is an ordinary convolutional network. As a special case of the framework (Section 3.2) it "
    "has one uniform density on each cell of its last maps, drawn over the stretch of the picture "
    "that the cell stands for, so their sum is the same everywhere, before and after training."
)


def show_about(checkpoint: Checkpoint) -> None:
    model = checkpoint.model()
    brightness = "brightness of the picture" if on_pixels(model) else "value of each feature map"
    rest = (
        "a hidden layer follows" if class_weights(model) is None else "a linear classifier decides"
    )
    seen = f" Γx is the expected {brightness} under each of them, and from that {rest}."
    st.markdown(
        f"**{describe(checkpoint.config.model)}** has {checkpoint.parameters:,} parameters. "
        + (MEANING + seen if checkpoint.has_densities else PIXELS if on_pixels(model) else CELLS)
        + " ◂ marks the right class. Under the pictures: the centre of the field's mass (column, "
        "row); its spread, the root mean square distance of the mass from there; its entropy, "
        "which is largest for an even field; the smallest area that holds "
        f"{100 * MASS:.0f} % of the mass."
    )


def show_density(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int) -> None:
    x = as_input(pixels[None])
    model = checkpoint.network(index)
    shown = densities(model, x)
    facts, own, weights, path = st.columns(4, gap="small")
    with facts:
        count = len(shown.loc)
        number = density_parameter(count).draw(
            st.number_input,
            text=f"Density (1 to {count:,})",
            help="Or show the densities and click one.",
            persist_state="session",
        )
        (t, u), (s_t, s_u) = shown.loc[number - 1], shown.scale[number - 1]
        st.markdown(
            f"| | columns | rows |\n|---|---|---|\n| location μ | {t:.2f} | {u:.2f} |\n"
            f"| scale s | {s_t:.2f} | {s_u:.2f} |\n\nin pixels, at step {seen.steps[index]:,}."
        )
    with own:
        values = finite(one_density(model, x, number - 1)[0])
        scale = colours(0, float(values.max()), NAME, UNIT)
        alt = "One density, a heatmap:"
        show_stills(
            [still(values, seen.size, scale, f"density {number}", "alone", alt)], "density-own"
        )
    with weights:
        if shown.weights is not None:
            panel("its weights", "left: against a class, right: for it")
            st.plotly_chart(
                weights_figure(shown.weights[:, number - 1], checkpoint.header.classes),
                key="density-weights", config=CHART, alt="Its weight for each class, as bars",
            )  # fmt: skip
    with path:
        panel("its path", "over training, for this input")
        places = [
            densities(checkpoint.network(k), x).loc[number - 1] for k in range(len(seen.steps))
        ]
        st.plotly_chart(
            path_figure(np.stack(places), seen.steps, seen.size, index), key="density-path",
            config=CHART, alt="Where it was at each step of training",
        )  # fmt: skip


def show_effect(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int, show: Show) -> None:
    model = checkpoint.network(index)
    gradient = finite(input_gradient(model, as_input(pixels[None])))
    try:
        model.fold()
        title, note = "its exact linear map", "the weight of each pixel, whatever the input"
    except (ValueError, AttributeError):  # a plugin's network may have none
        title, note = "its input gradient", "what a little more ink would do, at this input"
    gradient = gradient.sum(1)
    bound = float(np.percentile(abs(gradient), TOP_PERCENTILE)) or 1.0
    strength = np.sqrt((gradient.astype(np.float64) ** 2).mean(0))
    most = float(np.percentile(strength, TOP_PERCENTILE))
    name = checkpoint.header.classes[show.label]
    words, pictures = st.columns([20, 61], gap="small")
    with words:
        st.markdown(
            "The densities tell where the network *looks*; this is what it *does* with a pixel: "
            "how the score of a class changes with its ink (its effective receptive field, "
            "Luo et al. 2016). Red speaks for the class, blue against it. "
            + (
                "With fixed densities and a linear classifier the whole network is this one map: "
                "the score is the sum of weight × ink, and a bias."
                if title == "its exact linear map"
                else "Ink in a blank pixel may move a density, so blank pixels matter, too."
                if model.adaptive
                else "The network is not linear, so the map is another one for another input."
            )
        )
    score, now = "score per unit of ink", f"at step {seen.steps[index]:,}"
    looks = still(
        seen.fields[index].sum(0), seen.size, colours(0, seen.top, NAME, UNIT),
        "where it looks", now, "Receptive field, a heatmap of the sum of the densities,",
    )  # fmt: skip
    signed = still(
        gradient[show.label], seen.size, colours(-bound, bound, score, score),
        f"{title}, for {name}", note, "Effect of each pixel on the score,",
    )  # fmt: skip
    every = still(
        strength, seen.size, colours(0, most, score, score),
        "its strength", "root mean square over the classes", "Effect of each pixel,",
    )  # fmt: skip
    with pictures:
        show_stills([looks, signed, every], "computes")


def show_classes_average(checkpoint: Checkpoint, index: int) -> None:
    dataset = test_images(checkpoint)
    if dataset is None:
        st.info("No test images of this model's shape are here, so there is nothing to average.")
        return
    progress = st.progress(0.0)
    found = []
    for k, name in enumerate(dataset.tested):
        progress.progress(k / len(dataset.tested), f"Fields of class {plain(name)} …")
        label = dataset.classes.index(name)
        found.append(class_fields(checkpoint, dataset, index, label))
    progress.empty()
    size = checkpoint.header.input_shape[2], checkpoint.header.input_shape[1]
    kinds = (
        ("mean", "where it looks, on average"),
        ("deviation", "where that depends on the input"),
    )
    stacks = [np.stack(fields) for fields in zip(*found, strict=True)]
    tops = [float(np.percentile(stack, TOP_PERCENTILE)) for stack in stacks]
    for column, fields, top, (kind, note) in zip(
        st.columns(2, gap="medium"), stacks, tops, kinds, strict=True
    ):
        top = top or tops[0]  # fixed densities do not deviate at all
        with column:
            show_classes(fields, dataset.tested, size, top, kind, note, f"atlas-{kind}")
    averaged = f"Over {averaged_images(dataset)} test images per class of {plain(dataset.title)}."
    fixed = " The densities are fixed, so the field is the same for every input."
    st.caption(averaged + ("" if checkpoint.network().adaptive else fixed))
