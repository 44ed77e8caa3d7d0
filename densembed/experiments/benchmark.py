"""Measurements of all performance claims: `python -m densembed benchmark`.

The variants of a case are measured in turns, so that other load on the machine affects all of them.
A value is the median over the rounds, and its spread is half the interquartile range. Our code runs
with the settings of a training process (`densembed.training.threads`), all other code without.
"""

import gc
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from typing import Any, cast

import torch
from torch import nn

import densembed.kernels as kernels
from densembed.data import Dataset, Split, as_input
from densembed.experiments.baselines import Baseline, UserStep, by_autograd, by_formulas, user_epoch
from densembed.experiments.report import Report, markdown_table
from densembed.fields.field import field
from densembed.functional.densities import FAMILIES
from densembed.kernels.threads import allowed
from densembed.layers import AdaptiveConv2d
from densembed.models.registry import build
from densembed.paths import app_folder
from densembed.training.config import RunConfig
from densembed.training.loop import Epoch, train
from densembed.training.optimiser import Adam
from densembed.training.step import StackedParameters, step, stepper
from densembed.training.threads import limit_threads, restore_threads
from densembed.version import __version__

PIXELS, CLASSES = 28 * 28, 10
STEP_MODELS = (
    "linear",
    "logistic-el-5",
    "logistic-el-15",
    "logistic-el-mnn-6-3",
    "logistic-el-mnn-8-4",
    "logistic-el-mnn-10-5",
)
QUICK_MODELS = ("linear", "logistic-el-15", "logistic-el-mnn-10-5")
EPOCH_IMAGES = 12_800
"""Images per timed epoch: a part of MNIST's 60,000, the same for all variants."""


CALLS = {"cpu": 5, "cuda": 20}
"""Consecutive calls per measurement, as in a training, where one step follows another."""


@dataclass(frozen=True)
class Variant:
    """A function to time, with or without the settings of a training process."""

    call: Callable[[], object]
    settled: bool = True


@dataclass(frozen=True)
class Case:
    """One measurement."""

    case: str
    value: float
    unit: str
    spread: float
    n: int


def machine(device: str = "cpu") -> dict[str, str | int]:
    """The machine and the versions that measurements belong to."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if device == "cuda" else _processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "kernels": f"{kernels.name()} ({allowed()} threads)" if device == "cpu" else "none",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "densembed": __version__,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "CPU"


def measure(
    variants: dict[str, Variant], rounds: int, unit: str = "ms", device: str = "cpu", calls: int = 0
) -> list[Case]:
    """Median time per call of each variant, measured in turns after one call to warm up."""
    calls = calls or CALLS[device]
    for variant in variants.values():
        variant.call()
    times: dict[str, list[float]] = {name: [] for name in variants}
    gc.collect()
    for _ in range(rounds):
        for name, variant in variants.items():
            limit_threads() if variant.settled else restore_threads()
            _wait(device)
            started = time.perf_counter()
            for _ in range(calls):
                variant.call()
            _wait(device)
            times[name].append((time.perf_counter() - started) / calls)
    factor = {"ms": 1e3, "s": 1.0}[unit]
    return [_case(name, [factor * t for t in taken], unit) for name, taken in times.items()]


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _case(name: str, values: list[float], unit: str) -> Case:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return Case(name, middle, unit, (high - low) / 2, len(values))


def _split(images: int, device: str = "cpu") -> Split:
    """Images of noise in the shape of MNIST."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (images, 1, 28, 28), dtype=torch.uint8, generator=generator)
    return Split(pixels, torch.randint(CLASSES, (images,), generator=generator)).to(device)


def our_step(
    model: str, batch: int, device: str = "cpu", kind: str = "ours", members: int = 1
) -> Variant:
    """One of our training steps on the same batch: the default one, `compiled`, or `eager`."""
    stacked = StackedParameters([build(model).to(device) for _ in range(members)])
    adam = Adam(stacked.values, torch.full((members, 1), 0.002, device=device), 100)
    split = _split(batch, device)
    index = torch.arange(batch, device=device).expand(members, batch)
    row = adam.table[50]
    if kind == "eager":
        return Variant(lambda: step(stacked, adam, split.images[index], split.labels[index], row))
    take = stepper(stacked, adam, split, batch, kind == "compiled")
    return Variant(lambda: take(index, row))


def user_step(
    model: nn.Module, batch: int, device: str = "cpu", compiled: bool = False, settled: bool = False
) -> Variant:
    """The usual training step of a module on the same batch."""
    split = _split(batch, device)
    model = model.to(device)
    run = UserStep(cast(nn.Module, torch.compile(model)) if compiled else model, 10**6)
    index = torch.arange(batch, device=device)
    return Variant(lambda: run(as_input(split.images[index]), split.labels[index]), settled)


def steps(
    models: Iterable[str], batches: Iterable[int], full: bool, rounds: int, device: str
) -> Iterator[Case]:
    """1., 3. and 4. Step time next to the formulas, autograd, nn.Linear and the lower bound."""
    rate, bandwidth = matrix_rate(device), memory_bandwidth(device)
    yield Case("machine.matrix_rate", rate / 1e9, "GFLOP/s", 0.0, 1)
    yield Case("machine.bandwidth", bandwidth / 1e9, "GB/s", 0.0, 1)
    for batch in batches:
        for model in models:
            torch.compiler.reset()
            name = f"step.{model}.{batch}"
            variants = {f"{name}.ours": our_step(model, batch, device)}
            if full:
                variants[f"{name}.compiled"] = our_step(model, batch, device, "compiled")
            if device == "cuda":
                variants[f"{name}.eager"] = our_step(model, batch, device, "eager")
            # Measured again with each model, since the load of the machine changes over minutes.
            variants[f"{name}.linear"] = user_step(build("linear"), batch, device)
            if full:
                compiled = user_step(build("linear"), batch, device, compiled=True)
                variants[f"{name}.linear-compiled"] = compiled
            if model != "linear":
                plain = Baseline(build(model), by_autograd)
                variants[f"{name}.autograd"] = user_step(plain, batch, device)
                variants[f"{name}.module"] = user_step(build(model), batch, device)
            yield from measure(variants, rounds, device=device)
            if model != "linear":
                slow = {f"{name}.formulas": False}
                if full and device == "cpu":
                    slow[f"{name}.formulas-settled"] = True
                written = {
                    key: user_step(
                        Baseline(build(model), by_formulas), batch, device, settled=settled
                    )
                    for key, settled in slow.items()
                }
                yield from measure(written, max(3, rounds // 10), device=device, calls=1)
            work, traffic = floor(model, batch)
            yield Case(f"{name}.floor", 1e3 * (work / rate + traffic / bandwidth), "ms", 0.0, 1)


def families(rounds: int, device: str) -> Iterator[Case]:
    """3. Step time of mNN (8, 4) with every family of densities."""
    variants = {
        f"families.{family}.128": our_step(f"{family}-el-mnn-8-4", 128, device)
        for family in FAMILIES
    }
    yield from measure(variants, rounds, device=device)


def floor(model: str, batch: int) -> tuple[float, float]:
    """The least FLOPs and bytes that a step needs; docs/performance.md derives them."""
    network: Any = build(model)
    parameters = sum(p.numel() for p in network.parameters())
    edges = 29
    embedding = network.embedding
    classify = 3 * 2 * batch * network.classifier.in_features * CLASSES
    if model == "linear":
        work = 2 * 2 * batch * PIXELS * CLASSES
    elif network.adaptive:
        inner = embedding.locator[0].num_densities
        look = 3 * 2 * inner * edges * edges + 2 * 2 * batch * PIXELS * inner
        locate = 3 * 2 * batch * inner * 2 * embedding.num_densities
        work = look + locate + 2 * 2 * batch * embedding.num_densities * edges * edges + classify
    else:
        fold = 3 * 2 * CLASSES * embedding.num_densities * edges * edges
        work = fold + 2 * 2 * batch * PIXELS * CLASSES
    # Pixels as bytes once; parameters and both moments read and written; the gradient once.
    traffic = batch * PIXELS + 4 * (7 * parameters + 2 * batch * CLASSES)
    if network.adaptive:  # locations and their gradient, two axes, written and read
        traffic += 4 * 4 * batch * 2 * embedding.num_densities
    return work, traffic


def matrix_rate(device: str = "cpu") -> float:
    """FLOP/s of float32 matrix products with the settings of a training process."""
    size = {"cpu": 768, "cuda": 8192}[device]
    a, b = torch.randn(size, size, device=device), torch.randn(size, size, device=device)
    product = Variant(lambda: a @ b)
    best = min(measure({"mm": product}, 15, device=device)[0].value for _ in range(2)) / 1e3
    return 2 * size**3 / best


def memory_bandwidth(device: str = "cpu", size: int = 2**25) -> float:
    """Bytes/s, read and written, of a copy between arrays that are larger than any cache."""
    source, target = torch.zeros(size, device=device), torch.empty(size, device=device)
    copy = Variant(lambda: target.copy_(source))
    return 8 * size / (measure({"copy": copy}, 7, device=device)[0].value / 1e3)


def epochs(images: int, rounds: int, device: str) -> Iterator[Case]:
    """2. An epoch, and the same epoch with the usual training loop."""
    dataset = _noise(images)
    pixels, labels = dataset.train.images, dataset.train.labels
    for model in ("logistic-el-15", "logistic-el-mnn-10-5"):
        config = RunConfig(model=model, dataset="noise", epochs=1, device=device)
        taken: dict[str, list[float]] = {"ours": [], "user-autograd": [], "user-formulas": []}
        for _ in range(rounds):
            limit_threads()
            events = train(config, dataset)
            taken["ours"] += [event.seconds for event in events if isinstance(event, Epoch)]
            restore_threads()
            for name, act in (("user-autograd", by_autograd), ("user-formulas", by_formulas)):
                network = Baseline(build(model), act).to(device)
                started = time.perf_counter()
                sum(user_epoch(network, pixels, labels, 128))
                taken[name].append(time.perf_counter() - started)
        for name, seconds in taken.items():
            yield _case(f"epoch.{model}.{images}.{name}", seconds, "s")


def members(rounds: int, full: bool, device: str) -> Iterator[Case]:
    """5. Time per member and step if several members train together."""
    kinds = ("ours", "compiled") if full else ("ours",)
    for model in ("logistic-el-15", "logistic-el-mnn-10-5"):
        torch.compiler.reset()
        variants = {
            f"members.{model}.{count}.{kind}": our_step(model, 128, device, kind, count)
            for count in (1, 2, 5, 10)
            for kind in kinds
        }
        for case in measure(variants, rounds, device=device):
            count = int(case.case.split(".")[2])
            yield Case(case.case, case.value / count, "ms per member", case.spread / count, case.n)


PROCESS_STEPS = 50


def processes(rounds: int) -> Iterator[Case]:
    """5. The same for processes of one thread each, as `reproduce` uses them on a CPU."""
    count = os.cpu_count() or 1
    model = "logistic-el-mnn-10-5"
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        taken = []
        for _ in range(rounds + 1):  # the first round starts the processes
            slowest = max(pool.map(_steps_alone, [model] * count))
            taken.append(1e3 * slowest / PROCESS_STEPS / count)
    yield _case(f"members.{model}.{count}.processes", taken[1:], "ms per member")


def _steps_alone(model: str) -> float:
    """Seconds of some steps in this process."""
    limit_threads()
    call = our_step(model, 128).call
    call()
    started = time.perf_counter()
    for _ in range(PROCESS_STEPS):
        call()
    return time.perf_counter() - started


def peers(rounds: int, device: str) -> Iterator[Case]:
    """6. Adaptive convolution, torch's and, if it is installed, that of DCLS."""
    x = torch.randn(32, 16, 28, 28, requires_grad=True, device=device)
    layers = {
        "peer.conv2d.torch": nn.Conv2d(16, 32, 5, padding=2),
        "peer.conv2d.ours": AdaptiveConv2d(16, 32, 5, padding=2),
    }
    try:
        from DCLS.construct.modules import Dcls2d
    except ImportError:
        pass
    else:
        layers["peer.conv2d.dcls"] = Dcls2d(
            16, 32, kernel_count=25, dilated_kernel_size=5, padding=2
        )

    def both(layer: nn.Module) -> Variant:
        layer = layer.to(device)
        return Variant(lambda: layer(x).square().mean().backward())

    variants = {name: both(layer) for name, layer in layers.items()}
    yield from measure(variants, rounds, device=device)


def fields(rounds: int, device: str = "cpu") -> Iterator[Case]:
    """7. Receptive fields of 1 to 1,000 inputs in one call."""
    model = build("logistic-el-mnn-10-5").to(device).eval()
    x = torch.rand(1000, 1, 28, 28, device=device)
    few = {f"fields.{count}": Variant(partial(field, model, x[:count])) for count in (1, 10, 100)}
    yield from measure(few, rounds, device=device)
    many = {"fields.1000": Variant(lambda: field(model, x))}
    yield from measure(many, 3, device=device, calls=1)


GROWTH = (
    (5, 28, 100), (10, 28, 100), (25, 28, 100), (50, 28, 100),
    (10, 56, 100), (10, 112, 100), (10, 224, 100), (10, 224, 1), (10, 224, 10), (10, 224, 1000),
)  # fmt: skip
"""B, pixels per axis and number of inputs."""


def growth(rounds: int, device: str) -> Iterator[Case]:
    """7. Time of receptive fields by number of densities, pixels and inputs."""
    for b, size, inputs in GROWTH:
        model = build(f"logistic-el-mnn-{b}-5", (1, size, size)).to(device).eval()
        x = torch.rand(inputs, 1, size, size, device=device)
        call = Variant(partial(field, model, x, 1))
        yield from measure({f"fields.B{b}.{size}px.{inputs}": call}, rounds, "ms", device, 1)


def _peak() -> float:
    """Peak memory of this process so far, in MB."""
    return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _megabytes(peak: int) -> float:
    """ru_maxrss is in kB on Linux and in bytes on a Mac."""
    return peak * (1 if platform.system() == "Darwin" else 1024) / 1e6


def memory() -> Case:
    """Memory of two epochs on 60,000 images, including the data set.

    This must be measured first, since the peak of a process never falls.
    """
    before = _peak()
    model = "logistic-el-mnn-10-5"
    config = RunConfig(model=model, dataset="noise", epochs=2, batch_size=512, device="cpu")
    for _ in train(config, _noise(60_000)):
        pass
    return Case(f"memory.training.{model}", _peak() - before, "MB", 0.0, 1)


APP_SECONDS = 300
APP = """
import resource
from streamlit.testing.v1 import AppTest
assert not AppTest.from_file(APP_FILE, default_timeout=120).run().exception
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def app_memory() -> Iterator[Case]:
    """7. Peak memory of a process that has rendered the app's first page."""
    file = app_folder() / "app.py"
    program = APP.replace("APP_FILE", repr(str(file)))
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=file.parent,
            capture_output=True,
            text=True,
            timeout=APP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return
    if done.returncode == 0:
        yield Case("memory.app", _megabytes(int(done.stdout.split()[-1])), "MB", 0.0, 1)


def _noise(images: int) -> Dataset:
    split = _split(images)
    tiny = Split(split.images[:10], split.labels[:10])
    return Dataset("noise", "noise", tuple("0123456789"), split, tiny)


def run(quick: bool = False, device: str = "cpu") -> Iterator[Case]:
    """Measure all cases and yield each when it is done."""
    yield memory()
    if quick:
        yield from steps(QUICK_MODELS, (128,), False, 40, device)
        yield from families(20, device)
        yield from fields(5, device)
    else:
        yield from app_memory()
        yield from steps(STEP_MODELS, (128, 512), True, 60, device)
        yield from families(60, device)
        yield from epochs(EPOCH_IMAGES, 5, device)
        yield from members(30, True, device)
        if device == "cpu":
            yield from processes(7)
        yield from peers(30, device)
        yield from fields(20, device)
        yield from growth(5, device)


def report(cases: list[Case], device: str = "cpu") -> Report:
    """The content of the JSON file."""
    return {"machine": machine(device), "cases": [asdict(case) for case in cases]}


RATIOS = (
    ("step.{model}.{batch}.formulas", "step.{model}.{batch}.ours"),
    ("step.{model}.{batch}.autograd", "step.{model}.{batch}.ours"),
    ("step.{model}.{batch}.formulas", "step.{model}.{batch}.module"),
    ("step.{model}.{batch}.ours", "step.{model}.{batch}.floor"),
    ("step.{model}.{batch}.formulas", "step.{model}.{batch}.compiled"),
    ("step.{model}.{batch}.compiled", "step.{model}.{batch}.floor"),
    ("step.{model}.{batch}.formulas-settled", "step.{model}.{batch}.ours"),
    ("step.{model}.{batch}.ours", "step.{model}.{batch}.linear"),
    ("step.{model}.{batch}.compiled", "step.{model}.{batch}.linear"),
    ("step.{model}.{batch}.compiled", "step.{model}.{batch}.linear-compiled"),
)


def markdown(report: Report) -> str:
    """The report as Markdown: ratios of medians, then every case."""
    values = {case["case"]: case["value"] for case in report["cases"]}
    about = ", ".join(f"{key} {value}" for key, value in report["machine"].items())
    ratios = []
    for model in STEP_MODELS[1:]:
        for batch in (128, 512):
            for forms in RATIOS:
                upper, lower = (form.format(model=model, batch=batch) for form in forms)
                if upper in values and lower in values:
                    ratios.append((f"{upper} / {lower}", values[upper] / values[lower]))
    for name, value in values.items():
        part, _, kind = name.rpartition(".")
        if name.startswith("epoch.") and kind != "ours":
            ratios.append((f"{name} / {part}.ours", value / values[part + ".ours"]))
        if name.startswith("families.") and "logistic" not in name:
            ratios.append(
                (f"{name} / families.logistic.128", value / values["families.logistic.128"])
            )
        if name.startswith("members.") and ".1." not in name:
            alone = ".".join((*name.split(".")[:2], "1", "ours" if kind == "processes" else kind))
            ratios.append((f"{name} / {alone}, per member", value / values[alone]))
    parts = [
        f"Made by `python -m densembed benchmark` on: {about}.",
        markdown_table(
            {"ratio of medians": "{name}", "value": "{ratio:.2f}"},
            [{"name": name, "ratio": ratio} for name, ratio in ratios],
        ),
        markdown_table(
            {
                "case": "{case}",
                "median": "{value:.4g}",
                "unit": "{unit}",
                "spread": "{spread:.2g}",
                "n": "{n:d}",
            },
            report["cases"],
        ),
    ]
    return "\n\n".join(parts) + "\n"
