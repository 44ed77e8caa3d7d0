"""Controls for the network to train, in place of its name; any name is accepted in a link."""

import re
from collections.abc import Mapping

import streamlit as st

from densembed.functional.densities import FAMILIES
from densembed.functional.families import in_words
from densembed.models.names import Argument, check_name, fill, parse
from densembed.training.config import RunConfig
from pages.widgets.common.link import in_link, name_wrong, plain
from pages.widgets.train.pictures import KEPT

LINK = "network"
"""The parameter with the name of the network in a link."""
MOVING, FIXED, LINEAR, MLP, CNN, NAMED = "moving", "fixed", "linear", "mlp", "cnn", "name"
KINDS = {
    MOVING: "Densities that move with the input",
    FIXED: "Fixed densities",
    LINEAR: "Linear classifier",
    MLP: "MLP",
    CNN: "CNN",
    NAMED: "Another model, by name",
}
CONV_POOL = "conv-pool"
BEFORE = {
    "": "Nothing: the picture itself",
    CONV_POOL: "Adaptive convolution and pooling",
    "1": "1 adaptive stage",
    "2": "2 adaptive stages",
    "3": "3 adaptive stages",
}
TEMPLATES = {
    "linear": (LINEAR, ""),
    "mlp-{size}": (MLP, ""),
    "cnn-{maps}": (CNN, ""),
    "{family}-el-{frame}{size}": (FIXED, ""),
    "{family}-el-mnn-{frame}{size}-{size}": (MOVING, ""),
    "adaptive-conv-pool-{family}-el-{frame}{size}": (FIXED, CONV_POOL),
    "adaptive-conv-pool-{family}-el-mnn-{frame}{size}-{size}": (MOVING, CONV_POOL),
    "stages-{maps}-{family}-el-{frame}{size}": (FIXED, "stages"),
    "stages-{maps}-{family}-el-mnn-{frame}{size}-{size}": (MOVING, "stages"),
}
"""The kind of network, and what is before its densities, for each template with controls."""
MICRO = (
    "A micro network reads the picture with B₀ × B₀ densities of its own (B₀ on a signal) and "
    "places the other densities."
)
FRAMES = {"input": "the whole input", "mass": "a box around its mass"}
MAPS = (8, 16, 24)
DEFAULTS = {
    "new-kind": MOVING,
    "new-family": "logistic",
    "new-size": 10,
    "new-micro": 5,
    "new-frame": "input",
    "new-before": "",
    "new-units": 50,
    "new-layers": 2,
    "new-name": RunConfig().model,
    **{f"new-maps-{k}": count for k, count in enumerate(MAPS, 1)},
}


def pick_network() -> str:
    """Widgets for the network; returns its name, which is also written to the link."""
    state = st.session_state
    for key, value in DEFAULTS.items():
        state.setdefault(key, value)
    _follow_link()
    kind = st.selectbox("Network", KINDS, format_func=KINDS.get, key="new-kind", **KEPT)
    arguments: list[Argument] = []
    before = ""
    if kind == NAMED:
        st.text_input(
            "Name of the network",
            key="new-name",
            **KEPT,
            help="For example that of a plugin, or gaussian-el-mnn-scale-8-4.",
        )
    elif kind == MLP:
        arguments = [_number("Hidden units", "new-units")]
    elif kind == CNN:
        layers = st.segmented_control("Layers", (1, 2, 3), key="new-layers", required=True, **KEPT)
        arguments = [_maps(layers)]
    elif kind in (MOVING, FIXED):
        family, frame, before, sizes = _densities(kind)
        arguments = [family, frame, *sizes]
        if before.isdigit():
            arguments = [_maps(int(before)), *arguments]
            before = "stages"
    name = state["new-name"].strip() if kind == NAMED else fill(_template(kind, before), arguments)
    _write_link(name)
    return name


def _write_link(name: str) -> None:
    in_link(LINK)
    if name == RunConfig().model:
        st.query_params.pop(LINK, None)
    else:
        st.query_params[LINK] = name
    st.session_state["network-link"] = st.query_params.get(LINK)


def _template(kind: str, before: str) -> str:
    return next(template for template, value in TEMPLATES.items() if value == (kind, before))


def _densities(kind: str) -> tuple[str, str, str, list[int]]:
    """Widgets for the densities: their family and frame, what is before them, and B and B₀."""
    family = st.selectbox(
        "Family of densities",
        list(FAMILIES),
        key="new-family",
        **KEPT,
        format_func=lambda name: in_words(name).capitalize(),
        help="The shape of each density. The paper uses the logistic distribution.",
    )
    columns = st.columns(2)
    with columns[0]:
        sizes = [_number("B", "new-size", "B × B densities on a picture, B on a signal.")]
    if kind == MOVING:
        with columns[1]:
            sizes.append(_number("B₀", "new-micro", MICRO))
    frame = st.segmented_control(
        "The densities lie in",
        FRAMES,
        format_func=FRAMES.get,
        key="new-frame",
        required=True,
        help="The whole picture, as in the paper, or a box around the ink, which follows the ink "
        "if it is shifted or scaled.",
        **KEPT,
    )
    before = st.selectbox(
        "Before the densities",
        BEFORE,
        format_func=BEFORE.get,
        key="new-before",
        **KEPT,
        help="A stage is an adaptive convolution followed by adaptive pooling, whose windows are "
        "densities, too.",
    )
    return family, frame, before, sizes


def _number(label: str, key: str, text: str | None = None) -> int:
    # Streamlit would keep the value before one that is out of range: the config checks the range.
    return st.number_input(label, step=1, key=key, help=text, **KEPT)


def _maps(count: int) -> tuple[int, ...]:
    """Widgets for the number of maps per stage."""
    maps = []
    for k, column in enumerate(st.columns(count), 1):
        with column:
            label = f"Maps {k}" if count > 1 else "Maps"
            maps.append(_number(label, f"new-maps-{k}", "Feature maps of this stage."))
    return tuple(maps)


def network_fields(name: str) -> Mapping[str, str | int]:
    """Values of the widgets for a network with that name."""
    try:
        template, arguments = parse(name)
    except ValueError:
        template, arguments = "", []
    if template not in TEMPLATES:
        return {"new-kind": NAMED, "new-name": name}
    kind, before = TEMPLATES[template]
    fields: dict[str, str | int] = {"new-kind": kind, "new-before": before}
    sizes = [argument for argument in arguments if isinstance(argument, int)]
    keys = ("new-units",) if kind == MLP else ("new-size", "new-micro")
    fields |= dict(zip(keys, sizes, strict=False))
    for argument in arguments:
        if argument in FRAMES:
            fields["new-frame"] = argument
        elif isinstance(argument, str):
            fields["new-family"] = argument
        elif isinstance(argument, tuple):
            fields |= {f"new-maps-{k}": count for k, count in enumerate(argument, 1)}
            fields["new-layers" if kind == CNN else "new-before"] = (
                len(argument) if kind == CNN else str(len(argument))
            )
    return fields


def _follow_link() -> None:
    """Set the controls to the network of a new link."""
    name = in_link(LINK)
    if name is None or name == st.session_state.get("network-link"):
        return
    st.session_state["network-link"] = name
    try:
        check_name(name)
    except ValueError as error:
        del st.query_params[LINK]
        reason = str(error).partition(";")[0].removesuffix(".")
        why = f": {reason}"
        if reason.startswith("Unknown model "):  # the sentence has the name already
            meant = re.search(r" \(did you mean .*$", reason)
            why = meant[0] if meant else ""
        expected = plain(f"the name of a model{why}")
        name_wrong("Network", name, expected, "the form as it was")
        return
    st.session_state.update(network_fields(name))
