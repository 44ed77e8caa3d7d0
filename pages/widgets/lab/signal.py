"""The tab “One signal”: the controls of a layer, and its computation in five strips."""

import numpy as np
import streamlit as st

from densembed import lab
from densembed.data import as_input, load_dataset
from densembed.figures.lab import strips_figure
from densembed.functional.densities import FAMILIES
from densembed.functional.families import in_words
from densembed.text import counted
from pages.widgets.common.callbacks import callback
from pages.widgets.common.component import last_message
from pages.widgets.common.link import plain
from pages.widgets.common.page import CHART
from pages.widgets.common.parameter import Flag, Numbers, OneOf, Parameter, Slugs, Text
from pages.widgets.lab.controls import KEPT, number
from pages.widgets.lab.pad import pad

BETAS = (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)
BETA_STEPS = [*(-float(beta) for beta in reversed(BETAS)), 0.0, *map(float, BETAS)]
MAX_WINDOW, MAX_STRIDE = 8, 4
FAMILY_CHOICES = {name: in_words(name) for name in FAMILIES}


def signal_tab() -> None:
    picture, bench = st.columns([2, 1], gap="medium")
    with bench, st.container(key="lab-bench"):
        left, right = st.columns(2)
        with left:
            layer = Parameter("layer", "Layer", Slugs(lab.LAYERS), "density").draw(
                st.selectbox,
                caption="A layer is a choice of densities: y = wᵀΓx + b (Section 2, eq. 4).",
                **KEPT,
            )
        with right:
            source = Parameter("signal", "Signal", Slugs(lab.SIGNALS), "wave").draw(
                st.selectbox,
                caption="A step function: x(t) = Σ xₙ Δ(t; [n−1, n]) (Section 2.1, eq. 7).",
                **KEPT,
            )
        x = _signal(source)
        verdict = st.container(key="lab-verdict", gap="xsmall")
        reading, row, position, remark = BENCHES[layer](x)
    with verdict:
        _verdict(reading, remark)
    with picture:
        st.plotly_chart(
            strips_figure(reading, row=row, position=position),
            key="strips",
            config=CHART,
            alt=_alternative(reading, lab.LAYERS[layer], row),
        )


def _signal(source: str) -> np.ndarray:
    if source == "own":
        return _own()
    if source == "digit":
        return _digit_row()
    left, right = st.columns(2) if source == "noise" else [st.container()] * 2
    with left:
        size = Parameter("pixels", "Pixels N", Numbers(lab.MIN_PIXELS, lab.MAX_PIXELS), 24).draw(
            st.number_input,
            step=1,
            caption="The resolution of x, independent of the number of densities (Section 2).",
            **KEPT,
        )
    seed = 0
    if source == "noise":
        with right:
            seed = Parameter("seed", "Seed", Numbers(0, 9999), 0).draw(
                st.number_input, step=1, caption="The same seed gives the same xₙ (eq. 7).", **KEPT
            )
    return lab.signal(source, size, seed=seed)


def _digit_row() -> np.ndarray:
    columns = st.columns(2)
    with columns[0]:
        digit = Parameter("digit", "Digit", Numbers(0, 9), 3).draw(
            st.number_input, step=1, caption="One of the built-in digits (eq. 9).", **KEPT
        )
    pixels = digit_pixels(digit, 0)
    with columns[1]:
        row = Parameter("line", "Row", Numbers(1, len(pixels)), 10).draw(
            st.number_input, step=1, caption="One of its 28 rows, from the top: xₙ (eq. 7).", **KEPT
        )
    return pixels[row - 1]


def digit_pixels(digit: int, index: int) -> np.ndarray:
    """The ink (H, W) of a test image of that digit, within [0, 1]."""
    test = load_dataset("digits").test
    chosen = (test.labels == digit).nonzero()[index, 0]
    return as_input(test.images[chosen, 0]).double().numpy()


def _own() -> np.ndarray:
    typed = Parameter(
        "values",
        "Values",
        Text(lab.parse_values, "a signal"),
        "0 0 0.2 0.8 1 0.6 0.2 0 0 0.5 0.5 0",
    ).draw(
        st.text_input,
        caption=f"{lab.MIN_PIXELS} to {lab.MAX_PIXELS} numbers xₙ (eq. 7), separated by spaces or "
        "commas.",
        **KEPT,
    )
    try:
        x = lab.parse_values(typed)
    except ValueError as error:
        st.error(f"{plain(str(error))} Write numbers such as 0 0.5 1.")
        st.stop()
    pad([float(value) for value in x], "pad", callback(_drawn))
    st.caption("Or draw them: drag across the pad, from 0 at the bottom to 1 at the top.")
    return x


def _drawn() -> None:
    st.session_state["values"] = lab.format_values(last_message("pad", "drawn"))


def _row(count: int, label: str = "Density i") -> int:
    row = Parameter("row", label, Numbers(1, count), (count + 1) // 2).draw(
        st.slider,
        step=1,
        caption="Highlights a density, its row of Γ and its bar: (Γx)ᵢ = ∫ x(t) φᵢ(t) dt (eq. 5).",
        **KEPT,
    )
    return row - 1


def _linear(x: np.ndarray):
    st.caption(
        "One uniform density per pixel, Δ(t; [n−1, n]), collects exactly one element of x: "
        "Γ is the identity (Section 3.1, eq. 11)."
    )
    row = _row(len(x))
    remark = "Γ = I, so wᵀΓx + b is the ordinary neuron (Section 3.1)."
    return lab.fully_connected(x), row, None, remark


def _window(x: np.ndarray) -> tuple[int, int]:
    left, right = st.columns(2)
    with left:
        taps = Parameter("k", "Kernel K", Numbers(1, min(MAX_WINDOW, len(x))), min(3, len(x))).draw(
            st.number_input,
            step=1,
            caption="Number of weights, and of densities per position (eq. 12).",
            **KEPT,
        )
    with right:
        stride = Parameter("s", "Stride S", Numbers(1, MAX_STRIDE), 1).draw(
            st.number_input,
            step=1,
            caption="Pixels from one position to the next (eq. 12).",
            **KEPT,
        )
    return taps, stride


def _kernel(taps: int) -> np.ndarray:
    name = Parameter("w", "Kernel w", Slugs(lab.KERNELS), "edge").draw(
        st.selectbox,
        caption="The weights, shared by all positions: y = wᵀΓˡx (Section 3.2, eq. 4).",
        **KEPT,
    )
    return lab.kernel(name, taps)


def _position(x: np.ndarray, taps: int, stride: int) -> int:
    count = (len(x) - taps) // stride + 1
    position = Parameter("l", "Position l", Numbers(1, count), (count + 1) // 2).draw(
        st.slider,
        step=1,
        caption="The output whose densities are drawn: it starts at (l−1)S (eq. 12).",
        **KEPT,
    )
    return position - 1


def _convolution(x: np.ndarray):
    taps, stride = _window(x)
    position = _position(x, taps, stride)
    weights = _kernel(taps)
    row = _row(taps, "Tap i")
    reading = lab.convolution(x, weights, stride=stride, position=position)
    return (
        reading,
        row,
        position,
        "It is the same layer for any K and S: each tap reads one pixel (eq. 12).",
    )


def _adaptive_convolution(x: np.ndarray):
    amplitude = number(
        "p",
        "Amplitude p, pixels",
        0.5,
        2.0 * MAX_WINDOW,
        4.5,
        0.05,
        "The K taps divide [(l−1)S, (l−1)S + p] into equal parts. With p = K this is the ordinary "
        "convolution (Section 3.3, eqs. 13 and 15).",
    )
    taps, stride = _window(x)
    normalize = Parameter("normalised", "Normalised", Flag(), False).draw(
        st.toggle,
        caption="Gives each tap mass 1. As printed, a tap has height 1 and so mass p/K (eq. 15).",
        **KEPT,
    )
    position = _position(x, taps, stride)
    weights = _kernel(taps)
    row = _row(taps, "Tap i")
    reading = lab.convolution(
        x, weights, stride=stride, position=position, amplitude=amplitude, normalize=normalize
    )
    if amplitude == taps:
        remark = f"With p = K = {taps} it is the same layer (Section 3.3)."
    else:
        remark = f"With p = K = {taps} the difference would be 0 (Section 3.3)."
    return reading, row, position, remark


def _pooling(x: np.ndarray):
    beta = Parameter("beta", "β", OneOf(BETA_STEPS, nearest=True), 5.0).draw(
        st.select_slider,
        caption="A pixel has the weight e^(βx): minimum to the left, mean at 0, maximum to the "
        "right (Section 3.4, eqs. 16 and 17).",
        **KEPT,
    )
    left, right = st.columns(2)
    with left:
        window = Parameter(
            "window", "Window k", Numbers(1, min(MAX_WINDOW, len(x))), min(4, len(x))
        ).draw(
            st.number_input,
            step=1,
            caption="Pixels in the interval Jᵢ of a density (eq. 16).",
            **KEPT,
        )
    with right:
        stride = Parameter("stride", "Stride", Numbers(1, MAX_WINDOW), window).draw(
            st.number_input, step=1, caption="Pixels from one Jᵢ to the next (eq. 16).", **KEPT
        )
    reading = lab.adaptive_pooling(x, window=window, stride=stride, beta=beta)
    row = _row(len(reading.output))
    limit = "the minimum" if beta < 0 else "the maximum"
    remark = (
        "With β = 0 it is average pooling (Section 3.4)."
        if beta == 0
        else f"The output is within log(k)/|β| = log({window})/{abs(beta):g} = "
        f"{np.log(window) / abs(beta):.3g} of {limit}; with β = 0 it is the average."
    )
    return reading, row, None, remark


def _density(x: np.ndarray):
    size = len(x)
    left, right = st.columns(2)
    with left:
        family = Parameter("family", "Family", Slugs(FAMILY_CHOICES), "logistic").draw(
            st.selectbox,
            caption="Any family with a primitive F: Γᵢₙ = Fᵢ(n) − Fᵢ(n−1) (eq. 8).",
            **KEPT,
        )
    with right:
        count = Parameter("count", "Densities B", Numbers(1, size), min(6, size)).draw(
            st.number_input,
            step=1,
            caption="One row of Γ per density. All but the selected one are evenly spaced (eq. 4).",
            **KEPT,
        )
    row = _row(count)
    locations, scales = lab.grid_places(size, count, family)
    _follow_grid(family, (size, count, row))
    locations[row] = number(
        "mu",
        f"Location μ of density {row + 1}, pixels",
        0.0,
        float(size),
        float(locations[row]),
        0.05,
        "Where the density looks, within the domain [0, N] (Section 4.1, eqs. 18 and 21).",
    )
    scales[row] = number(
        "scale",
        f"Scale s of density {row + 1}, pixels",
        0.01,
        size / 2,
        float(scales[row]),
        0.01,
        "The width of the density: a narrow one reads one pixel, a wide one averages (eqs. 18, "
        "21).",
    )
    truncate = Parameter("truncate", "Truncate to the signal", Flag(), False).draw(
        st.toggle,
        caption="Divides every row of Γ by its sum F(N) − F(0), the mass within the signal. "
        "The paper does not do this (eq. 6).",
        **KEPT,
    )
    reading = lab.embedding(x, family, loc=locations, scale=scales, truncate=truncate)
    remark = (
        "PyTorch has no such layer. The closest is adaptive average pooling: uniform "
        "densities on the grid give the same result if B divides N."
    )
    return reading, row, None, remark


def _micro(x: np.ndarray):
    size = len(x)
    st.caption(
        "A micro network reads x first, with a few densities of its own. A linear map turns their "
        "readings into the locations of the others, so these move with the signal (Section 4.2, "
        "eq. 22). Here its weights push the densities towards the side with more signal if the "
        "gain is positive, and away from it if it is negative."
    )
    left, right = st.columns(2)
    with left:
        family = Parameter("family", "Family", Slugs(FAMILY_CHOICES), "logistic").draw(
            st.selectbox, caption="Of both layers (eq. 8).", **KEPT
        )
    with right:
        count = Parameter("count", "Densities B", Numbers(1, size), min(6, size)).draw(
            st.number_input, step=1, caption="The densities that are moved (eq. 4).", **KEPT
        )
    row = _row(count)
    inner = Parameter(
        "inner", "Densities B₀ of the micro network", Numbers(2, size), min(4, size)
    ).draw(st.number_input, step=1, caption="They lie on an even grid and never move.", **KEPT)
    gain = number(
        "gain",
        "Gain",
        -4.0,
        4.0,
        2.0,
        0.05,
        "How strongly the readings move the densities: α = gain · Σ vⱼ rⱼ + b. With 0 they stay.",
    )
    moved = lab.micro_network(x, family, count=count, inner=inner, gain=gain)
    readings = ", ".join(f"{value:z.2f}" for value in moved.readings[:8]).replace("-", "−")
    more = " …" if inner > 8 else ""
    remark = (
        f"The micro network reads {readings}{more} and {_moves(moved.shifts, row)}. With gain "
        "0, uniform densities are average pooling if B divides N."
    )
    return moved.reading, row, None, remark


def _moves(shifts: np.ndarray, row: int) -> str:
    """What a micro network does to a density, after "The micro network"; `shifts` in pixels."""
    if not any(lab.rounded(shift) for shift in shifts):
        return "moves no density"
    if not lab.rounded(shifts[row]):
        return f"does not move density {row + 1}"
    shift = f"{shifts[row]:+.2f}".replace("-", "−")
    if not float(shift[1:]):
        shift = "less than 0.01"
    return f"moves density {row + 1} by {shift} pixels"


def _follow_grid(family: str, grid: tuple) -> None:
    """A newly selected density starts on the grid; with another family, its spread stays."""
    before = st.session_state.get("lab-placed")
    st.session_state["lab-placed"] = (grid, family)
    if before is None or before == (grid, family):
        return
    if before[0] != grid:
        for key in ("mu", "scale"):
            st.session_state.pop(key, None)
            st.query_params.pop(key, None)
    elif "scale" in st.session_state:
        scale = lab.same_spread(st.session_state["scale"], old=before[1], new=family)
        st.session_state["scale"] = round(scale, 2)


BENCHES = {
    "density": _density,
    "linear": _linear,
    "conv": _convolution,
    "adaptive-conv": _adaptive_convolution,
    "pool": _pooling,
    "micro": _micro,
}


def _verdict(reading: lab.Reading, remark: str) -> None:
    """The largest difference between the layer and its counterpart in PyTorch."""
    st.markdown("Largest difference from the PyTorch layer")
    with st.container(horizontal=True, gap="medium"):
        for reference in reading.references:
            st.metric(reference.name, lab.readable(reference.difference), width="content")
    st.caption(remark)


def _alternative(reading: lab.Reading, layer: str, row: int) -> str:
    count, size = reading.gamma.shape
    expectations = ", ".join(f"{value:.3g}" for value in reading.expectation[:12])
    more = " …" if count > 12 else ""
    return (
        f"Strips on one t axis for {layer}: a signal of {size} pixels; "
        f"{counted(count, 'density')}, number {row + 1} brought out; "
        f"Γ as a heatmap of {counted(count, 'row')} and {size} columns; Γx = {expectations}{more}"
    )
