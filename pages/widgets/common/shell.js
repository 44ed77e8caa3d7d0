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
let left = null;  // a page's address as it was when another page was chosen
history.pushState = function (state, title, url) {
  const same = new URL(url ?? "", location.href).pathname === location.pathname;
  // The next page's parameters arrive before its path.
  if (left && !same) history.replaceState(history.state, "", left);
  // An answer to the page that Back left would open it again in the history.
  if (asked && !left && !same) return;
  if (!same) left = null;
  (same ? history.replaceState : push).call(history, state, title, url);
};

// Streamlit sends the change of a widget in a later task, as a request for the page that it shows
// then. After another page was requested, this would bring the old page back, so it is not sent.
// Streamlit's message is a ClientState, whose field 3 is the page: a hash of 32 characters.
const PAGE = new RegExp(`${String.fromCharCode(3 << 3 | 2, 32)}([0-9a-f]{32})`);
// The choice in a list whose key ends like this opens another page. It is a text, field 6 of a
// widget's state. A report before that page has arrived would open the present page again.
const CHOICE = `-compare-with${String.fromCharCode(6 << 3 | 2)}`;
const ANSWER = 10_000;  // ms after which no page is expected any more
let leaving = false;  // the next request is the one for another page
/** @type {string | null} */
let asked = null;  // the page that was requested and has not yet arrived
/** @type {WebSocket | undefined} */
let socket;
const { send } = WebSocket.prototype;
WebSocket.prototype.send = function (data) {
  const text = data instanceof Uint8Array ? new TextDecoder("latin1").decode(data) : "";
  const hash = PAGE.exec(text)?.[1];
  if (hash) {
    if (this !== socket) {
      asked = null;
      back();
    }
    if (leaving) asked = hash;
    else if (asked && hash !== asked) return;
    else asked = null;
    leaving = false;
    socket = this;
    if (!left && text.includes(CHOICE)) {
      const from = left = location.href;
      setTimeout(() => { if (left === from) left = null; }, ANSWER);
    }
  }
  send.call(this, data);
};
const leave = () => {
  leaving = true;
  setTimeout(() => { leaving = false; });
};

// Streamlit writes the address of the first page without its path. In a new tab, the link would
// open the present page, and below, a click on it would count as one on a link of this page.
for (const kind of ["pointerover", "focusin"]) addEventListener(kind, ({ target }) => {
  const first = 'a[data-testid="stPageLink-NavLink"]:is([href=""], [href^="?"])';
  const link = target instanceof Element ? target.closest(first) : null;
  if (link) link.setAttribute("href",
    new URL(`../${link.getAttribute("href")}`, import.meta.url).href);
}, true);

addEventListener("popstate", () => {
  left = null;
  leave();
});
addEventListener("click", (event) => {
  const { target } = event;
  if (!(target instanceof Element)) return;
  const link = target.closest("a");
  const elsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey;
  if (link?.href && link.origin === location.origin && !link.target && !link.download
    && !elsewhere) {
    left = link.pathname === location.pathname ? null : location.href;
    if (left) leave();
  }
  // On a phone the menu lies over the page, and Streamlit leaves it open over the next one.
  if (target.closest('[data-testid="stSidebarNavLink"]') && innerWidth <= 768)
    setTimeout(() => {
      const close = document.querySelector('[data-testid="stSidebarCollapseButton"] button');
      if (close instanceof HTMLElement) close.click();
    });
}, true);

export const UNREACHABLE =
  "The server cannot be reached: check the connection, then reload the page.";
/** Tells "back" when the server may be reached again. */
export const line = new EventTarget();
export const back = () => line.dispatchEvent(new Event("back"));
addEventListener("online", back);
// Without a server, Streamlit's dialog tells how to start one. Its text stays, hidden, as Streamlit
// writes it at every try.
new MutationObserver(() => {
  const title = [...document.querySelectorAll('[role="dialog"] > [slot="title"]')]
    .find(({ textContent }) => textContent === "Connection error");
  const text = title?.nextElementSibling;
  if (!(text instanceof HTMLElement) || text.style.display) return;
  const own = text.cloneNode();
  own.textContent = UNREACHABLE;
  text.style.display = "none";
  text.after(own);
}).observe(document.body, { childList: true });

/**
 * Focus an element as soon as there is one.
 * @param {() => Element | null | undefined} find
 * @param {number} most ms to wait
 */
function focusSoon(find, most) {
  const end = performance.now() + most;
  const seek = () => {
    const found = find();
    if (found instanceof HTMLElement) found.focus();
    else if (performance.now() < end) requestAnimationFrame(seek);
  };
  requestAnimationFrame(seek);
}

// Streamlit puts the box of a button at the end of the page, where Tab comes last: after a key it
// gets the focus. After a click, a field for text in it does.
const BOX = '[data-testid="stPopoverBody"]';
const FOCUSED = `${BOX} :is(input, textarea, button, a[href])`;
const TYPED = `${BOX} [data-testid="stTextInput"] input`;
addEventListener("click", ({ detail, target }) => {
  if (target instanceof Element && target.closest('[data-testid="stPopoverButton"]'))
    focusSoon(() => document.querySelector(detail ? TYPED : FOCUSED), 2000);
});

// Tab behind the last field of a box, or before the first, closes it, and goes on from its button.
const OPENED = '[data-testid="stPopoverButton"][aria-expanded="true"]';
addEventListener("keydown", (event) => {
  const { key, shiftKey, target } = event;
  const box = key === "Tab" && target instanceof Element ? target.closest(BOX) : null;
  const button = document.querySelector(OPENED);
  const fields = document.querySelectorAll(FOCUSED);
  if (!box || !(button instanceof HTMLElement)
    || target !== fields[shiftKey ? 0 : fields.length - 1]) return;
  if (shiftKey) event.preventDefault();
  button.focus();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
}, true);

// A button that was pressed is disabled for a moment, or replaced, as Pause by Resume, and loses
// the focus. After a key, it gets it back, or its row does if another button is in its place: a key
// that is pressed twice must not press that one, too.
addEventListener("click", ({ detail, target }) => {
  const button = target instanceof Element ? /** @type {HTMLButtonElement | null} */ (
    target.closest('[data-testid="stButton"] button')) : null;
  const row = button?.closest('[data-testid="stHorizontalBlock"]');
  if (detail || !button || !row) return;
  const name = button.textContent;
  focusSoon(() => {
    const { activeElement, body } = document;
    const same = button.isConnected && button.textContent === name;
    if (activeElement !== body && activeElement !== button) return activeElement;
    if (same && (activeElement === button || button.disabled)) return null;
    // Until the page is drawn, the buttons may be those of before.
    const drawn = document.querySelector('[data-test-script-state="notRunning"]');
    if (activeElement === body && !drawn) return null;
    if (same) return button;
    row.setAttribute("tabindex", "-1");
    return row;
  }, ANSWER);
});

/**
 * Whether another page was chosen and has not arrived yet. What the left page sends until its
 * elements are gone would interrupt the first run of the other one.
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
