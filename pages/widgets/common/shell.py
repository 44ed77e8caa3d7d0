"""The HTML document of the pages and the JavaScript that it imports."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from densembed.web.modules import script
from pages.widgets.common.component import FOLDERS
from pages.widgets.common.link import base_path
from pages.widgets.live.routes import early
from pages.widgets.live.routes import routes as live_routes

FOREVER = "public, max-age=31536000, immutable"


def routes(pages: Iterable[str]) -> list[Route]:
    """The script with all modules, and the document at the address of each page, for `st.App`.

    The document is Streamlit's own, with this script before Streamlit's. It is also at addresses
    that no page has, and /explore leads to the first page.

    Args:
        pages: paths after the server's address, "" for the first page.
    """
    base = base_path()
    modules = script(**FOLDERS).encode()
    digest = hashlib.sha256(modules).hexdigest()[:16]
    compressed = gzip.compress(modules)
    address = f"{base}/modules/{digest}.js"
    head = (
        f'<head><script type="importmap">{json.dumps({"imports": {"densembed": address}})}</script>'
        f'<script type="module" src="{address}"></script>'
    )
    static = Path(str(files("streamlit"))) / "static"
    html = (static / "index.html").read_text(encoding="utf-8")
    html = html.replace("<head>", head + _preloads(static / "static/js", html), 1)

    def document(request: Request) -> Response:
        content = html
        if request.url.path.strip("/") == base.strip("/"):
            loaded = json.dumps(early(request.query_params, base)).replace("<", "\\u003c")
            data = f'<script type="application/json" id="early">{loaded}</script></head>'
            content = html.replace("</head>", data, 1)
        return HTMLResponse(content, headers={"Cache-Control": "no-cache"})

    def to_first(request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{base}/{query}")

    def all_modules(request: Request) -> Response:
        # A page that was open when the server was updated asks with the digest of its document.
        current = request.path_params["digest"] == digest
        headers = {"Cache-Control": FOREVER if current else "no-cache", "Vary": "Accept-Encoding"}
        small = "gzip" in request.headers.get("accept-encoding", "")
        if small:
            headers["Content-Encoding"] = "gzip"
        content = compressed if small else modules
        return Response(content, media_type="text/javascript", headers=headers)

    return [
        Route(f"{base}/modules/{{digest}}.js", all_modules),
        *live_routes(base),
        Route(f"{base}/{{first:first}}", to_first),
        *(Route(f"{base}/{page}", document) for page in pages),
        # Streamlit says that there is no such page, and shows the first one.
        Route(f"{base}/{{page:page}}", document),
    ]


class _Path(Convertor[str]):
    """A part of an address that matches a regular expression."""

    def __init__(self, regex: str):
        self.regex = regex

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("first", _Path("explore/?"))
# Not the address of a file, nor of Streamlit's own services.
register_url_convertor("page", _Path(r"(?!_|auth/|oauth2callback)[\w-]+/?"))


def _preloads(folder: Path, html: str) -> str:
    """Links to the scripts by which Streamlit shows components, which it asks for one by one."""
    names = [path.name for path in folder.glob("BidiComponent.*.js")]
    for name in names:  # which grows
        text = (folder / name).read_text("utf-8")
        imported = re.findall(r"""(?:from|import)["'`]\./([\w.-]+\.js)["'`]""", text)
        names += [
            each for each in dict.fromkeys(imported) if each not in html and each not in names
        ]
    return "".join(
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in names
    )
