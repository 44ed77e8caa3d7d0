"""A tour for a first visit: five texts, one at a time, each pointing at a part of the page."""

import streamlit as st

from pages.widgets.common.parameter import Numbers, Parameter

STOPS = [
    ("the-input, .st-key-thumbnails", "This is the input of the network, 28 × 28 pixels. Choose "
     "another picture above, upload a photograph, or draw a digit."),
    ("stage", "The network looks where it is bright. This is its receptive field, the sum of its "
     "densities, before and after training on one colour scale."),
    ("stage", "Play shows how training moved the field, with the prediction of the network at each "
     "step."),
    ("showing", "Switch to densities and click one, or show the difference or the evidence for a "
     "class."),
    ("more", "To go further, look at one density, the effect of each pixel or all classes, or "
     "export files. Copy link saves this view. The page Compare shows models side by side."),
]  # fmt: skip
HTML = """
<div class="tour" role="dialog" aria-label="A tour of five steps" hidden>
  <span class="count"></span><span class="text" aria-live="polite"></span>
  <span class="buttons"><button type="button" class="skip">Skip</button
  ><button type="button" class="next">Next</button></span>
</div>
"""
CSS = """
.tour {
  position: fixed; z-index: 999990; top: 8px; right: 16px; width: min(560px, calc(100vw - 48px));
  box-sizing: border-box; padding: 10px 14px; border-radius: 8px; font: 14px/1.45 var(--st-font);
  color: var(--st-text-color); background: var(--st-secondary-background-color);
  border: 1px solid var(--st-primary-color); display: flex; gap: 12px; align-items: center;
}
.tour[hidden] {display: none;}
.text {flex: 1;}
.count {opacity: 0.7; white-space: nowrap;}
.buttons {display: flex; gap: 6px;}
button {
  font: inherit; color: inherit; background: none; cursor: pointer; padding: 4px 10px;
  border: 1px solid var(--st-border-color, #8884); border-radius: 6px;
}
.next {border-color: var(--st-primary-color); color: var(--st-primary-color);}
@media (max-width: 640px) {
  .tour {
    top: auto; bottom: 8px; left: 8px; right: 8px; width: auto; flex-wrap: wrap; gap: 6px 12px;
    padding: 8px 12px; font-size: 13px; line-height: 1.35;
  }
  .buttons {margin-left: auto;}
  .text {flex-basis: 100%; order: -1;}
}
"""
JS = """
const KEY = "densembed-tour";
export default function({ parentElement, data, setStateValue }) {
  const card = parentElement.querySelector(".tour");
  const find = (name) => card.querySelector(`.${name}`);
  if (card.stop === undefined || card.linked !== data.stop)
    card.stop = data.stop ?? (localStorage.getItem(KEY) ? 0 : 1);
  card.linked = data.stop;
  const phone = "(max-width: 640px)";  // there the card is at the bottom: the page goes on below it
  // A rule, and no mark on the part itself, which may not be there yet.
  const light = (stop) => {
    card.rule ??= document.head.appendChild(document.createElement("style"));
    const part = data.stops[stop - 1]?.[0];
    card.rule.textContent = part ? `
      .st-key-${part} {outline: 2px solid #5aa9e6; outline-offset: 4px; scroll-margin: 72px 8px;}
      @media ${phone} {
        .st-key-${part} {scroll-margin-bottom: 140px;}
        body [data-testid="stMainBlockContainer"] {padding-bottom: 140px;}
      }` : "";
  };
  const show = () => {
    card.hidden = !card.stop;
    light(card.stop);
    if (!card.stop) return;
    find("count").textContent = `${card.stop} of ${data.stops.length}`;
    find("text").textContent = data.stops[card.stop - 1][1];
    find("next").textContent = card.stop < data.stops.length ? "Next" : "Done";
  };
  const go = (stop) => {
    card.stop = card.linked = stop;
    localStorage.setItem(KEY, "seen");
    show();
    if (stop) document.querySelector(`.st-key-${data.stops[stop - 1][0]}`)
      ?.scrollIntoView({ block: "nearest" });
    setStateValue("stop", stop);
  };
  find("skip").onclick = () => go(0);
  find("next").onclick = () => go((card.stop + 1) % (data.stops.length + 1));
  card.onkeydown = (event) => { if (event.key === "Escape") go(0); };
  show();
  return () => light(0);
}
"""
TOUR = Parameter("tour", "Tour", Numbers(0, len(STOPS)), instead="the tour on a first visit")
_tour = st.components.v2.component("tour", html=HTML, css=CSS, js=JS)


def tour() -> None:
    """The tour, at the stop in the link (0 for none); without a stop, on a first visit only."""
    TOUR.check()
    stop = TOUR.value()
    if stop is None and "hide" in st.query_params:
        stop = 0  # a teacher hid parts of the page, which the tour would point at
    with st.container(key="tour"):
        _tour(
            data={"stop": stop, "stops": STOPS},
            key="tour-card", on_stop_change=_keep,
        )  # fmt: skip


def _keep() -> None:
    TOUR.write(st.session_state["tour-card"].stop)
