"""Where we read the paper otherwise than it is printed."""

import streamlit as st

from densembed.training.config import RunConfig

USUAL = RunConfig()
DEVIATIONS = f"""
- **s(β).** The paper prints (p, q) = (0, 1), which would make the scale a constant, while its
  parameter counts include β. We read (1, 0): s = N σ(β).
- **μ(α).** The appendix has μ = N σ(4α), the main text leaves out the 4. We follow the appendix,
  which was run.
- **Batch size** is not printed; we take {USUAL.batch_size}. **Initial deviations** 0.4 and 0.3
  are read as standard deviations.
- **Training "paper"** is Adam with one cycle up to {USUAL.learning_rate:g} for
  {USUAL.epochs} epochs. **"tuned"** changes the learning rates and where the densities start, the
  same for all rows, chosen on 10,000 training images that were held out; never the number of
  parameters. **"colour"** is "tuned" with the rates chosen on held-out images of Table 2.
"""


def show() -> None:
    with st.expander("What we read differently from what is printed"):
        st.markdown(DEVIATIONS)
