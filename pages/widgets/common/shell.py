"""The HTML document of the pages: Streamlit's own, with a script that runs before it."""

from collections.abc import Iterable
from importlib.resources import files

import streamlit as st
from starlette.responses import HTMLResponse
from starlette.routing import Route

SCRIPT = """
<script>
// Streamlit tries every part of the address until it finds its server, and each miss is an error in
// the console: tell it.
window.__streamlit = { BACKEND_BASE_URL: location.origin + "PLACE/" };
// Streamlit adds an entry to the browser's history whenever a page writes a parameter into its
// address. Only another page is another entry: so Back leaves a page at the first click.
const push = history.pushState;
let left = null;  // a page's address as it was when a link to another page was clicked
history.pushState = function (state, title, url) {
  const same = new URL(url ?? "", location.href).pathname === location.pathname;
  // The next page's parameters arrive before its path.
  if (left && !same) history.replaceState(history.state, "", left);
  if (!same) left = null;
  (same ? history.replaceState : push).call(history, state, title, url);
};
addEventListener("popstate", () => { left = null; });
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (link && link.origin === location.origin && link.pathname !== location.pathname)
    left = location.href;
  // On a phone the menu lies over the page, and Streamlit leaves it open over the next one.
  const close = '[data-testid="stSidebarCollapseButton"] button';
  if (event.target.closest?.('[data-testid="stSidebarNavLink"]') && innerWidth <= 768)
    setTimeout(() => document.querySelector(close)?.click());
}, true);
// A chart is as wide as on the screen: on paper it is scaled, or its right side would be cut off.
addEventListener("beforeprint", () => {
  for (const chart of document.querySelectorAll(".js-plotly-plot .svg-container")) {
    const [width, height] = [chart.offsetWidth, chart.offsetHeight];
    chart.style.setProperty("--shape", `${width} / ${height}`);
    chart.style.setProperty("--wide", `${width}px`);
    for (const part of chart.querySelectorAll(":scope > .main-svg"))
      part.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll(".js-plotly-plot .main-svg"))
    part.removeAttribute("viewBox");
});
</script>
"""


def routes(pages: Iterable[str]) -> list[Route]:
    """The document at the address of each page, for `st.App`.

    Args:
        pages: paths after the server's address, "" for the first page.
    """
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    base = f"/{base}" if base else ""
    html = (files("streamlit") / "static" / "index.html").read_text(encoding="utf-8")
    html = html.replace("<head>", "<head>" + SCRIPT.replace("PLACE", base), 1)

    def document(_request) -> HTMLResponse:
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})

    return [Route(f"{base}/{page}", document) for page in pages]
