"""Where a run was, in one file: what going on takes, and how the machine computed.

Layout: the tensors of `training.Resume` as safetensors, and in the metadata `format`, `version`,
`step` and `path` as JSON. On a CPU, a run that goes on along the same path ends bit for bit as
one that nothing has disturbed.
"""

import json
import platform
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

import densembed
from densembed.checkpoint import MAX_BYTES, replace_file
from densembed.config import RunConfig
from densembed.training import Resume, pick_device

FORMAT, VERSION = "densembed-resume", "1"
DAMAGED = "What was kept to go on from is damaged. Start it again with the same seed."


def code_path(config: RunConfig) -> dict[str, str]:
    """What decides the last bit of a result, beside the config."""
    device = pick_device(config.device)
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": str(torch.get_num_threads()),
        "instructions": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "torch": torch.__version__,
        "densembed": densembed.__version__,
    }


def differences(before: dict[str, str], now: dict[str, str]) -> str:
    """What changed between two code paths, e.g. "threads 1 → 2"; empty if nothing did."""
    return ", ".join(
        f"{name} {before.get(name, '?')} → {value}"
        for name, value in now.items()
        if before.get(name) != value
    )


def save_resume(path: Path, resume: Resume, code: dict[str, str]) -> None:
    """Replace the file at once."""
    metadata = {
        "format": FORMAT, "version": VERSION, "step": str(resume.step), "path": json.dumps(code)
    }  # fmt: skip
    replace_file(path, save(resume.state, metadata))


def load_resume(path: Path) -> tuple[Resume, dict[str, str]] | None:
    """What the file holds, or None where there is none. Raises ValueError for a damaged one."""
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(DAMAGED)
    try:
        data = path.read_bytes()  # safetensors itself opens no path that is not UTF-8
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
            raise ValueError(DAMAGED)
        step, code = int(metadata["step"]), json.loads(metadata["path"])
        state = load(data)
    except (
        SafetensorError,
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ValueError(DAMAGED) from error
    if step < 1 or not isinstance(code, dict):
        raise ValueError(DAMAGED)
    return Resume(step, state), {str(key)[:40]: str(value)[:80] for key, value in code.items()}
