"""The real server and a real Chromium.

A page that writes an error to the console, or shows a traceback, fails its test.
"""

import contextlib
import functools
import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright
from playwright.sync_api import expect as expect_once

from densembed.data import load_dataset
from densembed.runs.gallery import Entry
from densembed.web.site import write_site
from tests.browser.gallery import (
    COLOUR,
    FIXED,
    LETTERS,
    LINEAR,
    MLP,
    MOVING,
    PAPER,
    ROOT,
    SMALL,
    made,
)
from tests.waiting import PAUSE, wait_for, work

# The headless shell has no browser window, so it needs less processor time for each page.
SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
NAMES = (*SHELLS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",  # no network but the app
]
# Tabs of one context share a process, which compiles Streamlit's code once.
ONE_PROCESS = ["--renderer-process-limit=1"]
PATIENCE = 30_000
"""Milliseconds that one try of `expect` waits; it tries again while something happens."""
PICTURE_FILE = ".st-key-upload input[type=file]"
MODEL_FILE = "[class*=st-key-brought] input[type=file]"
LONGEST = 120_000
"""Milliseconds after which a click or a change of address hangs; not a measure of speed."""
# A line of a traceback in our own code. A tab that closes while the server writes to it leaves a
# traceback of Streamlit's own in the log.
OURS = re.compile(rf'File "{re.escape(str(ROOT))}/(?:app\.py|pages/|densembed/).*')
BOX = """element => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x, y, width, height };
}"""
# The boxes, all at one moment, or nothing where the page is not at rest: its script runs, or a box
# is not the same in successive frames, with the browser idle between them.
AT_REST = """async elements => {
  const boxes = () => elements.map(element => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x, y, width, height };
  });
  const busy = () => document.querySelector(
    "[data-test-script-state]:not([data-test-script-state=notRunning]), [data-testid=stSkeleton]");
  // A page that paints nothing may get no frame; then it is at rest, too.
  const soon = (wait) => new Promise((done) => { wait(done); setTimeout(done, 500); });
  const first = boxes();
  for (let k = 0; k < 3; k++) {
    await document.fonts.ready;
    await soon(requestIdleCallback);
    await soon(requestAnimationFrame);
    await soon(requestAnimationFrame);
    if (busy() || JSON.stringify(boxes()) !== JSON.stringify(first)) return [];
  }
  return first;
}"""
ALIKE = """(canvas, [width, values, bound]) => canvas.width === width
  && canvas.values?.length === values.length
  && canvas.values.every((value, k) => Math.abs(value - values[k]) <= bound)"""
expect_once.set_options(timeout=PATIENCE)


class Patient:
    """Playwright's assertions, each tried again as long as server or browser work."""

    def __init__(self, assertions):
        self.assertions = assertions

    def __getattr__(self, name: str):
        assertion = getattr(self.assertions, name)

        def holds(*args, **options) -> None:
            for _ in range(LONGEST // PATIENCE):
                before = work()
                try:
                    return assertion(*args, **options)
                except AssertionError:
                    if work() == before:
                        raise
            return assertion(*args, **options)

        return holds


def expect(actual, message: str | None = None) -> Patient:
    return Patient(expect_once(actual, message))


def until(page: Page, condition: Callable):
    """What a condition on a page is once it is true; it is tried for at least `LONGEST`."""
    tries = 0

    def look():
        nonlocal tries
        if value := condition():
            return value
        tries += 1  # a look at the page is work, too, which `wait_for` takes for progress
        assert tries < LONGEST / 1000 / PAUSE, "The page does not come to meet the condition."
        # Playwright's own pause lets the page's events in, which a sleep does not.
        return page.wait_for_timeout(1000 * PAUSE)

    return wait_for(look)


def chromium() -> str:
    """The path of a Chromium. Without one the tests are skipped; in CI that is a failure."""
    paths = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES)]
    if path := next(filter(None, paths), None):
        return path
    reason = "No Chromium was found: install chromium, or name it with CHROMIUM=/path/to/it."
    if "CI" in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *ONE_PROCESS])
        yield browser
        browser.close()


@contextlib.contextmanager
def serve(
    folder: Path,
    script: Path = ROOT / "app.py",
    base: str = "",
    program: Sequence[str | Path] | None = None,
    gallery: Path = ROOT / "checkpoints/paper",
) -> Iterator[str]:
    """A fresh server with an empty folder of runs and an empty cache; its address.

    Args:
        base: the path below which it serves the pages, as "/fields".
        program: starts the server in place of Streamlit, in `folder` and with its own places, and
            takes `--port`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {
        "DENSEMBED_GALLERY": gallery,
        "DENSEMBED_RUNS": folder / "runs",
        "DENSEMBED_DATA": folder / "data",
    }
    streamlit = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true"]
    streamlit += ["--server.baseUrlPath", base, "--server.port"]
    environment = {**os.environ, **{name: str(place) for name, place in places.items()}}
    with open(folder / "log.txt", "wb") as log:
        server = subprocess.Popen(
            [*map(str, [*program, "--port"] if program else streamlit), str(port)],
            cwd=folder if program else ROOT,
            env=None if program else environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: _answers(f"http://localhost:{port}{base}/_stcore/health", server))
        yield f"http://localhost:{port}{base}"
        assert not OURS.findall((folder / "log.txt").read_text())
    finally:
        server.send_signal(signal.SIGINT)
        try:
            wait_for(lambda: server.poll() is not None)
        finally:
            server.kill()


def _answers(address: str, server: subprocess.Popen) -> bool:
    assert server.poll() is None, "the server ended"
    with contextlib.suppress(OSError):
        # One silent answer is not all of the wait.
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=10)
        return True
    return False


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Where that server keeps its runs, its data and its log."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def server(browser, folder) -> Iterator[str]:
    """One server for most tests: each has its own session, all see the same runs."""
    with serve(folder) as address:
        yield address


@pytest.fixture
def visit(browser, server) -> Iterator[Callable[..., Page]]:
    """Opens a link in a new tab, waits for the page, and checks for faults at the end."""
    with visitor(browser, server) as open_link:
        yield open_link


@functools.cache
def first_tab(browser: Browser) -> Page:
    """A blank tab that keeps the process and the cache of the tabs of `new_tab` alive."""
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.route("**", lambda route: route.fulfill(body=""))
    page.goto("http://localhost/")  # the site of all servers of the tests, whatever their ports
    return page


def new_tab(browser: Browser, server: str, width: int, theme: str = "light") -> Page:
    """An empty tab of a visitor who comes to that server for the first time."""
    first = first_tab(browser)
    page = first.context.new_page()
    page.set_default_timeout(LONGEST)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    wire = first.context.new_cdp_session(page)
    # What an earlier visitor left; the files that the browser keeps stay.
    stored = {"origin": server, "storageTypes": "cookies,local_storage"}
    wire.send("Storage.clearDataForOrigin", stored)
    wire.detach()
    return page


def new_phone(browser: Browser, width: int) -> Page:
    """An empty tab of a visitor with a touch screen, in a context that closes with it."""
    viewport = {"width": width, "height": 900}
    page = browser.new_page(
        viewport=viewport, reduced_motion="reduce", has_touch=True, is_mobile=True
    )
    page.set_default_timeout(LONGEST)
    return page


@contextlib.contextmanager
def visitor(browser, server: str) -> Iterator[Callable[..., Page]]:
    """Opens links in new tabs. A link that is `None` leaves the tab empty."""
    faults: list[str] = []
    pages: list[Page] = []

    def note(message) -> None:
        # Streamlit itself tries where below a deep link its server lies.
        if message.type == "error" and "/_stcore/" not in message.location["url"]:
            faults.append(message.text)

    def note_error(error) -> None:
        # Plotly draws a label under the pointer a moment later, even if Streamlit has removed the
        # chart meanwhile.
        if "_hoverlayer" not in str(error):
            faults.append(str(error))

    def open_link(link: str | None = "/", width: int = 1440, theme: str = "light") -> Page:
        page = new_tab(browser, server, width, theme)
        pages.append(page)
        page.on("popup", lambda popup: pages.append(popup))
        page.on("console", note)
        page.on("pageerror", note_error)
        if link is None:
            return page
        page.goto(server + link)
        return settle(page)

    try:
        yield open_link
        for page in pages:
            if not page.is_closed():
                assert page.get_by_test_id("stException").count() == 0
                assert not nonsense(page)
    finally:
        for page in pages:
            page.close()
    assert not faults


def nonsense(page: Page) -> list[str]:
    """What JavaScript writes for values that are missing, in the text of a page."""
    return re.findall(
        r".*\b(?:undefined|NaN|null|Infinity|\[object).*", page.locator("body").inner_text()
    )


def settle(page: Page) -> Page:
    """Wait until the page's script has run."""
    expect(page.locator("h1")).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    return page


def chart(page: Page, key: str):
    """The drawing of the chart of that key."""
    return page.locator(f".st-key-{key} .js-plotly-plot")


def drawn(page: Page, key: str) -> list[list[float]]:
    """The numbers of a heatmap as the browser has them, once it is painted."""
    heatmap = chart(page, key)
    expect(heatmap.locator(".heatmaplayer image")).to_be_visible()
    return heatmap.evaluate("plot => plot._fullData[0].z.map(row => Array.from(row))")


def numbers(page: Page, selector: str) -> np.ndarray:
    """The numbers of the first canvas below that element; empty before they are painted."""
    values, width = page.locator(f"{selector} canvas").first.evaluate(
        "canvas => [Array.from(canvas.values ?? []), canvas.width]"
    )
    return np.array(values).reshape(-1, width) if values else np.empty((0, width))


def painted(page: Page, selector: str) -> np.ndarray:
    """The numbers of a field once it is painted."""
    expect(page.locator(f"{selector} canvas").first).to_be_visible()
    until(page, lambda: numbers(page, selector).size)
    return numbers(page, selector)


def shows(page: Page, selector: str, expected: np.ndarray, within: float = 1e-5) -> None:
    """Wait until a field has these numbers, up to a share of the largest."""
    bound = within * float(abs(expected).max() or 1)
    figure = page.locator(f"{selector} canvas").first
    wanted = [expected.shape[1], expected.ravel().tolist(), bound]
    try:
        until(page, lambda: figure.evaluate(ALIKE, wanted))
    except AssertionError:
        np.testing.assert_allclose(numbers(page, selector), expected, 0, bound)
        raise


def choose(page: Page, group: str, name: str) -> None:
    """Press one of the buttons of a view."""
    options = page.get_by_role("group", name=group, exact=True)
    options.get_by_role("button", name=name, exact=True).click()


def width_needed(page: Page) -> int:
    return page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")


def places(page: Page, selector: str) -> list[dict]:
    """Where elements are once the page is at rest: what it loads late moves them."""
    locator = page.locator(selector)
    return until(page, lambda: locator.evaluate_all(AT_REST))


def open_upload(page: Page) -> None:
    """Open the field for a model, if it is closed, until it lies still."""
    way = page.locator("[class*=st-key-brought]")
    if way.locator("details").get_attribute("open") is None:
        way.locator("summary").click()
    places(page, "[class*=st-key-brought] [data-testid=stFileUploader]")


def bring(page: Page, file: dict | Path) -> None:
    """Upload a model."""
    open_upload(page)
    page.locator(MODEL_FILE).set_input_files(file)


def point(page: Page, selector: str, x: float, y: float) -> None:
    """Move the mouse to a place, in shares of the first such element in sight.

    Whatever the mouse does at a place that was measured begins here.
    """
    part = page.locator(selector).filter(visible=True).first

    def there() -> bool:
        """The page was at rest before the mouse moved, and what it points at has not moved."""
        try:
            part.scroll_into_view_if_needed()
        except Error as error:
            if "not attached" not in error.message:
                raise
            return False  # the element was replaced when the page was redrawn
        if not (before := part.evaluate_all(AT_REST)):
            return False
        (box,) = before
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        return part.evaluate_all(AT_REST) == before

    until(page, there)


def press(page: Page, selector: str, shares: list[tuple[float, float]]) -> None:
    """Drag along places, in shares of the element, without a release."""
    point(page, selector, *shares[0])
    box = page.locator(selector).filter(visible=True).first.evaluate(BOX)
    page.mouse.down()
    for x, y in shares[1:]:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=8)


def drag(page: Page, selector: str, shares: list[tuple[float, float]]) -> None:
    press(page, selector, shares)
    page.mouse.up()


FINGERS = """(element, [shares, button]) => {
  Element.prototype.setPointerCapture = () => {};  // takes no pointers that a script has made
  const { left, top, width, height } = element.getBoundingClientRect();
  const [first, second, last] = shares.map(([x, y]) => [left + x * width, top + y * height]);
  const send = (type, finger, [clientX, clientY]) => element.dispatchEvent(new PointerEvent(type, {
    pointerId: finger, isPrimary: finger === 1, clientX, clientY, button, bubbles: true }));
  send("pointerdown", 1, first);
  send("pointerdown", 2, second);
  send("pointermove", 2, second);
  send("pointermove", 1, last);
  send("pointerup", 2, second);
  send("pointerup", 1, last);
}"""


def fingers(page: Page, selector: str, *shares: tuple[float, float], button: int = 0) -> None:
    """One finger goes from the first place to the last, while another presses the second."""
    point(page, selector, *shares[0])
    page.locator(selector).filter(visible=True).first.evaluate(FINGERS, [shares, button])


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """A site with models of the digits, one of colour pictures and one with other classes."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "colour.safetensors").write_bytes(made("logistic-el-mnn-3-2", (3, 12, 21)))
    (folder / "letters.safetensors").write_bytes(made("logistic-el-3", (1, 28, 28)))
    keys = (MOVING, FIXED, SMALL, LINEAR, MLP)
    entries = [Entry(key, PAPER / f"{key}.safetensors") for key in keys]
    entries += [Entry(key, folder / f"{key}.safetensors") for key in (COLOUR, LETTERS)]
    write_site(folder / "out", entries, [load_dataset("digits")])
    return folder / "out"


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture(scope="session")
def address(built) -> Iterator[str]:
    handler = functools.partial(Silent, directory=built)
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def site(browser, address) -> Iterator[Callable[..., Page]]:
    """Opens a view by its link. No request may leave the site, no error be in the console."""
    faults: list[str] = []
    pages: list[Page] = []

    def open_link(
        link: str = "explore",
        width: int = 1440,
        at: str = address,
        theme: str = "light",
        is_phone: bool = False,
    ) -> Page:
        page = new_phone(browser, width) if is_phone else new_tab(browser, at, width, theme)
        pages.append(page)
        page.on("console", lambda message: message.type == "error" and faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: (
                faults.append(request.url)
                if not request.url.startswith((at, "data:", "blob:"))
                else None
            ),
        )
        page.goto(f"{at}index.html#{link}")
        expect(page.locator(".live")).to_be_visible()
        return page

    try:
        yield open_link
        for page in pages:
            assert page.is_closed() or not nonsense(page)
    finally:
        for page in pages:
            page.close()
    assert faults == []
