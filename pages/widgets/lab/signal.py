"""One signal through one layer: choices in, five strips out."""

import numpy as np
import streamlit as st

from densembed import lab
from densembed.data import as_input, load_dataset
from densembed.figures.lab import strips_figure
from densembed.functional.densities import FAMILIES, in_words
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART
from pages.widgets.lab.controls import Controls
from pages.widgets.lab.pad import pad

BETAS = (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)
BETA_STEPS = [*(-float(beta) for beta in reversed(BETAS)), 0.0, *map(float, BETAS)]
MAX_WINDOW, MAX_STRIDE = 8, 4
FAMILY_CHOICES = {name: in_words(name) for name in FAMILIES}


def signal_tab(controls: Controls) -> None:
    picture, bench = st.columns([7, 3], gap="medium")
    with bench, st.container(key="lab-bench"):
        left, right = st.columns(2)
        with left:
            layer = controls.choice(
                "layer", "Layer", lab.LAYERS, "density",
                "A choice of densities: y = wᵀΓx + b (Section 2, eq. 4).",
            )  # fmt: skip
        with right:
            source = controls.choice(
                "signal", "Signal", lab.SIGNALS, "wave",
                "x(t) = Σ xₙ Δ(t; [n−1, n]): steps (Section 2.1, eq. 7).",
            )  # fmt: skip
        x = _signal(controls, source)
        verdict = st.container(key="lab-verdict", gap="xsmall")
        reading, row, position, say = BENCHES[layer](controls, x)
    with verdict:
        _verdict(reading, say)
    with picture:
        st.plotly_chart(
            strips_figure(reading, row, position), key="strips", config=CHART,
            alt=_alternative(reading, lab.LAYERS[layer], row),
        )  # fmt: skip


def _signal(controls: Controls, source: str) -> np.ndarray:
    if source == "own":
        return _own(controls)
    if source == "digit":
        return _digit_row(controls)
    left, right = st.columns(2) if source == "noise" else [st.container()] * 2
    with left:
        size = controls.whole(
            "pixels", "Pixels N", lab.MIN_PIXELS, lab.MAX_PIXELS, 24,
            "The resolution of x, untied from the number of densities (Section 2).",
        )  # fmt: skip
    seed = 0
    if source == "noise":
        with right:
            seed = controls.whole(
                "seed", "Seed", 0, 9999, 0, "The same seed gives the same xₙ (eq. 7)."
            )
    return lab.signal(source, size, seed)


def _digit_row(controls: Controls) -> np.ndarray:
    columns = st.columns(2)
    with columns[0]:
        digit = controls.whole("digit", "Digit", 0, 9, 3, "Of the embedded digits (eq. 9).")
    pixels = digit_pixels(digit, 0)
    with columns[1]:
        row = controls.whole(
            "line", "Row", 1, len(pixels), 10, "Of its 28, from the top: xₙ (eq. 7)."
        )
    return pixels[row - 1]


def digit_pixels(digit: int, index: int) -> np.ndarray:
    """The ink (H, W) of a test image of that digit, within [0, 1]."""
    test = load_dataset("digits").test
    chosen = (test.labels == digit).nonzero()[index, 0]
    return as_input(test.images[chosen, 0]).double().numpy()


def _own(controls: Controls) -> np.ndarray:
    typed = controls.text(
        "values", "Values", "0 0 0.2 0.8 1 0.6 0.2 0 0 0.5 0.5 0", lab.parse_values, "a signal",
        f"The xₙ of eq. 7: {lab.MIN_PIXELS} to {lab.MAX_PIXELS} numbers, spaces or commas between.",
    )  # fmt: skip
    try:
        x = lab.parse_values(typed)
    except ValueError as error:
        st.error(f"{plain(str(error))} Write numbers such as 0 0.5 1.")
        st.stop()
    pad([float(value) for value in x], "pad", _drawn)
    st.caption("Or draw them: drag across the pad, from 0 at its foot to 1 at its top.")
    return x


def _drawn() -> None:
    st.session_state["values"] = lab.format_values(st.session_state["pad"].drawn)


def _row(controls: Controls, count: int, label: str = "Density i") -> int:
    row = controls.whole(
        "row", label, 1, count, (count + 1) // 2,
        "Highlights one density, its row of Γ and its bar: (Γx)ᵢ = ∫ x(t) φᵢ(t) dt (eq. 5).",
        slide=True,
    )  # fmt: skip
    return row - 1


def _linear(controls: Controls, x: np.ndarray):
    st.caption(
        "One uniform density a pixel, Δ(t; [n−1, n]), collects exactly one element of x: "
        "Γ is the identity (Section 3.1, eq. 11)."
    )
    row = _row(controls, len(x))
    say = "Γ = I, so wᵀΓx + b is the ordinary neuron (Section 3.1)."
    return lab.fully_connected(x), row, None, say


def _window(controls: Controls, x: np.ndarray) -> tuple[int, int]:
    left, right = st.columns(2)
    with left:
        taps = controls.whole(
            "k", "Kernel K", 1, min(MAX_WINDOW, len(x)), 3,
            "Weights, and the densities of a position (eq. 12).",
        )  # fmt: skip
    with right:
        stride = controls.whole(
            "s", "Stride S", 1, MAX_STRIDE, 1, "Pixels from one position to the next (eq. 12)."
        )
    return taps, stride


def _kernel(controls: Controls, taps: int) -> np.ndarray:
    name = controls.choice(
        "w", "Kernel w", lab.KERNELS, "edge",
        "The weights that all positions share: y = wᵀΓˡx (Section 3.2, eq. 4).",
    )  # fmt: skip
    return lab.kernel(name, taps)


def _position(controls: Controls, x: np.ndarray, taps: int, stride: int) -> int:
    count = (len(x) - taps) // stride + 1
    position = controls.whole(
        "l", "Position l", 1, count, (count + 1) // 2,
        "The output whose densities are drawn: it starts at (l−1)S (eq. 12).", slide=True,
    )  # fmt: skip
    return position - 1


def _convolution(controls: Controls, x: np.ndarray):
    taps, stride = _window(controls, x)
    position = _position(controls, x, taps, stride)
    weights = _kernel(controls, taps)
    row = _row(controls, taps, "Tap i")
    reading = lab.convolution(x, weights, stride, position)
    return (
        reading,
        row,
        position,
        "The same layer for any K and S: a tap collects one pixel (eq. 12).",
    )


def _adaptive_convolution(controls: Controls, x: np.ndarray):
    amplitude = controls.number(
        "p", "Amplitude p, pixels", 0.5, 2.0 * MAX_WINDOW, 4.5, 0.05,
        "The K taps share [(l−1)S, (l−1)S + p] in equal parts; at p = K it is the ordinary "
        "convolution (Section 3.3, eqs. 13 and 15).",
    )  # fmt: skip
    taps, stride = _window(controls, x)
    normalize = controls.flag(
        "normalised", "Normalised",
        "As printed a tap has height 1, so mass p/K; normalised it has mass 1 (eq. 15).",
    )  # fmt: skip
    position = _position(controls, x, taps, stride)
    weights = _kernel(controls, taps)
    row = _row(controls, taps, "Tap i")
    reading = lab.convolution(x, weights, stride, position, amplitude, normalize)
    if amplitude == taps:
        say = f"p = K = {taps}: the same layer (Section 3.3)."
    else:
        say = f"p = {amplitude:g}. Drag it to K = {taps}, and the difference is 0."
    return reading, row, position, say


def _pooling(controls: Controls, x: np.ndarray):
    beta = controls.scale(
        "beta", "β", BETA_STEPS, 5.0,
        "Weights a pixel by e^(βx): minimum to the left, mean at 0, maximum to the right "
        "(Section 3.4, eqs. 16 and 17).",
    )  # fmt: skip
    left, right = st.columns(2)
    with left:
        window = controls.whole(
            "window", "Window k", 1, min(MAX_WINDOW, len(x)), 4,
            "Pixels in the interval Jᵢ of a density (eq. 16).",
        )  # fmt: skip
    with right:
        stride = controls.whole(
            "stride", "Stride", 1, MAX_WINDOW, window, "Pixels from one Jᵢ to the next (eq. 16)."
        )
    reading = lab.adaptive_pooling(x, window, stride, beta)
    row = _row(controls, len(reading.output))
    limit = "the minimum" if beta < 0 else "the maximum"
    say = (
        "β = 0: the same layer as the average pooling (Section 3.4)." if beta == 0
        else f"Within log(k)/|β| = log({window})/{abs(beta):g} = "
        f"{np.log(window) / abs(beta):.3g} of {limit}; the average at β = 0."
    )  # fmt: skip
    return reading, row, None, say


def _density(controls: Controls, x: np.ndarray):
    size = len(x)
    left, right = st.columns(2)
    with left:
        family = controls.choice(
            "family", "Family", FAMILY_CHOICES, "logistic",
            "Any with a primitive F: Γᵢₙ = Fᵢ(n) − Fᵢ(n−1) (eq. 8).",
        )  # fmt: skip
    with right:
        count = controls.whole(
            "count", "Densities B", 1, size, min(6, size),
            "Rows of Γ; all but yours stand on an even grid (eq. 4).",
        )  # fmt: skip
    row = _row(controls, count)
    locations, scales = lab.grid_places(size, count, family)
    _follow_grid(controls, family, (size, count, row))
    locations[row] = controls.number(
        "mu", f"Location μ of density {row + 1}, pixels", 0.0, float(size),
        float(locations[row]), 0.05,
        "Where it looks; it slides within the domain [0, N] (Section 4.1, eqs. 18 and 21).",
    )  # fmt: skip
    scales[row] = controls.number(
        "scale", f"Scale s of density {row + 1}, pixels", 0.01, size / 2,
        float(scales[row]), 0.01,
        "How widely it looks: narrow ones pick a pixel, wide ones average (eqs. 18 and 21).",
    )  # fmt: skip
    truncate = controls.flag(
        "truncate", "Truncate to the signal",
        "Divides by the mass within [0, N], F(N) − F(0) < 1, so that every row of Γ sums to 1; "
        "the paper does not (eq. 6).",
    )  # fmt: skip
    reading = lab.embedding(x, family, locations, scales, truncate)
    say = (
        "No torch layer is this one. This comes nearest: 0 for uniform densities on the grid "
        "where B divides N."
    )
    return reading, row, None, say


def _follow_grid(controls: Controls, family: str, grid: tuple) -> None:
    """A density just taken up starts from the grid; of another family, with the same spread."""
    before = controls.memory.get("placed")
    controls.memory["placed"] = (grid, family)
    if before is None or before == (grid, family):
        return
    if before[0] != grid:
        controls.forget("mu", "scale")
    elif "scale" in st.session_state:
        scale = lab.same_spread(st.session_state["scale"], before[1], family)
        st.session_state["scale"] = round(scale, 2)


BENCHES = {
    "density": _density,
    "linear": _linear,
    "conv": _convolution,
    "adaptive-conv": _adaptive_convolution,
    "pool": _pooling,
}


def _verdict(reading: lab.Reading, say: str) -> None:
    """How far the layer is from torch's."""
    st.markdown("Largest difference to torch’s")
    with st.container(horizontal=True, gap="medium"):
        for reference in reading.references:
            st.metric(reference.name, lab.readable(reference.difference), width="content")
    st.caption(say)


def _alternative(reading: lab.Reading, layer: str, row: int) -> str:
    count, size = reading.gamma.shape
    expectations = ", ".join(f"{value:.3g}" for value in reading.expectation[:12])
    more = " …" if count > 12 else ""
    return (
        f"Strips on one t axis for {layer}: a signal of {size} pixels; {count} densities, "
        f"number {row + 1} brought out; Γ as a heatmap of {count} rows and {size} columns; "
        f"Γx = {expectations}{more}"
    )
