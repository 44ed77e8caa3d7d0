"""One picture under one density: choices in, the picture with both factors of Γ out."""

import streamlit as st

from densembed import lab
from densembed.figures.lab import parts_figure, product_figure
from pages.widgets.common.page import CHART
from pages.widgets.lab.controls import Controls
from pages.widgets.lab.signal import FAMILY_CHOICES, digit_pixels

EXAMPLES = 20


def picture_tab(controls: Controls) -> None:
    pictures, bench = st.columns([7, 3], gap="medium")
    with bench, st.container(key="lab-bench"):
        numbers = st.container(key="lab-verdict", gap="xsmall")
        seen = _bench(controls)
    with numbers:
        with st.container(horizontal=True, gap="medium"):
            st.metric("R(x)", f"{seen.expectation:.4f}", width="content")
            st.metric("Mass ΣΓₘₙ", f"{seen.gamma.sum():.4f}", width="content")
        total = float(seen.parts.sum())
        gap = lab.readable(lab.rounded(seen.expectation - total))
        st.caption(
            f"R(x) is the ink that φ expects to see; Σ Γₘₙ xₘₙ over the pixels is {total:.4f}: "
            f"difference {gap} (Section 2.2)."
        )
    with pictures:
        product, parts = st.columns(2, gap="small")
        with product:
            st.plotly_chart(
                product_figure(seen), key="product", config=CHART,
                alt="A digit with the masses of its columns above it, of its rows beside it, and "
                "their outer product laid over it",
            )  # fmt: skip
        with parts:
            st.plotly_chart(
                parts_figure(seen), key="parts", config=CHART,
                alt=f"The product of mass and ink in every pixel; they sum to {total:.4f}",
            )  # fmt: skip


def _bench(controls: Controls) -> lab.Picture:
    left, right = st.columns(2)
    with left:
        digit = controls.whole("digit", "Digit", 0, 9, 3, "The picture xₘₙ (Section 2.2).")
    with right:
        sample = controls.whole(
            "sample", "Example", 1, EXAMPLES, 1, "Which of its test images (Section 2.2)."
        )
    pixels = digit_pixels(digit, sample - 1)
    height, width = pixels.shape
    family = controls.choice(
        "family", "Family", FAMILY_CHOICES, "logistic",
        "φ(t, u) = f(t) g(u), both of one family (Section 2.2, eq. 10).",
    )  # fmt: skip
    columns = st.columns(2)
    with columns[0]:
        loc_t = controls.number(
            "mu_t", "μₜ, pixels", 0.0, float(width), 17.0, 0.25,
            "Moves f along the columns, and Γₙ with it (eq. 20).",
        )  # fmt: skip
        scale_t = controls.number(
            "s_t", "sₜ, pixels", 0.05, width / 2, 2.0, 0.05, "Widens f along the columns (eq. 20)."
        )
    with columns[1]:
        loc_u = controls.number(
            "mu_u", "μᵤ, pixels", 0.0, float(height), 10.0, 0.25,
            "Moves g down the rows, and Γₘ with it (eq. 20).",
        )  # fmt: skip
        scale_u = controls.number(
            "s_u", "sᵤ, pixels", 0.05, height / 2, 1.5, 0.05, "Widens g along the rows (eq. 20)."
        )
    truncate = controls.flag(
        "truncate", "Truncate to the picture",
        "Divides each factor by its mass within the picture; the paper does not (eq. 6).",
    )  # fmt: skip
    return lab.picture(pixels, family, (loc_t, loc_u), (scale_t, scale_u), truncate)
