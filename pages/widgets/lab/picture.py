"""The tab “One picture”: a picture under one density, with both factors of Γ."""

import streamlit as st

from densembed import lab
from densembed.figures.lab import parts_figure, product_figure
from pages.widgets.common.page import CHART
from pages.widgets.common.parameter import Flag, Numbers, Parameter, Slugs
from pages.widgets.lab.controls import KEPT, number
from pages.widgets.lab.signal import FAMILY_CHOICES, digit_pixels

EXAMPLES = 20


def picture_tab() -> None:
    pictures, bench = st.columns([7, 3], gap="medium")
    with bench, st.container(key="lab-bench"):
        numbers = st.container(key="lab-verdict", gap="xsmall")
        reading = _bench()
    with numbers:
        with st.container(horizontal=True, gap="medium"):
            st.metric("R(x)", f"{reading.expectation:.4f}", width="content")
            st.metric("Mass ΣΓₘₙ", f"{reading.gamma.sum():.4f}", width="content")
        total = float(reading.parts.sum())
        gap = lab.readable(lab.rounded(reading.expectation - total))
        st.caption(
            "R(x) is the mean ink under φ, with no ink outside the picture. "
            f"The sum Σ Γₘₙ xₘₙ over the pixels is {total:.4f}, a "
            f"difference of {gap} (Section 2.2)."
        )
    with pictures:
        product, parts = st.columns(2, gap="small")
        with product:
            st.plotly_chart(
                product_figure(reading),
                key="product",
                config=CHART,
                alt="A digit with the masses of its columns above it, of its rows beside it, and "
                "their outer product laid over it",
            )
        with parts:
            st.plotly_chart(
                parts_figure(reading),
                key="parts",
                config=CHART,
                alt=f"The product of mass and ink in every pixel; they sum to {total:.4f}",
            )


def _bench() -> lab.Picture:
    left, right = st.columns(2)
    with left:
        digit = Parameter("digit", "Digit", Numbers(0, 9), 3).draw(
            st.number_input, step=1, caption="The picture xₘₙ (Section 2.2).", **KEPT
        )
    with right:
        sample = Parameter("sample", "Example", Numbers(1, EXAMPLES), 1).draw(
            st.number_input, step=1, caption="Number of the test image (Section 2.2).", **KEPT
        )
    pixels = digit_pixels(digit, sample - 1)
    height, width = pixels.shape
    family = Parameter("family", "Family", Slugs(FAMILY_CHOICES), "logistic").draw(
        st.selectbox,
        caption="φ(t, u) = f(t) g(u), both of one family (Section 2.2, eq. 10).",
        **KEPT,
    )
    columns = st.columns(2)
    with columns[0]:
        loc_t = number(
            "mu_t",
            "μₜ, pixels",
            0.0,
            float(width),
            17.0,
            0.25,
            "Moves the factor f to the left or right (eq. 20).",
        )
        scale_t = number(
            "s_t", "sₜ, pixels", 0.05, width / 2, 2.0, 0.05, "The width of the factor f (eq. 20)."
        )
    with columns[1]:
        loc_u = number(
            "mu_u",
            "μᵤ, pixels",
            0.0,
            float(height),
            10.0,
            0.25,
            "Moves the factor g up or down (eq. 20).",
        )
        scale_u = number(
            "s_u", "sᵤ, pixels", 0.05, height / 2, 1.5, 0.05, "The width of the factor g (eq. 20)."
        )
    truncate = Parameter("truncate", "Truncate to the picture", Flag(), False).draw(
        st.toggle,
        caption="Divides each factor by its mass within the picture. The paper does not do this "
        "(eq. 6).",
        **KEPT,
    )
    return lab.picture(
        pixels, family, loc=(loc_t, loc_u), scale=(scale_t, scale_u), truncate=truncate
    )
