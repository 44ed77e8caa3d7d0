"""How fast do Explore and Compare answer? In Chromium, beside a bare Streamlit page.

    python -m tests.browser.latency [--repeats 15]

The bare page has one slider and three Plotly heatmaps. Both are measured in one run, in the same
browser: from the event in the page (a key, a click, a move of the pen) to the frame that paints the
new numbers. Prints a table, with the target of each row.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import FLAGS, PATIENCE, ROOT, choose, chromium, serve
from tests.browser.test_engine import Engine, text

WARM = 20_000
BARE = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

number = st.slider("Number", 0, 100, 50, key="number")
for column, key in zip(st.columns(3), "abc"):
    z = np.random.default_rng(number).random((112, 112), np.float32)
    z[0, 0] = number
    column.plotly_chart(go.Figure(go.Heatmap(z=z)), key=key)
"""
# What the figures of a part show, to compare with what they show later.
SHOWN = """
  window.shown = (part) => {
    const roots = [...document.querySelectorAll(part)].map((each) => each.shadowRoot ?? each);
    const all = (names) => roots.flatMap((root) => [...root.querySelectorAll(names)]);
    return [
      ...all("canvas").map((canvas) => canvas.values),
      ...all("figure img").map((image) => image.hidden || image.src),
      ...all("figure svg").map((overlay) => overlay.innerHTML),
      ...all(".js-plotly-plot").map((plot) =>
        plot.querySelector(".heatmaplayer image") && plot._fullData?.[0].z),
    ];
  };
  window.differ = (one, two) =>
    one.length !== two.length || one.some((value, k) => value !== two[k]);
"""
WATCH = f"""
([part, event]) => {{
  {SHOWN}
  let began = null;
  const note = () => {{ began = performance.now(); }};
  document.addEventListener(event, note, {{ capture: true, once: true }});
  const before = shown(part);
  window.took = new Promise((resolve) => {{
    const start = performance.now();
    const look = () => {{
      const now = performance.now();
      if (now - start > 20000) return resolve(20000);  // never: a row that is NO
      if (began === null || !differ(before, shown(part))) return requestAnimationFrame(look);
      resolve(now - began);
    }};
    look();
  }});
}}
"""
STROKE = f"""async (moves) => {{
  {SHOWN}
  const pad = document.querySelector(".draw_pad").shadowRoot.querySelector("canvas");
  pad.setPointerCapture = () => {{}};
  const fire = (kind, x, y) => {{
    const box = pad.getBoundingClientRect();
    pad.dispatchEvent(new PointerEvent(kind, {{ pointerId: 1, bubbles: true,
      clientX: box.left + x * box.width, clientY: box.top + y * box.height }}));
  }};
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  fire("pointerdown", 0.3, 0.2);
  for (let k = 1; k <= moves; k++) {{
    await frame();
    const before = shown(".pair"), began = performance.now();
    fire("pointermove", 0.5 + 0.25 * Math.cos(k / 9), 0.2 + 0.6 * k / moves);
    do await frame();
    while (!differ(before, shown(".pair")) && performance.now() - began < 1000);
    times.push(performance.now() - began);
  }}
  fire("pointerup", 0.5, 0.8);
  return times;
}}"""
RUNS = 200
ENGINE = """({ engine, bytes }, [file, runs]) => {
  const network = engine.readCheckpoint(bytes(file).buffer).network();
  const pixels = Float32Array.from({ length: 784 }, (_, k) => Number(k % 28 > 8 && k % 28 < 14));
  const out = new Float32Array(112 * 112);
  return Array.from({ length: runs }, (_, k) => {
    pixels[k] = 0.5;
    const began = performance.now();
    network.field(network.run(pixels), { out });
    return performance.now() - began;
  });
}"""
BARE_DRAWN = "() => document.querySelectorAll('.js-plotly-plot .heatmaplayer image').length === 3"


def drawn(part: str) -> str:
    return (
        f"() => document.querySelector('{part}')?.shadowRoot?.querySelector('.after canvas, "
        ".field canvas')?.values?.some(Boolean)"
    )


def took(page: Page, act: Callable[[], None], part: str = ".pair", event: str = "click") -> float:
    """Milliseconds from an event of that kind to new numbers in a part of the page."""
    page.evaluate(WATCH, [part, event])
    act()
    spent = page.evaluate("window.took")
    quiet(page)
    return spent


def quiet(page: Page) -> None:
    """Until the script has ended and a moment has passed in which a person looks."""
    page.wait_for_timeout(500)  # after this the view has told the server
    page.wait_for_function("!document.querySelector('[data-test-script-state=running]')")


@contextlib.contextmanager
def opened(browser: Browser, link: str, ready: str) -> Iterator[tuple[Page, float]]:
    """A page in a fresh context, and milliseconds until its figures were there."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(link, wait_until="commit")
    page.wait_for_function(ready, polling="raf")
    spent = page.evaluate("performance.now()")
    quiet(page)
    yield page, spent
    context.close()


def press(page: Page, name: str, key: str) -> Callable[[], None]:
    return lambda: page.get_by_role("slider", name=name).press(key)


def pill(page: Page, group: str, name: str) -> Callable[[], None]:
    return lambda: choose(page, group, name)


def select(page: Page, label: str, option: str) -> Callable[[], None]:
    box = page.get_by_label(label, exact=True)
    return lambda: box.select_option(option) and None


def classes(page: Page, repeats: int, part: str = ".pair") -> list[float]:
    return [took(page, pill(page, "Class", str(k % 10)), part) for k in range(repeats)]


def controls(page: Page, repeats: int) -> Iterator[tuple[str, list[float], float]]:
    """Each control of Explore with its times and the target of their median."""
    slider = press(page, "Step of training", "ArrowLeft")
    yield "step slider", [took(page, slider, event="keydown") for _ in range(repeats)], 50
    yield "class", classes(page, repeats), 50
    plus = page.get_by_label("Example", exact=True)

    def another() -> None:
        plus.press("ArrowUp")
        plus.press("Tab")

    yield "example", [took(page, another, event="change") for _ in range(repeats)], 50
    ways = (
        "over the input", "difference", "swipe", "per pixel", "densities", "weight for a class",
        "field",
    )  # fmt: skip
    for way in ways:
        times, other = [], "per pixel" if way == "field" else "field"
        for _ in range(max(3, repeats // 3)):
            pill(page, "Show", other)()
            quiet(page)
            times.append(took(page, pill(page, "Show", way)))
        yield f"show: {way}", times, 50
    pill(page, "Show", "weight for a class")()
    quiet(page)
    times = [took(page, select(page, "for class", str(k % 10)), event="change")
             for k in range(repeats)]  # fmt: skip
    yield "for class", times, 50
    pill(page, "Show", "field")()
    quiet(page)
    toggle = page.get_by_label("Contours")
    yield "contours", [took(page, toggle.click) for _ in range(repeats)], 50
    models = ("logistic-el-15-digits", "logistic-el-mnn-8-4")
    times = [
        took(page, select(page, "Model", models[k % 2]), event="change") for k in range(repeats + 2)
    ]
    yield "model, for the first time", times[:2], 200
    yield "model, again", times[2:], 60
    for name, target in (("One density", 50), ("Effect of each pixel", 50), ("All classes", 200)):
        times = []
        for _ in range(max(3, repeats // 3)):
            press(page, "Step of training", "ArrowLeft")()  # its fields are not known yet
            quiet(page)
            times.append(took(page, pill(page, "More", name), ".details .part"))
            pill(page, "More", name)()
            quiet(page)
        yield name, times, target


def compared(browser: Browser, server: str, repeats: int) -> Iterator[tuple[str, list[float]]]:
    for count in (2, 4):
        link = f"{server}/compare?models={count}"
        with opened(browser, link, drawn(".columns")) as (page, _):
            slider = press(page, "Step of training", "ArrowLeft")
            times = [took(page, slider, ".columns", "keydown") for _ in range(repeats)]
            yield f"Compare's slider, {count} models", times
            yield f"Compare's class, {count} models", classes(page, repeats, ".columns")


def memory(server: str) -> float:
    """MB of the process that serves this address."""
    port = server.rpartition(":")[2]
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.ZombieProcess):
            if port in each.cmdline():
                return each.memory_info().rss / 2**20
    raise LookupError(f"No process serves {server}.")


def crowd(browser: Browser, server: str, repeats: int) -> tuple[list[float], float]:
    """Times of a change of class in one session while nine others change theirs every 2 s; and the
    memory in MB of the server per session.

    They have done so for a while before the first one counts: a new tab's scripts are slow.
    """
    busy = """() => {
      let number = 0;
      setInterval(() => {
        const options = document.querySelectorAll("[role=group][aria-label=Class] button");
        options[++number % options.length].click();
      }, 2000);
    }"""
    link, before = f"{server}/?tour=0", memory(server)
    with contextlib.ExitStack() as stack:
        for _ in range(9):
            other, _ = stack.enter_context(opened(browser, link, drawn(".pair")))
            other.evaluate(busy)
        page, _ = stack.enter_context(opened(browser, link, drawn(".pair")))
        page.wait_for_timeout(WARM)
        return classes(page, repeats), (memory(server) - before) / 10


def engine_times(browser: Browser) -> list[float]:
    """Times of mNN (10, 5) and its field of 112 × 112 cells in the browser, without the app."""
    page = browser.new_page()
    data = (ROOT / "checkpoints/paper/logistic-el-mnn-10-5.safetensors").read_bytes()
    times = Engine(page).evaluate(ENGINE, [text(data), RUNS])
    page.close()
    return times


def line(name: str, times: list[float], limits: tuple[float, float], digits: int = 0) -> None:
    middle, high = median(times), float(np.percentile(times, 95))
    kept = middle <= limits[0] and high <= limits[1]
    print(
        f"{name:32}{middle:8.{digits}f}{high:8.{digits}f}{limits[0]:10.{digits}f}{limits[1]:8.{digits}f}"
        f"   {'yes' if kept else 'NO'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    no_limit = float("inf")
    with contextlib.ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        (folders[0] / "bare.py").write_text(BARE)
        bare = stack.enter_context(serve(folders[0], folders[0] / "bare.py"))
        ours = stack.enter_context(serve(folders[1]))
        firsts = {}
        for name, link, ready in (("bare", bare, BARE_DRAWN), ("ours", ours, drawn(".pair"))):
            firsts[name] = []
            for number in range(max(4, repeats // 3)):
                with opened(browser, link, ready) as (_, spent):
                    if number:  # the first one warms server and browser
                        firsts[name].append(spent)
        print(f"{'milliseconds':32}{'median':>8}{'95 %':>8}{'at most':>10}{'95 %':>8}   kept")
        line("the engine, input and field", engine_times(browser), (2.5, 16), digits=1)
        with opened(browser, bare, BARE_DRAWN) as (page, _):
            slider = press(page, "Number", "ArrowRight")
            own = [took(page, slider, "body", "keydown") for _ in range(repeats)]
        line("bare page: its slider", own, (no_limit, no_limit))
        line("bare page: first view", firsts["bare"], (no_limit, no_limit))
        line("first view", firsts["ours"], (0.5 * median(firsts["bare"]), no_limit))
        with opened(browser, f"{ours}/?tour=0&from=draw", drawn(".pair")) as (page, _):
            page.evaluate(STROKE, 20)  # which the browser compiles
            line("pen to field, while drawing", page.evaluate(STROKE, 10 * repeats), (16, 33))
        alone = []
        with opened(browser, f"{ours}/?tour=0", drawn(".pair")) as (page, _):
            for name, times, target in controls(page, repeats):
                line(name, times, (target, no_limit))
                if name == "class":
                    alone = times
        for name, times in compared(browser, ours, repeats):
            line(name, times, (100, no_limit))
        times, each = crowd(browser, ours, repeats)
        line("class, ten visitors at once", times, (1.2 * median(alone), no_limit))
        print(f"{'memory per visitor, MB':32}{each:8.1f}{'':8}{5:>10}")
        browser.close()


if __name__ == "__main__":
    main()
