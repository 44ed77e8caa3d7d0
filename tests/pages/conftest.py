"""The app without a browser: Streamlit's AppTest, and charts as arrays."""

import asyncio
import base64
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlencode

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from torch import Tensor

from densembed.data import load_dataset
from densembed.markup import JOINER
from densembed.training.checkpoint import Checkpoint
from pages.widgets.live.routes import routes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def components():
    """Components of installed packages are looked for once, and not for each AppTest."""
    with pytest.MonkeyPatch.context() as patch:
        manifests = manifest_scanner.scan_component_manifests()
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: manifests)
        yield


@pytest.fixture(autouse=True)
def threads():
    """The router sets torch's threads for its process, which here is the tests' own."""
    count = torch.get_num_threads()
    yield
    torch.set_num_threads(count)


@pytest.fixture
def small_gallery(gallery_root, runs_root, trained_file) -> Path:
    """A gallery of one small model, `small`, and no runs."""
    shutil.copy(trained_file, gallery_root)
    return gallery_root


@pytest.fixture
def mnist_model(small_gallery, trained) -> Checkpoint:
    """`small`, turned into one that learned from MNIST, as `other` in the gallery."""
    header = trained.header.model_copy(deep=True)
    header.config = header.config.model_copy(update={"dataset": "mnist"})
    header.provenance.dataset_title = "MNIST"
    header.steps[-1] += 5
    checkpoint = Checkpoint(header, {name: value * 1.1 for name, value in trained.tensors.items()})
    checkpoint.save(small_gallery / "other.safetensors")
    return checkpoint


def visit(page: str = "", **link: str) -> AppTest:
    """The app as the link `/page?link` opens it."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if page:
        app.run().switch_page(f"pages/{page}.py")
        for name in ("link-read", "page"):  # a browser would have come here first
            if name in app.session_state:
                del app.session_state[name]
    app.query_params.clear()
    for key, value in link.items():
        app.query_params[key] = value
    return settle(app.run())


def settle(app: AppTest) -> AppTest:
    """Nothing went wrong on the page that a person would see as a program's fault."""
    assert not app.exception, app.exception[0].message
    return app


def charts(app: AppTest) -> dict[str, dict]:
    """The specification of every chart by its key."""
    figures = {}
    for element in app.get("plotly_chart"):
        figures[_key(element)] = json.loads(element.proto.spec)
    return figures


def _key(element) -> str:
    return element.proto.id.removeprefix("$$ID-").partition("-")[2]


def values(chart: dict, name: str = "z", trace: int = 0) -> np.ndarray:
    """The numbers that a chart draws."""
    data = chart["data"][trace][name]
    if not isinstance(data, dict):
        return np.array(data)
    shape = [int(size) for size in str(data.get("shape", "-1")).split(",")]
    return np.frombuffer(base64.b64decode(data["bdata"]), data["dtype"]).reshape(shape)


def scale(chart: dict) -> tuple[float, float]:
    return chart["data"][0]["zmin"], chart["data"][0]["zmax"]


def component(app: AppTest, name: str) -> dict:
    """What is sent to a component of our own."""
    protos = [element.proto for element in app.get("bidi_component")]
    (text,) = (proto.json for proto in protos if proto.component_name == name)
    return json.loads(text)


def live(app: AppTest) -> dict:
    """What Explore or Compare sends to its view in the browser."""
    return component(app, "live")


def report(app: AppTest, view: str, pixels: Tensor, label: str | None = None, **link) -> AppTest:
    """The page after the browser has reported where a view came to rest.

    Args:
        pixels: the input of the models.
        label: the class of a test image.
        link: the parameters of the view.
    """
    app.session_state[f"{view}-report"] = {
        "link": urlencode(link),
        "pixels": base64.b64encode(pixels.numpy().tobytes()).decode(),
        "label": label,
    }
    if "followed" in app.session_state:
        del app.session_state["followed"]  # the view has followed the page's link
    return settle(app.run())


def sample(label: int = 7, number: int = 1) -> Tensor:
    """A test image of the built-in digits."""
    test = load_dataset("digits").test
    return test.images[(test.labels == label).nonzero()[number - 1, 0]]


def explored(link: dict[str, str] | None = None, **reported) -> AppTest:
    """Explore as a link opens it, after the report of a test image of class 7."""
    return report(visit(**(link or {})), "explore", sample(), "7", **reported)


def views_own() -> set[str]:
    """The parameters that the views read in the browser."""
    names = ("explore", "compare", "input")
    text = "".join((ROOT / f"densembed/web/app/{name}.js").read_text() for name in names)
    parameters = re.findall(
        r"^ +(\w+): (?:\{ \.\.\.)?(?:oneOf|number|someOf|flag|text)\(", text, re.MULTILINE
    )
    return {*parameters, "right", "down", "size", "turn", "blur", "noise"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def get(url: str, body: bytes | None = None) -> Answer:
    """The answer to a URL that the page sends to the view; a request with a body is a POST."""
    path, _, query = url.partition("?")
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": unquote(path, errors="surrogateescape"),
        "query_string": query.encode(),
        "headers": [],
    }
    sent = []

    parts = [] if body is None else [{"type": "http.request", "body": body}]

    async def receive():
        if parts:
            return parts.pop()
        await asyncio.Event().wait()  # the visitor stays

    async def send(message):
        sent.append(message)

    # In another thread: in this one, Playwright's event loop goes on after the browser tests.
    with ThreadPoolExecutor(1) as executor:
        answer = Starlette(routes=routes(""))(scope, receive, send)
        executor.submit(asyncio.run, answer).result()
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], headers, b"".join(each["body"] for each in sent[1:]))


def stills(app: AppTest) -> dict[str, list[dict]]:
    """The fields that stand still, by their key. `values` (rows, columns) is as it is drawn, and
    `within` is how far it may be off; a coloured picture has none.
    """
    figures = {}
    for element in app.get("bidi_component"):
        if element.proto.component_name != "stills":
            continue
        data = json.loads(element.proto.json)
        for each in data["figures"]:
            if each["stack"]:
                packed = np.frombuffer(base64.b64decode(each["stack"]), "<u2")
                shares = packed.reshape(each["shape"]) / 65535
                each["values"] = each["low"] + (each["high"] - each["low"]) * shares
                each["within"] = (each["high"] - each["low"]) / 131000 + 1e-9
        figures[_key(element)] = data["figures"]
    return figures


def assert_shows(still: dict, expected: np.ndarray) -> None:
    """A field that stands still has these numbers, as far as 16 bits a cell can tell."""
    np.testing.assert_allclose(still["values"], expected, 0, still["within"])


def shown_input(app: AppTest) -> dict:
    """What is sent to draw the input, its ink from 0 to 1 as `values` (H, W) where it is grey."""
    (data,) = stills(app)["the-input"]
    return data


def pills(app: AppTest, key: str):
    return next(group for group in app.get("button_group") if group.key == key)


def headings(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def warnings(app: AppTest) -> list[str]:
    """What the page warns of, as a person reads it: without the marks that keep words plain."""
    return [as_read(warning.value) for warning in app.warning]


def as_read(markdown: str) -> str:
    """Escaped words as a person reads them."""
    return re.sub(r"\\(\W)", r"\1", markdown).replace(JOINER, "")
