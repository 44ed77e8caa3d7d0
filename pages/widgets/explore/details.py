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
    density_field,
    input_gradient,
    on_pixels,
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
    "Instead of one weight per pixel, it learns densities φᵢ over the picture: functions whose "
    "integral is 1. The heatmaps show their sum, Σᵢ φᵢ per square pixel, on one colour scale."
)
PIXELS = (
    "It is fully connected, a special case of the framework (Section 3.1) with one uniform density "
    "on each pixel. The sum of the densities is therefore 1 everywhere, before and after training; "
    "only the weights are trained."
)
CELLS = (
    "It is an ordinary convolutional network, a special case of the framework (Section 3.2) with "
    "one "
    "uniform density on each cell of its last feature maps. Each density is drawn over the part of "
    "the picture that its cell represents, so their sum is the same everywhere, before and after "
    "training."
)


def show_about(checkpoint: Checkpoint) -> None:
    model = checkpoint.model()
    brightness = "brightness of the picture" if on_pixels(model) else "value of each feature map"
    rest = (
        "a hidden layer follows" if class_weights(model) is None else "a linear classifier follows"
    )
    rest = f" Γx is the mean {brightness} under each density; {rest}."
    st.markdown(
        f"**{describe(checkpoint.config.model)}** has {checkpoint.parameters:,} parameters. "
        + (MEANING + rest if checkpoint.has_densities else PIXELS if on_pixels(model) else CELLS)
        + " ◂ marks the true class. The numbers under the pictures are the centre of the field "
        "(column, "
        "row), its spread (root mean square distance from the centre), its entropy, which is "
        f"largest for an even field, and the smallest area that contains {100 * MASS:.0f} % of it."
    )


def show_density(checkpoint: Checkpoint, pixels: Tensor, response: View, index: int) -> None:
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
        (s_t, s_u) = shown.scale[number - 1]
        t, u = (f"{place:.2f}".replace("-", "−") for place in shown.loc[number - 1])
        st.markdown(
            f"| | columns | rows |\n|---|---|---|\n| location μ | {t} | {u} |\n"
            f"| scale s | {s_t:.2f} | {s_u:.2f} |\n\nin pixels, at step {response.steps[index]:,}."
        )
    with own:
        values = finite(density_field(model, x, number - 1)[0])
        scale = colours(0, float(values.max()), NAME, UNIT)
        alt = "One density, a heatmap:"
        show_stills(
            [still(values, response.size, scale, f"density {number}", "on its own", alt)],
            "density-own",
        )
    with weights:
        if shown.weights is not None:
            panel("its weights", "left: lowers the score of a class, right: raises it")
            st.plotly_chart(
                weights_figure(shown.weights[:, number - 1], checkpoint.header.classes),
                key="density-weights", config=CHART, alt="Bars: its weight for each class",
            )  # fmt: skip
    with path:
        panel("its path during training", "for this input")
        places = [
            densities(checkpoint.network(k), x).loc[number - 1] for k in range(len(response.steps))
        ]
        st.plotly_chart(
            path_figure(np.stack(places), response.steps, response.size, index), key="density-path",
            config=CHART, alt="Location of the density at each step of training",
        )  # fmt: skip


def show_effect(
    checkpoint: Checkpoint, pixels: Tensor, response: View, index: int, show: Show
) -> None:
    model = checkpoint.network(index)
    gradient = finite(input_gradient(model, as_input(pixels[None])))
    try:
        model.fold()
        title, note = "exact linear map", "weight of each pixel, the same for every input"
    except (ValueError, AttributeError):  # a plugin's network may have none
        title, note = "input gradient", "effect of a little more ink, at this input"
    gradient = gradient.sum(1)
    bound = float(np.percentile(abs(gradient), TOP_PERCENTILE)) or 1.0
    strength = np.sqrt((gradient.astype(np.float64) ** 2).mean(0))
    most = float(np.percentile(strength, TOP_PERCENTILE))
    name = checkpoint.header.classes[show.label]
    words, pictures = st.columns([20, 61], gap="small")
    with words:
        st.markdown(
            "The densities show where the network *looks*. These maps show the effect of each "
            "pixel: "
            "how the score of a class changes with the ink there (the effective receptive field, "
            "Luo et al. 2016). Red raises the score of the class, blue lowers it. "
            + (
                "With fixed densities and a linear classifier, the whole network is this one map: "
                "the score is the sum of weight × ink, plus a bias."
                if title == "exact linear map"
                else "Some blank pixels matter too: ink there would move a density."
                if model.adaptive
                else "The network is not linear, so the map depends on the input."
            )
        )
    score, now = "score per unit of ink", f"at step {response.steps[index]:,}"
    field = still(
        response.fields[index].sum(0), response.size, colours(0, response.top, NAME, UNIT),
        "where it looks", now, "Receptive field, a heatmap of the sum of the densities,",
    )  # fmt: skip
    signed = still(
        gradient[show.label], response.size, colours(-bound, bound, score, score),
        f"{title}, for {name}", note, "Effect of each pixel on the score,",
    )  # fmt: skip
    overall = still(
        strength, response.size, colours(0, most, score, score),
        "overall effect", "root mean square over the classes", "Effect of each pixel,",
    )  # fmt: skip
    with pictures:
        show_stills([field, signed, overall], "computes")


def show_class_averages(checkpoint: Checkpoint, index: int) -> None:
    dataset = test_images(checkpoint)
    if dataset is None:
        st.info(
            "No test images of this model's shape are available, so there is nothing to average."
        )
        return
    progress = st.progress(0.0)
    fields_of = []
    for k, name in enumerate(dataset.tested):
        progress.progress(k / len(dataset.tested), f"Fields of class {plain(name)} …")
        label = dataset.classes.index(name)
        fields_of.append(class_fields(checkpoint, dataset, index, label))
    progress.empty()
    size = checkpoint.header.input_shape[2], checkpoint.header.input_shape[1]
    kinds = (
        ("mean", "mean over the inputs"),
        ("deviation", "standard deviation over the inputs"),
    )
    stacks = [np.stack(fields) for fields in zip(*fields_of, strict=True)]
    tops = [float(np.percentile(stack, TOP_PERCENTILE)) for stack in stacks]
    for column, fields, top, (kind, note) in zip(
        st.columns(2, gap="medium"), stacks, tops, kinds, strict=True
    ):
        top = top or tops[0]  # fixed densities have no deviation
        with column:
            show_classes(fields, dataset.tested, size, top, kind, note, f"atlas-{kind}")
    averaged = f"Over {averaged_images(dataset)} test images per class of {plain(dataset.title)}."
    fixed = " The densities are fixed, so the field is the same for every input."
    st.caption(averaged + ("" if checkpoint.network().adaptive else fixed))
