"""How does a density become a layer?"""

import streamlit as st

from pages.widgets.common.link import close_link
from pages.widgets.common.page import begin
from pages.widgets.common.parameter import Parameter, Slugs
from pages.widgets.lab.picture import picture_tab
from pages.widgets.lab.signal import signal_tab

TABS = {"signal": "One signal", "picture": "One picture"}

STYLE = """
<style>
.st-key-lab [data-testid="stCaptionContainer"] {font-size: 0.8rem;}
.st-key-lab [data-testid="stCaptionContainer"] p {line-height: 1.35;}
@media screen {  /* on paper there is no gap to take back */
  .st-key-lab [data-testid="stCaptionContainer"] {margin-top: -0.7rem;}
  .st-key-lab [data-testid="stElementContainer"]:has([data-testid="stSlider"]) {
    margin-bottom: -1rem;
  }
}
.st-key-lab-verdict {border-left: 3px solid #d1892b; padding: 2px 0 2px 12px;}
.st-key-lab-verdict [data-testid="stMetricValue"] {font-size: 1.5rem;}
.st-key-lab-verdict [data-testid="stCaptionContainer"] {margin-top: -0.25rem;}
@media (max-width: 640px) {
  /* On a phone the sliders, each with its sentence, come first, directly under the figure. */
  .st-key-lab-bench > :has([data-testid="stSlider"]),
  .st-key-lab-bench > :has([data-testid="stSlider"])
    + [data-testid="stElementContainer"]:has([data-testid="stCaptionContainer"]) {order: -1;}
  .st-key-lab-bench {margin-top: -1.5rem;}
  /* The room above the second figure keeps it in line with the first where they are abreast. */
  .st-key-parts {margin-top: -72px;}
}
</style>
"""

begin(
    "How does a density become a layer?",
    "A density φᵢ is a function over the signal x whose integral, its mass, is 1. **Γ** is the "
    "mass of each density in each pixel; **Γx** is the mean of x under each density. All plots "
    "share one axis.",
)
st.html(STYLE)
with st.container(key="lab"):
    parameter = Parameter("tab", "tab", Slugs(TABS), "signal")
    parameter.check()
    if st.session_state["arrived"]:
        # As long as the page is open: the browser opens the default again when it changes.
        st.session_state["first-tab"] = TABS[parameter.value()]
    tabs = st.tabs(
        list(TABS.values()),
        default=st.session_state["first-tab"],
        key="lab-tab",
        on_change="rerun",
    )
    for slug, tab, show in zip(TABS, tabs, (signal_tab, picture_tab), strict=True):
        if tab.open:
            st.session_state["tab"] = slug
            parameter.write(slug)
            with tab:
                show()
close_link()
