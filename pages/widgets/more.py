"""What Explore has one click deeper: one density, what the network computes, all digits."""

import numpy as np
import streamlit as st
from torch import Tensor

from densembed.checkpoint import Checkpoint
from densembed.data import as_input
from densembed.density_figures import atlas_figure, path_figure, weights_figure
from densembed.fields import TOP_PERCENTILE, View
from densembed.figures import difference_figure, field_figure
from densembed.layers import FeatureEmbedding
from densembed.meaning import densities, input_gradient, one_density
from densembed.models import describe
from pages.widgets.computed import class_fields
from pages.widgets.inputs import test_images
from pages.widgets.link import linked_number
from pages.widgets.page import CHART, panel
from pages.widgets.views import Show

WHAT, ONE, COMPUTES = "What am I looking at?", "One density", "What it computes"
ATLAS, TAKE = "All classes", "Take it away"
MEANING = (
    "Instead of one weight for each pixel it learns densities φᵢ over the picture; a neuron sees "
    "the expected brightness under each of them, Γx, and a linear classifier decides. The heatmaps "
    "show Σᵢ φᵢ per square pixel, on one colour scale, so that brighter means more densities there."
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


def what(checkpoint: Checkpoint) -> None:
    plain = CELLS if isinstance(checkpoint.model().embedding, FeatureEmbedding) else PIXELS
    st.markdown(
        f"**{describe(checkpoint.config.model)}** has {checkpoint.parameters:,} parameters. "
        + (MEANING if checkpoint.has_densities else plain)
        + " ◂ marks the right class. Under the pictures: where the middle of the field's mass is "
        "(column, row) and how far the mass lies from it on average; its entropy, which is largest "
        "for an even field; the smallest area that holds 90 % of the mass."
    )


def one(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int) -> None:
    x = as_input(pixels[None])
    model = checkpoint.network(index)
    shown = densities(model, x)
    facts, own, weights, path = st.columns(4, gap="small")
    with facts:
        count = len(shown.loc)
        number = linked_number(
            f"Density, of {count:,}", count, "density", help="Or show the densities and click one."
        )
        (t, u), (s_t, s_u) = shown.loc[number - 1], shown.scale[number - 1]
        st.markdown(
            f"| | columns | rows |\n|---|---|---|\n| location μ | {t:.2f} | {u:.2f} |\n"
            f"| scale s | {s_t:.2f} | {s_u:.2f} |\n\nin pixels, at step {seen.steps[index]:,}."
        )
    with own:
        panel(f"density {number}", "alone")
        values = one_density(model, x, number - 1)
        st.plotly_chart(
            field_figure(values, seen.x, seen.y, float(values.max())), key="density-own",
            config=CHART, alt=f"Density {number} alone, a heatmap",
        )  # fmt: skip
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
        size = seen.x[0] + seen.x[-1], seen.y[0] + seen.y[-1]
        st.plotly_chart(
            path_figure(np.stack(places), seen.steps, size, index), key="density-path",
            config=CHART, alt="Where it was at each step of training",
        )  # fmt: skip


def computes(checkpoint: Checkpoint, pixels: Tensor, seen: View, index: int, show: Show) -> None:
    model = checkpoint.network(index)
    gradient = input_gradient(model, as_input(pixels[None]))
    try:
        model.fold()
        title, note = "its exact linear map", "the weight of each pixel, whatever the input"
    except (ValueError, AttributeError):  # a plugin's network may have none
        title, note = "its input gradient", "what a little more ink would do, at this input"
    _, height, width = pixels.shape
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    bound = float(np.percentile(abs(gradient.sum(1)), TOP_PERCENTILE))
    strength = np.sqrt((gradient.sum(1, keepdims=True) ** 2).mean(0))
    name = checkpoint.header.classes[show.label]
    words, field, signed, every = st.columns(4, gap="small")
    with words:
        st.markdown(
            "The densities tell where the network *looks*; this is what it *does* with a pixel: "
            "how the score of a class changes with its ink (its effective receptive field, "
            "Luo et al. 2016). Red speaks for the class, blue against it. "
            + (
                "With fixed densities and a linear classifier the whole network is this one map: "
                "the score is the sum of weight × ink, and a bias."
                if title == "its exact linear map"
                else "Where moving a density pays, even pixels without ink matter."
            )
        )
    with field:
        panel("where it looks", f"at step {seen.steps[index]:,}")
        st.plotly_chart(
            field_figure(seen.fields[index], seen.x, seen.y, seen.top), key="computes-field",
            config=CHART, alt="Receptive field, a heatmap of the sum of the densities",
        )  # fmt: skip
    with signed:
        panel(f"{title}, for {name}", note)
        st.plotly_chart(
            difference_figure(
                gradient[show.label], x, y, bound, "score per unit of ink", "score per unit of ink"
            ),
            key="computes-signed", config=CHART, alt=f"Signed effect of each pixel on {name}",
        )  # fmt: skip
    with every:
        panel("its strength", "root mean square over the classes")
        st.plotly_chart(
            field_figure(
                strength, x, y, float(np.percentile(strength, TOP_PERCENTILE)),
                "score per unit of ink",
            ),
            key="computes-strength", config=CHART, alt="Effect of each pixel over all classes",
        )  # fmt: skip


def atlas(checkpoint: Checkpoint, index: int) -> None:
    dataset = test_images(checkpoint)
    if dataset is None:
        st.info("No test images of this model's shape are here, so there is nothing to average.")
        return
    progress = st.progress(0.0, "Fields of 100 inputs of each class …")
    found = []
    for label, name in enumerate(dataset.classes):
        progress.progress(label / len(dataset.classes), f"Fields of 100 inputs of {name} …")
        found.append(class_fields(checkpoint, dataset, index, label))
    progress.empty()
    size = checkpoint.header.input_shape[2], checkpoint.header.input_shape[1]
    kinds = (
        ("mean", "where it looks, on average", 0),
        ("deviation", "where that depends on the input", 1),
    )
    for column, (kind, note, k) in zip(st.columns(2, gap="medium"), kinds, strict=True):
        fields = [pair[k] for pair in found]
        top = float(np.percentile(np.stack(fields), TOP_PERCENTILE))
        with column:
            panel(kind, note)
            st.plotly_chart(
                atlas_figure(fields, dataset.classes, size, top or 1.0, "density per pixel²"),
                key=f"atlas-{kind}", config=CHART,
                alt=f"The {kind} of the field over 100 inputs of each class",
            )  # fmt: skip
    if not checkpoint.network().adaptive:
        st.caption("Its densities are fixed: every input has the same field, and none deviates.")
