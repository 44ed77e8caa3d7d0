"""The views of Explore and Compare, which run in the browser and report where they come to rest."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from urllib.parse import parse_qsl, quote, urlencode

import streamlit as st
import torch
from torch import Tensor

from densembed.data.scaling import LARGEST
from densembed.runs import gallery
from densembed.training.checkpoint import Checkpoint
from densembed.training.header import CheckpointError
from densembed.web.site import INPUT
from pages.widgets.common.callbacks import callback
from pages.widgets.common.component import component
from pages.widgets.common.link import base_path, plain
from pages.widgets.inputs.checkpoints import (
    KEPT,
    group_of,
    is_deleted_upload,
    opened,
    report_deleted_uploads,
    takes_signals,
    titles,
    uploads,
)
from pages.widgets.inputs.choose import UPLOAD
from pages.widgets.inputs.test_images import test_images
from pages.widgets.live.routes import urls_of

MODELS = ("model", "models", "first", "second", "third", "fourth")
"""Parameters that name models."""
OWN = (*MODELS, "field", "more", "open", "density", "grid")
"""Parameters of its own that a view has again when the visitor comes back to it."""
MODEL = {"explore": "model", "compare": "first"}
"""The parameter of each view that names the model whose inputs it shows."""
DETAIL = {"explore": "more", "compare": "open"}
"""The parameter of each view that names the detail below it."""
COMMON = ("classes", "export")
"""Details of both views, which the visitor takes along."""
SERVERS = ("tour", "printed", "beside", "handful")
"""Parameters that the views do not know: those of widgets of the page."""
STREAMLITS = ("embed", "embed_options")
"""Parameters that Streamlit keeps for itself."""
_component = component("pages/live/live", isolate_styles=False)


@dataclass(frozen=True)
class Report:
    """Where a view came to rest: the parameters of its link, and the input of the models.

    `pixels` are bytes of an image, or measured values of a signal as float32.
    """

    parameters: dict[str, str]
    pixels: bytes
    label: str | None

    def input(self, checkpoint: Checkpoint) -> Tensor | None:
        """The input (C, H, W) uint8, or None if the model takes others.

        It is a scaled signal (C, L) if the model takes signals.
        """
        header = checkpoint.header
        kind = torch.float32 if header.scaling else torch.uint8
        if len(self.pixels) != kind.itemsize * prod(header.input_shape):
            return None
        pixels = torch.frombuffer(bytearray(self.pixels), dtype=kind).reshape(header.input_shape)
        if header.scaling is None:
            return pixels
        if not pixels.isfinite().all():
            return None
        # As in the browser.
        return header.scaling(pixels.double()).clamp(-LARGEST, LARGEST).float()


def reported(view: str) -> Report | None:
    """The last report of a view since the page was opened; None until the browser has sent one."""
    _restore_link()
    return _read(st.session_state.get(f"{view}-report"))


def _read(report: object) -> Report | None:
    """What a browser reported; None for anything else."""
    if not isinstance(report, dict) or not isinstance(report.get("link"), str):
        return None  # it comes from a browser
    try:
        pixels = base64.b64decode(report.get("pixels") or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
    label = report.get("label")
    link = report["link"].encode(errors="replace").decode()  # without lone surrogates
    parameters = {
        name: value
        for name, value in parse_qsl(link)
        # A report may have been on its way when the visitor removed a file.
        if name.lower() not in STREAMLITS and not is_deleted_upload(value)
    }
    return Report(parameters, pixels, label if isinstance(label, str) else None)


def show_view(
    view: str,
    defaults: Mapping[str, str],
    details: Mapping[str, str],
    upload: Tensor | None = None,
    unlike: Tensor | None = None,
) -> None:
    """Show a view.

    Args:
        view: "explore" or "compare".
        defaults: keys of the models that it shows if its link does not name them.
        details: titles of the details that the page shows below it, by their slugs.
        upload: the input (C, H, W) uint8 that the visitor uploaded.
        unlike: the input that the visitor drew, if it is unlike the training images. The pad says
            so: a message above it would move it under the pen.
    """
    report_deleted_uploads(defaults)
    if st.session_state["arrived"]:
        last = dict(st.session_state.get(f"{view}-own", {}))
        if detail := st.session_state.get("detail"):
            last[DETAIL[view]] = detail
        _complete(last)
        signals = _takes_signals(view, defaults)
        if st.session_state.get("signals", signals) == signals:
            _complete(st.session_state.get("input", {}))
        follow_link()
        _keep_input(st.query_params.to_dict())
    if followed := st.session_state.get("followed"):
        # The visitor may leave the page before the view has reported it.
        _keep_own(view, followed)
        _keep_input(followed)
    data = {
        "view": view,
        "models": _models([*st.query_params.values(), *defaults.values()]),
        "defaults": dict(defaults),
        "link": urlencode(
            {name: value for name, value in st.query_params.items() if name not in SERVERS}
        ),
        "order": st.session_state.get("order", 0),
        "upload": _text(upload),
        "unlike": _text(unlike),
        "details": dict(details),
    }
    _component(data=data, key=view, on_report_change=callback(_keep, view))
    st.session_state["link-read"] = True
    st.session_state["signals"] = _takes_signals(view, defaults)


def _complete(parameters: Mapping[str, str]) -> None:
    """Add to the link the parameters that it does not have."""
    for name, value in parameters.items():
        if name not in st.query_params and not is_deleted_upload(value):
            st.query_params[name] = value


def _takes_signals(view: str, defaults: Mapping[str, str]) -> bool:
    """Whether the input of the view is a signal, which is none for a view of pictures."""
    return takes_signals(st.query_params.get(MODEL[view], defaults[MODEL[view]]))


def _text(pixels: Tensor | None) -> str:
    return "" if pixels is None else base64.b64encode(pixels.numpy().tobytes()).decode()


def follow_link(change: Callable[[dict[str, str]], dict[str, str]] = dict) -> None:
    """Make the view follow the page's link.

    Args:
        change: computes the new parameters of the link from the present ones.
    """
    _restore_link()  # or a change that the view has not reported yet would be lost
    link = change(st.query_params.to_dict())
    if link != st.query_params.to_dict():
        st.query_params.from_dict(link)
    st.session_state["order"] = st.session_state.get("order", 0) + 1
    st.session_state["followed"] = link


def _restore_link() -> None:
    """Put back the link that the view is to follow, until it reports that it does.

    A request that the browser sent before it heard of that link carries the link of before.
    """
    followed = st.session_state.get("followed")
    if followed is None:
        return
    link = _of_page() | {name: value for name, value in followed.items() if name not in SERVERS}
    if link != st.query_params.to_dict():
        st.query_params.from_dict(link)


def _of_page() -> dict[str, str]:
    """The parameters of the link that belong to widgets of the page."""
    return {name: value for name, value in st.query_params.items() if name in SERVERS}


def _keep(view: str) -> None:
    report = st.session_state[view].report
    if isinstance(report, dict) and report.get("order") != st.session_state.get("order", 0):
        _follow_late(view, report)
        return
    st.session_state.pop("followed", None)
    last = st.session_state.get(f"{view}-report")
    if isinstance(last, dict) and last.get("order") != st.session_state.get("order", 0):
        st.session_state[f"{view}-before"] = last
    st.session_state[f"{view}-report"] = report
    if report := reported(view):
        st.query_params.from_dict(_of_page() | report.parameters)
        _keep_input(report.parameters)
        _keep_own(view, report.parameters)
        detail = report.parameters.get(DETAIL[view])
        st.session_state["detail"] = detail if detail in COMMON else None


def _follow_late(view: str, report: dict) -> None:
    """Follow what the visitor changed in the view before it heard that the page changed its link.

    The models are those that the page has chosen, and so is an uploaded picture.
    """
    earlier = [st.session_state.get(f"{view}-{name}") for name in ("report", "before")]
    order = report.get("order")
    same = [one for one in earlier if isinstance(one, dict) and one.get("order") == order]
    last, late = _read(same[0] if same else None), _read(report)
    if not last or not late:
        return
    before, after = last.parameters, late.parameters
    changed = {name for name in before | after if before.get(name) != after.get(name)} - {*MODELS}
    if changed:
        kept = {name: after[name] for name in changed if name in after}
        if after.get("from") == UPLOAD and not st.session_state.get("signals"):
            kept.pop("ink", None)  # the page sends the picture, if it was not removed meanwhile
        follow_link(lambda link: {k: v for k, v in link.items() if k not in changed} | kept)


def _keep_own(view: str, parameters: Mapping[str, str]) -> None:
    own = {name: value for name, value in parameters.items() if name in OWN}
    st.session_state[f"{view}-own"] = own


def _keep_input(parameters: Mapping[str, str]) -> None:
    st.session_state["input"] = {name: value for name, value in parameters.items() if name in INPUT}


def _models(also: list[str]) -> dict[str, dict]:
    """What the browser needs of every model, by its key."""
    base = base_path()
    models = {}
    for key, title in titles(also).items():
        if upload := uploads().get(key):
            dataset, name = test_images(upload.checkpoint), ""
            none = "no-signals" if upload.checkpoint.header.scaling else "none"
            of = dataset.name if dataset else none
            place = {
                "url": None,
                "content": base64.b64encode(upload.data).decode(),
                "samples": f"{base}/samples/of-data/{of}",
                "story": KEPT,
            }
        else:
            entry = gallery.find(key)
            if entry is None:
                continue
            name = entry.name
            try:
                version = entry.path.stat().st_mtime_ns
            except OSError:
                continue  # deleted in this moment
            place = {"content": "", "story": gallery.DESCRIPTIONS.get(key, "")}
            place |= urls_of(key, version, base)
        place["networks"] = f"{base}/networks/{quote(key)}"
        models[key] = {"title": title, "name": name, "group": group_of(key), **place}
    return models


def model_of(parameters: Mapping[str, str], name: str, default: str) -> tuple[str, Checkpoint]:
    """The key and the checkpoint of the model that a link names, else of the default one.

    The view follows the link again if the model was deleted, and reports that.
    """
    key = parameters.get(name, default)
    try:
        return key, opened(key)
    except CheckpointError:
        if not st.session_state["arrived"]:  # then it follows in any case
            follow_link()
    try:
        return default, opened(default)
    except CheckpointError as error:
        st.error(plain(str(error)))
        st.stop()
