"""How the app holds up: memory, patience and its end, with a real server and a real browser.

    python -m tests.stress.app memory       growth from the 5th to the 20th session
    python -m tests.stress.app busy         a page's answer while two runs train
    python -m tests.stress.app list         the Train page with 200 old runs
    python -m tests.stress.app end          Ctrl-C while a run trains

Prints what it measured. Not for pytest: times are the machine's.
"""

import argparse
import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, expect, sync_playwright

from densembed.runs import Run, execute
from densembed.training.config import RunConfig
from tests.browser.conftest import FLAGS, ROOT, chromium, serve

FIRST, LAST = 5, 20
WARM = 5
PAGES = ("/lab", "/train", "/")
ANSWERED = """() => document.querySelector("h1")?.offsetParent && document.querySelector(
  "[data-testid=stApp][data-test-script-state=notRunning]")"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=MEASURES, nargs="+")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for what in options.what:
            with _folder() as folder:
                MEASURES[what](browser, folder)
        browser.close()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="densembed-app-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _session(browser: Browser, *addresses: str) -> Iterator[Page]:
    """A new browser; each address that it visits is a session of the server's."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    for address in addresses:
        page.goto(address)
        # Looked at in each frame: the waits of Playwright's own grow to a second.
        page.wait_for_function(ANSWERED, timeout=90_000)
    yield page
    context.close()


def _visit(browser: Browser, address: str) -> tuple[float, float]:
    """Seconds from a click on a link, in a new browser, to a page whose script has run, and how
    many of a processor's the server took for it."""
    server = _server()
    begun, used = time.perf_counter(), sum(server.cpu_times()[:2])
    with _session(browser, address):
        return time.perf_counter() - begun, sum(server.cpu_times()[:2]) - used


def _server() -> psutil.Process:
    """The server that this process has started."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "streamlit" in child.cmdline():
                return child
    raise RuntimeError("The server is gone.")


def memory(browser: Browser, folder: Path) -> None:
    keys = sorted(path.stem for path in (ROOT / "checkpoints/paper").glob("*.safetensors"))
    seen = []
    with serve(folder) as address:
        for number in range(1, LAST + 1):
            with _session(browser, *(f"{address}/?model={key}" for key in keys)):
                pass
            seen.append(_server().memory_info().rss / 2**20)
            print(f"session {number:2}: {seen[-1]:7.1f} MB", flush=True)
    print(
        f"memory over {len(keys)} checkpoints: from session {FIRST} to {LAST} it grew by "
        f"{seen[LAST - 1] - seen[FIRST - 1]:.1f} MB"
    )


def busy(browser: Browser, folder: Path) -> None:
    os.environ["DENSEMBED_RUNS_PER_DEVICE"] = "2"
    runs = [
        Run.create(RunConfig(model="logistic-el-mnn-10-5", epochs=10_000), folder / "runs")
        for _ in range(2)
    ]
    with serve(folder) as address:
        for run in runs:
            with _session(browser, f"{address}/train?run={run.identifier}") as page:
                page.get_by_role("button", name="Start here").click()
                begun = time.perf_counter()
                expect(page.get_by_test_id("stProgress")).to_contain_text("step", timeout=90_000)
                print(f"a run has trained {time.perf_counter() - begun:.1f} s after the click")
        for link in ("/", "/?model=logistic-el-15-digits", "/train", "/lab", "/"):
            seconds, used = _visit(browser, address + link)
            print(f"two runs train: {link} answered in {seconds:.2f} s, of which {used:.2f} s work")
        for run in runs:
            run.stop()
    del os.environ["DENSEMBED_RUNS_PER_DEVICE"]


def old_list(browser: Browser, folder: Path) -> None:
    root = folder / "runs"
    first = Run.create(RunConfig(model="logistic-el-mnn-6-3", epochs=200), root)
    execute(str(first.path))
    for number in range(199):
        copy = root / f"20240101-{number // 60:02d}{number % 60:02d}00-{number:06x}"
        shutil.copytree(first.path, copy)
    for link in PAGES:  # each as the first visit of a fresh server
        with serve(folder) as address:
            _say("first visit", {link: _visit(browser, address + link)})
            if link == "/train":
                for _ in range(WARM):
                    _say("then", {page: _visit(browser, address + page) for page in PAGES})


def _say(when: str, visits: dict[str, tuple[float, float]]) -> None:
    said = [f"{page} {took:.2f} s ({used:.2f} s work)" for page, (took, used) in visits.items()]
    print(f"200 runs, {when}: {', '.join(said)}", flush=True)


def end(browser: Browser, folder: Path) -> None:
    with serve(folder) as address:
        run = Run.create(RunConfig(model="logistic-el-5", epochs=10_000), folder / "runs")
        with _session(browser, f"{address}/train?run={run.identifier}") as page:
            page.get_by_role("button", name="Start here").click()
            expect(page.get_by_test_id("stProgress")).to_contain_text("step")
        server = _server()
        family = [server, *server.children(recursive=True)]
        begun = time.perf_counter()
        server.send_signal(signal.SIGINT)
        _, alive = psutil.wait_procs(family, timeout=20)
        print(
            f"Ctrl-C: {len(family)} processes ended in {time.perf_counter() - begun:.2f} s, "
            f"{len(alive)} are left; the run is {run.state()}"
        )


MEASURES = {"memory": memory, "busy": busy, "list": old_list, "end": end}

if __name__ == "__main__":
    main()
