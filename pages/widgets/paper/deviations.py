"""Where we depart from the printed text of the paper."""

import streamlit as st

from densembed.training.config import RunConfig

USUAL = RunConfig()
DEVIATIONS = f"""
- **s(β).** The paper prints (p, q) = (0, 1), which would make the scale a constant, although its
  parameter counts include β. We use (1, 0): s = N σ(β).
- **μ(α).** The appendix has μ = N σ(4α); the main text omits the 4. We follow the appendix.
- **Batch size** is not printed; we use {USUAL.batch_size}. We take the **initial deviations** 0.4
  and 0.3 as standard deviations.
- **Recipe "paper"** uses Adam with a one-cycle schedule up to {USUAL.learning_rate:g} for
  {USUAL.epochs} epochs. **"tuned"** has other learning rates and initial densities, the same for
  all rows, chosen on 10,000 held-out training images; the number of parameters is the same.
  **"colour"** is "tuned" with the learning rates chosen on held-out images of Table 2.
"""


def show() -> None:
    st.header("Where we depart from the printed text", anchor="departures")
    st.markdown(DEVIATIONS)
