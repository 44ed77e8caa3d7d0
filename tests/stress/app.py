"""How the app holds up: memory, patience and its end, with a real server and a real browser.

    python -m tests.stress.app memory       the server's memory over 98 uploads (UPLOADS=20: fewer),
                                            one of a thousand snapshots, and 100 visits
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
import torch
from playwright.sync_api import Browser, Page, expect, sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from densembed.runs import Run, execute
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from tests.browser.conftest import FLAGS, ROOT, chromium, serve

UPLOADS, EVERY = 98, 10
MANY = 1000
"""Snapshots of one large file, whose fields alone take 50 MB."""
VISITS, TOGETHER = 100, 10
PATIENCE = 300_000
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
    """Uploads in one tab, one large upload in another, then short visits: what stays of them."""
    with serve(folder) as address:
        with _session(browser, f"{address}/?tour=0") as page:
            begun = _used()
            print(f"one visit: {begun:.0f} MB", flush=True)
            for number, file in enumerate(
                _crafted(folder, int(os.environ.get("UPLOADS", UPLOADS))), 1
            ):
                _bring(page, file)
                if number % EVERY == 0:
                    print(
                        f"{number} uploads: {_used():.0f} MB ({_used() - begun:+.0f})", flush=True
                    )
        print(f"that tab closed: {_settled():.0f} MB", flush=True)
        before = _settled()
        with _session(browser, f"{address}/?tour=0") as page:
            _bring(page, _long(folder))
            print(f"{MANY} snapshots: {_used():.0f} MB ({_used() - before:+.0f})", flush=True)
        after = _settled()
        print(f"that tab closed: {after:.0f} MB ({after - before:+.0f})", flush=True)
        visits = []
        for number in range(TOGETHER, VISITS + 1, TOGETHER):
            _short_visits(address)
            visits.append(_settled())
            if number in (TOGETHER, VISITS):
                print(f"{number} visits: {visits[-1]:.0f} MB", flush=True)
        print(f"from {TOGETHER} to {VISITS} visits: {visits[-1] - visits[0]:+.0f} MB", flush=True)


def _used() -> float:
    """The server's resident memory in MB."""
    return _server().memory_info().rss / 2**20


def _settled() -> float:
    """As `_used`, once the server has been at rest: a tab that closes is noticed a little later."""
    work = sum(_server().cpu_times()[:2])
    while True:
        time.sleep(2)
        if (now := sum(_server().cpu_times()[:2])) - work < 0.1:
            return _used()
        work = now


def _crafted(folder: Path, count: int) -> Iterator[Path]:
    """Files of models that ship, each with other numbers."""
    shipped = [
        Checkpoint.open(path)
        for path in sorted((ROOT / "checkpoints/paper").glob("*.safetensors"))
        if path.stat().st_size < 2**20
    ]
    for number in range(count):
        model = shipped[number % len(shipped)]
        tensors = {name: value * (1 + number / 1e4) for name, value in model.tensors.items()}
        yield _write(folder, Checkpoint(model.header, tensors))


def _long(folder: Path) -> Path:
    model = Checkpoint.open(ROOT / "checkpoints/paper/logistic-el-5.safetensors")
    ends = {name: (value[:1, :1], value[-1:, :1]) for name, value in model.tensors.items()}
    share = torch.linspace(0, 1, MANY)
    between = {
        name: first.lerp(last, share.reshape(-1, *[1] * (first.ndim - 1)))
        for name, (first, last) in ends.items()
    }
    header = model.header.model_copy(update={"steps": list(range(MANY)), "epochs": []})
    return _write(folder, Checkpoint(header, between))


def _write(folder: Path, checkpoint: Checkpoint) -> Path:
    path = folder / f"{checkpoint.digest[:12]}.safetensors"
    checkpoint.save(path)
    return path


def _bring(page: Page, file: Path) -> None:
    """Upload a model and wait until the page shows it."""
    key = f"upload-{Checkpoint.open(file).digest[:12]}"
    page.locator("[class*=st-key-brought] input[type=file]").set_input_files(file)
    page.wait_for_function(f"() => location.search.includes('{key}')", timeout=PATIENCE)
    page.wait_for_function(ANSWERED, timeout=PATIENCE)


def _short_visits(address: str) -> None:
    """Ten tabs at once, each of its own model, without a browser; all are closed at the end."""
    stream = address.replace("http", "ws") + "/_stcore/stream"
    keys = sorted(path.stem for path in (ROOT / "checkpoints/paper").glob("*.safetensors"))
    with contextlib.ExitStack() as tabs:
        opened = [
            tabs.enter_context(
                connect(stream, subprotocols=["streamlit"], max_size=None, proxy=None)
            )
            for _ in range(TOGETHER)
        ]
        for number, tab in enumerate(opened):
            state = ClientState(query_string=f"model={keys[number % len(keys)]}")
            tab.send(BackMsg(rerun_script=state).SerializeToString())
        for tab in opened:
            while ForwardMsg.FromString(tab.recv()).WhichOneof("type") != "script_finished":
                pass


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
