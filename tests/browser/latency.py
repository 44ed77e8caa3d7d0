"""How fast do Explore and Compare answer? In Chromium, beside a bare Streamlit page.

    python -m tests.browser.latency [--repeats 12] [--trainings 2]

Prints a table in Markdown. A time is from an event (a key, a click, a move of the mouse, all made
by the browser from the input that a device would send) to the end of the frame that paints the new
numbers. The bare page has one slider and three Plotly heatmaps; it is measured in the same run and
the same browser.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import FLAGS, PATIENCE, ROOT, chromium, serve
from tests.browser.test_engine import Engine, text
from tests.browser.visitors import busy_visitors, visitors

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
# `watch(part, kind)` notes every event of a kind with what the figures of a part show, and at the
# end of every frame how long ago the events were from which on they have shown something else. An
# event counts from the moment when the browser got it, before any script of the page.
SCRIPT = """(() => {
  const endOfFrame = (look) => requestAnimationFrame(() => {
    const noted = [...pending];  // an event after the frame's script is not in the frame
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => look(noted);
    port2.postMessage(null);  // which comes after the frame is painted
  });
  const shown = (part) => {
    const roots = [...document.querySelectorAll(part)].map((each) => each.shadowRoot ?? each);
    const all = (names) => roots.flatMap((root) => [...root.querySelectorAll(names)]);
    return [
      ...all("canvas").map((canvas) => canvas.values ?? null),
      ...all("figure img").map((image) => image.hidden || image.src),
      ...all("figure svg").map((overlay) => overlay.innerHTML),
      ...all(".js-plotly-plot").map((plot) =>
        plot.querySelector(".heatmaplayer image") && plot._fullData?.[0].z),
    ];
  };
  let pending = [], watched = null;
  const differ = (one, two) =>
    one.length !== two.length || one.some((value, k) => value !== two[k]);
  const note = (event) => {
    if (watched?.kind === event.type && pending.length < watched.most)
      pending.push({ time: event.timeStamp, before: shown(watched.part) });
  };
  for (const kind of ["keydown", "click", "change", "pointerrawupdate"])
    addEventListener(kind, note, true);
  const look = (noted) => {
    if (!watched) return;
    const now = performance.now(), present = shown(watched.part);
    const done = noted.filter((each) => pending.includes(each) && differ(each.before, present));
    watched.times.push(...done.map(({ time }) => now - time));
    pending = pending.filter((each) => !done.includes(each));
    endOfFrame(look);
  };
  window.watch = (part, kind, most = Infinity) => {
    pending = [];
    watched = { part, kind, most, times: [] };
    endOfFrame(look);
  };
  window.watchedTimes = () => watched.times;
  window.stopWatching = () => {
    const { times } = watched;
    watched = null;
    return times;
  };
  window.firstView = (ready) => new Promise((resolve) => {
    const attempt = () => (ready() ? resolve(performance.now()) : endOfFrame(attempt));
    endOfFrame(attempt);
  });
})()"""
BARE_DRAWN = "() => document.querySelectorAll('.js-plotly-plot .heatmaplayer image').length === 3"
DRAWN = """() => {
  const view = document.querySelector('PART')?.shadowRoot;
  return view?.querySelector('.after canvas, .field canvas')?.values?.some(Boolean);
}"""
EXPLORE, COMPARE = (DRAWN.replace("PART", part) for part in (".pair", ".columns"))
FRAME = 1000 / 60
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
Act = Callable[[], object]


@contextlib.contextmanager
def opened(browser: Browser, link: str, ready: str) -> Iterator[tuple[Page, float]]:
    """A page in a fresh context, and milliseconds until its figures were painted."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(SCRIPT)
    page.goto(link, wait_until="commit")
    spent = page.evaluate(f"firstView({ready})")
    rest(page)
    yield page, spent
    context.close()


def rest(page: Page) -> None:
    """Wait until the view has told the server where it rests, and the server is done with it."""
    page.wait_for_timeout(400)
    page.wait_for_function(
        "!document.querySelector("
        "'[data-test-script-state]:not([data-test-script-state=notRunning])')"
    )


def took(page: Page, act: Act, part: str = ".pair", kind: str = "click") -> float:
    """Milliseconds from an event of a kind to new numbers in a part of the page."""
    page.evaluate("([part, kind]) => watch(part, kind, 1)", [part, kind])
    act()
    page.wait_for_function("watchedTimes().length", polling=20)
    (spent,) = page.evaluate("stopWatching()")
    rest(page)
    return spent


def press(page: Page, name: str, key: str) -> Act:
    return lambda: page.get_by_role("slider", name=name).press(key)


def button(page: Page, group: str, name: str) -> Act:
    options = page.get_by_role("group", name=group, exact=True)
    return options.get_by_role("button", name=name, exact=True).click


def pen_times(page: Page, moves: int) -> list[float]:
    """Times of the moves of a mouse that draws digits, some of them at each speed."""
    chance = random.Random(0)
    box = page.locator(".draw_pad .pad > canvas").bounding_box()

    def go(x: float, y: float) -> None:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])

    go(0.3, 0.2)
    page.mouse.down()
    for k in range(20):  # code that the browser has yet to compile
        go(0.3 + k / 50, 0.2)
    page.evaluate("watch('.pair', 'pointerrawupdate')")
    for k in range(moves):
        share = k / moves
        go(0.5 + 0.25 * np.cos(12 * share) + 0.004 * (k % 2), 0.2 + 0.6 * share)
        page.wait_for_timeout(chance.uniform(2, 30))
    page.mouse.up()
    page.wait_for_timeout(500)
    return page.evaluate("stopWatching()")


def class_times(page: Page, repeats: int, part: str = ".pair") -> list[float]:
    return [took(page, button(page, "Class", str(k % 10)), part) for k in range(repeats)]


def control_times(page: Page, repeats: int) -> Iterator[tuple[str, list[float], float]]:
    """Each control of Explore with its times and the aim of their median."""
    some = range(max(3, repeats // 3))
    slider = press(page, "Step of training", "ArrowLeft")
    yield "step", [took(page, slider, kind="keydown") for _ in range(repeats)], 50
    yield "class", class_times(page, repeats), 50
    number = page.get_by_label("Example", exact=True)

    def another() -> None:
        number.press("ArrowUp")
        number.press("Tab")

    yield "example", [took(page, another, kind="change") for _ in range(repeats)], 50
    for way in (
        "over the input",
        "difference",
        "swipe",
        "per pixel",
        "densities",
        "weight for a class",
        "field",
    ):
        times, other = [], "per pixel" if way == "field" else "field"
        for _ in some:
            button(page, "Show", other)()
            rest(page)
            times.append(took(page, button(page, "Show", way)))
        yield f"show: {way}", times, 50
    button(page, "Show", "weight for a class")()
    rest(page)
    label = page.get_by_label("for class", exact=True)
    times = [took(page, lambda: label.press("ArrowDown"), kind="keydown") for _ in range(10)]
    yield "for class", times, 50
    button(page, "Show", "field")()
    rest(page)
    toggle = page.get_by_label("Contours")
    yield "contours", [took(page, toggle.click) for _ in range(repeats)], 50
    toggle.set_checked(False)
    for name, aim in (("One density", 50), ("Effect of each pixel", 50), ("All classes", 200)):
        times = []
        for _ in some:
            press(page, "Step of training", "ArrowLeft")()  # its fields are not known yet
            rest(page)
            times.append(took(page, button(page, "More", name), ".detail .part"))
            button(page, "More", name)()
            rest(page)
        yield name, times, aim


def choose_model(page: Page, key: str) -> float:
    """Time of a choice of the next or the previous model by a key."""
    models = page.get_by_label("Model", exact=True)
    return took(page, lambda: models.press(key), kind="keydown")


def compare_times(browser: Browser, server: str, repeats: int) -> Iterator[tuple[str, list[float]]]:
    link = f"{server}/compare?models=4"
    with opened(browser, link, COMPARE) as (page, _):
        slider = press(page, "Step of training", "ArrowLeft")
        times = [took(page, slider, ".columns", "keydown") for _ in range(repeats)]
        yield "Compare, 4 models: step", times
        yield "Compare, 4 models: class", class_times(page, repeats, ".columns")


def memory(server: str) -> float:
    """MB of the process that serves this address."""
    port = server.rpartition(":")[2]
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.ZombieProcess):
            if port in each.cmdline():
                return each.memory_info().rss / 2**20
    raise LookupError(f"No process serves {server}.")


def memory_per_visitor(folder: Path, further: int = 20) -> float:
    """MB of a fresh server per visitor after the first few, each of whom sees some classes."""
    with serve(folder) as server, visitors(server, 3) as first:
        for visitor in first * 10:
            visitor.change()
        before = memory(server)
        with visitors(server, further) as others:
            for visitor in others * 3:
                visitor.change()
            return (memory(server) - before) / further


def engine_times(browser: Browser) -> list[float]:
    """Times of mNN (10, 5) and its field of 112 × 112 cells in the browser, without the app."""
    page = browser.new_page()
    data = (ROOT / "checkpoints/paper/logistic-el-mnn-10-5.safetensors").read_bytes()
    times = Engine(page).evaluate(ENGINE, [text(data), RUNS])
    page.close()
    return times


@contextlib.contextmanager
def trainings(count: int, folder: Path) -> Iterator[None]:
    """Trainings in the background, which do not end before the measurement."""
    command = [sys.executable, "-m", "densembed", "train", "logistic-el-mnn-10-5"]
    command += ["--epochs", "10000", "--batch-size", "8"]
    runs = [
        subprocess.Popen(
            [*command, "--seed", str(k), "--out", str(folder / f"{k}.safetensors")],
            cwd=ROOT,
            env={**os.environ, "DENSEMBED_RUNS": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for k in range(count)
    ]
    try:
        yield
        assert all(run.poll() is None for run in runs), "A training has ended."
    finally:
        for run in runs:
            run.kill()
            run.wait()


def row(name: str, times: list[float], most: float | None, high: float | None = None) -> None:
    """Print the median and the 95th percentile of some times with their aims."""
    middle, upper = median(times), float(np.percentile(times, 95))
    digits = 1 if middle < 10 else 0
    met = "" if most is None else "yes" if middle <= most and upper <= (high or upper) else "no"
    aim = "" if most is None else f"{most:.3g}" + (f", {high:.3g}" if high else "")
    numbers = f"{middle:.{digits}f} | {upper:.{digits}f} | {len(times)}"
    print(f"| {name} | {numbers} | {aim} | {met} |", flush=True)


def measure(browser: Browser, repeats: int, bare: str, ours: str, folder: Path) -> None:
    """Print the rows of the table."""
    firsts: dict[str, list[float]] = {bare: [], ours: []}
    for number in range(max(4, repeats // 2)):
        for link, ready in ((bare, BARE_DRAWN), (ours, EXPLORE)):
            with opened(browser, link, ready) as (_, spent):
                if number:  # the first one warms server and browser
                    firsts[link].append(spent)
    with opened(browser, bare, BARE_DRAWN) as (page, _):
        slider = press(page, "Number", "ArrowRight")
        row("bare page: slider", [took(page, slider, "body", "keydown") for _ in range(10)], None)
    row("bare page: first view", firsts[bare], None)
    row("first view", firsts[ours], 0.5 * median(firsts[bare]))
    row("the engine: mNN (10, 5) and its field", engine_times(browser), 2.5)
    with opened(browser, f"{ours}/?tour=0&from=draw", EXPLORE) as (page, _):
        row("pen to field, while drawing", pen_times(page, 20 * repeats), 16, 33)
    alone: list[float] = []
    with opened(browser, f"{ours}/?tour=0", EXPLORE) as (page, _):
        for name, times, aim in control_times(page, repeats):
            row(name, times, aim)
            if name == "class":
                alone = times
    first_times: list[float] = []
    again: list[float] = []
    for _ in range(3):
        with opened(browser, f"{ours}/?tour=0", EXPLORE) as (page, _):
            first_times += [choose_model(page, "ArrowDown") for _ in range(3)]
            again += [choose_model(page, key) for key in ["ArrowUp"] * 3 + ["ArrowDown"] * 2]
    row("another model, for the first time", first_times, 200)
    row("another model, again", again, 60)
    for name, times in compare_times(browser, ours, repeats):
        row(name, times, 100)
    with (
        busy_visitors(ours, 9),
        opened(browser, f"{ours}/?tour=0", EXPLORE) as (page, _),
    ):
        times = class_times(page, repeats)
        row("class, with nine other visitors", times, median(alone) + FRAME)  # as for one
    row("MB of the server per further visitor", [memory_per_visitor(folder)], 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=12, help="times of each control")
    parser.add_argument("--trainings", type=int, default=0, help="that run at the same time")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(4)]
        (folders[0] / "bare.py").write_text(BARE)
        bare = stack.enter_context(serve(folders[0], folders[0] / "bare.py"))
        ours = stack.enter_context(serve(folders[1]))
        stack.enter_context(trainings(arguments.trainings, folders[2]))
        print(f"Chromium {browser.version}, {os.cpu_count()} CPUs, {arguments.trainings} trainings")
        print("\n| milliseconds | median | 95 % | times | aim | met |")
        print("| --- | ---: | ---: | ---: | ---: | --- |")
        measure(browser, arguments.repeats, bare, ours, folders[3])
        browser.close()


if __name__ == "__main__":
    main()
