// Runs before Streamlit's own script.

// Streamlit tries every part of the address until it finds its server, and each miss is an error in
// the console: give it the address, from which this file is served as modules/DIGEST.js.
Object.assign(window, {
  __streamlit: { BACKEND_BASE_URL: new URL("..", import.meta.url).href },
});

// Streamlit adds an entry to the browser's history whenever a page writes a parameter into its
// address. Only another page is another entry, so that Back leaves a page at the first click.
const push = history.pushState;
/** @type {string | null} */
let left = null;  // a page's address as it was when a link to another page was clicked
history.pushState = function (state, title, url) {
  const same = new URL(url ?? "", location.href).pathname === location.pathname;
  // The next page's parameters arrive before its path.
  if (left && !same) history.replaceState(history.state, "", left);
  if (!same) left = null;
  (same ? history.replaceState : push).call(history, state, title, url);
};

// Streamlit sends the change of a widget in a later task. If another page is requested before that
// task, the change brings the old page back. So the request is passed on after the task.
let again = false;
/** @param {Event} event @param {() => void} repeat */
function postpone(event, repeat) {
  event.stopImmediatePropagation();
  event.preventDefault();
  setTimeout(() => {
    again = true;
    repeat();
    again = false;
  }, 10);  // the browser may hold a nested timer without a delay back by 4 ms
}
addEventListener("popstate", (event) => {
  if (again) return;
  left = null;
  postpone(event, () => dispatchEvent(new PopStateEvent("popstate", { state: event.state })));
});
addEventListener("click", (event) => {
  const { target } = event;
  if (!(target instanceof Element)) return;
  const link = target.closest("a");
  const elsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey;
  if (!again && link?.href && link.origin === location.origin && !link.target && !link.download
    && !elsewhere) {
    left = link.pathname === location.pathname ? null : location.href;
    if (left) return postpone(event, () => link.click());
  }
  // On a phone the menu lies over the page, and Streamlit leaves it open over the next one.
  if (target.closest('[data-testid="stSidebarNavLink"]') && innerWidth <= 768)
    setTimeout(() => {
      const close = document.querySelector('[data-testid="stSidebarCollapseButton"] button');
      if (close instanceof HTMLElement) close.click();
    });
}, true);

/**
 * Whether another page was chosen that has not arrived yet. If this one sends something then,
 * Streamlit shows it again instead.
 */
export const isLeft = () => left !== null;

// A chart is as wide as on the screen: on paper it is scaled, or its right side would be cut off.
/** @param {string} selector */
const charts = (selector) => /** @type {NodeListOf<HTMLElement>} */ (
  document.querySelectorAll(`.js-plotly-plot ${selector}`));
addEventListener("beforeprint", () => {
  for (const chart of charts(".svg-container")) {
    const [width, height] = [chart.offsetWidth, chart.offsetHeight];
    chart.style.setProperty("--shape", `${width} / ${height}`);
    chart.style.setProperty("--wide", `${width}px`);
    for (const part of chart.querySelectorAll(":scope > .main-svg"))
      part.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }
});
addEventListener("afterprint", () => {
  for (const part of charts(".main-svg")) part.removeAttribute("viewBox");
});
