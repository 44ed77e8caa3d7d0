"""The HTML document of the pages and the JavaScript modules that it imports."""

import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from densembed.web.modules import modules
from pages.widgets.common.component import FOLDERS
from pages.widgets.live.routes import routes as live_routes

FOREVER = "public, max-age=31536000, immutable"


def routes(pages: Iterable[str]) -> list[Route]:
    """The modules, and the document at the address of each page, for `st.App`.

    The document is Streamlit's own, with an import map and a module that runs before Streamlit's.

    Args:
        pages: paths after the server's address, "" for the first page.
    """
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    base = f"/{base}" if base else ""
    scripts = modules(**FOLDERS)
    digest = hashlib.sha256(json.dumps(scripts).encode()).hexdigest()[:16]
    imports = {f"{name}/": f"{base}/modules/{digest}/{name}/" for name in ("densembed", "pages")}
    preload = "".join(
        f'<link rel="modulepreload" href="{base}/modules/{digest}/{name}">' for name in scripts
    )
    head = (
        f'<head><script type="importmap">{json.dumps({"imports": imports})}</script>'
        f'<script type="module" src="{imports["pages/"]}common/shell.js"></script>{preload}'
    )
    for name in scripts:  # with Streamlit's own script, not after it, one after another
        if name.startswith(("densembed/panels/", "pages/")):
            head += f'<link rel="modulepreload" href="{base}/modules/{digest}/{name}">'
    html = (files("streamlit") / "static" / "index.html").read_text(encoding="utf-8")
    html = html.replace("<head>", head, 1)

    def document(_request: Request) -> Response:
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})

    def module(request: Request) -> Response:
        if (script := scripts.get(request.path_params["name"])) is None:
            return Response("There is no such module.", 404)
        # A page that was open when the server was updated asks with the digest of its document.
        current = request.path_params["digest"] == digest
        headers = {"Cache-Control": FOREVER if current else "no-cache"}
        return Response(script, media_type="text/javascript", headers=headers)

    return [
        Route(f"{base}/modules/{{digest}}/{{name:path}}", module),
        *live_routes(base),
        *(Route(f"{base}/{page}", document) for page in pages),
    ]
