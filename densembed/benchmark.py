"""Every performance claim, measured side by side in one process: python -m densembed benchmark.

Variants of a case take turns, so that what else the machine does falls on all of them. A value
is the median over the rounds, its spread half the distance between the quartiles.
"""

import gc
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import torch
from torch import nn

import densembed
from densembed.baselines import Baseline, UserStep, by_autograd, by_formulas, user_epoch
from densembed.config import RunConfig
from densembed.data import Dataset, Split, as_input
from densembed.fields import field
from densembed.models import build
from densembed.optimiser import Adam
from densembed.step import Flat, step
from densembed.training import Epoch, train

PIXELS, CLASSES = 28 * 28, 10
STEP_MODELS = (
    "linear", "logistic-el-5", "logistic-el-15", "logistic-el-mnn-6-3", "logistic-el-mnn-8-4",
    "logistic-el-mnn-10-5",
)  # fmt: skip
QUICK_MODELS = ("linear", "logistic-el-15", "logistic-el-mnn-10-5")
EPOCH_IMAGES = 12_800
"""Images of the epoch that is timed: a part of MNIST's 60,000, the same for all variants."""


@dataclass(frozen=True)
class Case:
    """One measured number."""

    case: str
    value: float
    unit: str
    spread: float
    n: int


def machine() -> dict[str, str | int]:
    """What the figures belong to."""
    cuda = torch.cuda.is_available()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if cuda else _processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "densembed": densembed.__version__,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "CPU"


def measure(variants: dict[str, Callable[[], object]], rounds: int, unit: str = "ms") -> list[Case]:
    """Time callables in turns, after one call each to warm up."""
    for call in variants.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in variants}
    gc.collect()
    for _ in range(rounds):
        for name, call in variants.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    factor = {"ms": 1e3, "s": 1.0}[unit]
    return [_case(name, [factor * t for t in taken], unit) for name, taken in times.items()]


def _case(name: str, values: list[float], unit: str) -> Case:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return Case(name, middle, unit, (high - low) / 2, len(values))


def _batch(batch: int, members: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shape = (members, batch, 1, 28, 28)
    images = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
    return images, torch.randint(CLASSES, (members, batch), generator=generator)


def our_step(model: str, batch: int, compiled: bool = False, members: int = 1) -> Callable:
    """A call that does one of our training steps on the same batch."""
    flat = Flat([build(model) for _ in range(members)])
    adam = Adam(flat.values, torch.full((members, 1), 0.002), 100)
    images, labels = _batch(batch, members)
    take = torch.compile(step, dynamic=False) if compiled else step
    return lambda: take(flat, adam, images, labels, adam.table[50])


def user_step(model: nn.Module, batch: int, compiled: bool = False) -> Callable:
    """The ordinary step of a module on the same batch."""
    images, labels = _batch(batch)
    run = UserStep(torch.compile(model) if compiled else model, 10**6)
    return lambda: run(as_input(images[0]), labels[0])


def steps(models: Iterable[str], batches: Iterable[int], compiled: bool, rounds: int):
    """1. and 3. Step time against the formulas, plain autograd and the floor."""
    rate, bandwidth = matrix_rate(), memory_bandwidth()
    yield Case("machine.matrix_rate", rate / 1e9, "GFLOP/s", 0.0, 1)
    yield Case("machine.bandwidth", bandwidth / 1e9, "GB/s", 0.0, 1)
    for model in models:
        for batch in batches:
            torch.compiler.reset()
            name = f"step.{model}.{batch}"
            variants = {f"{name}.ours": our_step(model, batch)}
            if compiled:
                variants[f"{name}.compiled"] = our_step(model, batch, compiled=True)
            if model == "linear":
                variants[f"{name}.torch"] = user_step(build(model), batch)
                if compiled:
                    variants[f"{name}.torch-compiled"] = user_step(build(model), batch, True)
            else:
                variants[f"{name}.autograd"] = user_step(Baseline(build(model), by_autograd), batch)
            yield from measure(variants, rounds)
            if model != "linear":
                slow = user_step(Baseline(build(model), by_formulas), batch)
                yield from measure({f"{name}.formulas": slow}, max(3, rounds // 10))
            work, traffic = floor(model, batch)
            yield Case(f"{name}.floor", 1e3 * (work / rate + traffic / bandwidth), "ms", 0.0, 1)


def floor(model: str, batch: int) -> tuple[float, float]:
    """FLOPs and bytes that a step cannot do without; the formulas are in docs/performance.md."""
    network = build(model)
    parameters = sum(p.numel() for p in network.parameters())
    edges = 29
    embedding = network.embedding
    classify = 3 * 2 * batch * network.classifier.in_features * CLASSES
    if model == "linear":
        work = 2 * 2 * batch * PIXELS * CLASSES
    elif network.adaptive:
        inner = embedding.locator[0].densities
        look = 3 * 2 * inner * edges * edges + 2 * 2 * batch * PIXELS * inner
        locate = 3 * 2 * batch * inner * 2 * embedding.densities
        work = look + locate + 2 * 2 * batch * embedding.densities * edges * edges + classify
    else:
        fold = 3 * 2 * CLASSES * embedding.densities * edges * edges
        work = fold + 2 * 2 * batch * PIXELS * CLASSES
    # Pixels as bytes once; parameters, both moments read and written, the gradient once.
    traffic = batch * PIXELS + 4 * (7 * parameters + 2 * batch * CLASSES)
    if network.adaptive:  # locations and their gradient, two axes, written and read
        traffic += 4 * 4 * batch * 2 * embedding.densities
    return work, traffic


def matrix_rate(size: int = 768) -> float:
    """FLOP/s of float32 matrix products on all threads."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = min(measure({"mm": lambda: a @ b}, 15)[0].value for _ in range(2)) / 1e3
    return 2 * size**3 / best


def memory_bandwidth(size: int = 2**25) -> float:
    """Bytes/s of a copy between arrays larger than any cache, read and written."""
    source, target = torch.zeros(size), torch.empty(size)
    return 8 * size / (measure({"copy": lambda: target.copy_(source)}, 7)[0].value / 1e3)


def epochs(images: int, rounds: int) -> Iterator[Case]:
    """2. An epoch against the loop that a user would write."""
    dataset = _noise(images)
    pixels, labels = dataset.train.images, dataset.train.labels
    for model in ("logistic-el-15", "logistic-el-mnn-10-5"):
        config = RunConfig(model=model, epochs=1, device="cpu")
        ours = []
        for _ in range(rounds):
            events = train(config, dataset)
            ours += [event.seconds for event in events if isinstance(event, Epoch)]
        yield _case(f"epoch.{model}.{images}.ours", ours, "s")
        for name, act in (("user-autograd", by_autograd), ("user-formulas", by_formulas)):
            started = time.perf_counter()
            sum(user_epoch(Baseline(build(model), act), pixels, labels, 128))
            yield _case(f"epoch.{model}.{images}.{name}", [time.perf_counter() - started], "s")


def members(rounds: int, compiled: bool) -> Iterator[Case]:
    """5. Time per member and step when several train together."""
    for model in ("logistic-el-15", "logistic-el-mnn-10-5"):
        for count in (1, 2, 5, 10):
            torch.compiler.reset()
            name = f"members.{model}.{count}"
            variants = {f"{name}.ours": our_step(model, 128, members=count)}
            if compiled:
                variants[f"{name}.compiled"] = our_step(model, 128, True, count)
            for case in measure(variants, rounds):
                yield Case(
                    case.case, case.value / count, "ms per member", case.spread / count, case.n
                )


def peers(rounds: int) -> Iterator[Case]:
    """6. Adaptive convolution beside torch's and, where it is installed, DCLS."""
    from densembed.layers import AdaptiveConv2d

    x = torch.randn(32, 16, 28, 28, requires_grad=True)
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

    def both(layer):
        return lambda: layer(x).square().mean().backward()

    yield from measure({name: both(layer) for name, layer in layers.items()}, rounds)


def fields(rounds: int) -> Iterator[Case]:
    """7. Receptive fields: one input with a loaded model, a thousand in one call."""
    model = build("logistic-el-mnn-10-5").eval()
    x = torch.rand(1000, 1, 28, 28)
    yield from measure(
        {
            f"fields.{count}": (lambda count=count: field(model, x[:count]))
            for count in (1, 10, 100)
        },
        rounds,
    )
    yield from measure({"fields.1000": lambda: field(model, x)}, 3)


def _peak() -> float:
    """Peak memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if platform.system() == "Darwin" else 1024) / 1e6


def memory() -> Case:
    """What two epochs on as many images as MNIST has add to the process, data set included.

    Measured first: a peak never falls again.
    """
    before = _peak()
    config = RunConfig(model="logistic-el-mnn-10-5", epochs=2, batch_size=512, device="cpu")
    for _ in train(config, _noise(60_000)):
        pass
    return Case("memory.training.logistic-el-mnn-10-5", _peak() - before, "MB", 0.0, 1)


def _noise(images: int) -> Dataset:
    """Pictures of noise in the shape of MNIST."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (images, 1, 28, 28), dtype=torch.uint8, generator=generator)
    labels = torch.randint(CLASSES, (images,), generator=generator)
    split, tiny = Split(pixels, labels), Split(pixels[:10], labels[:10])
    return Dataset("noise", "noise", tuple("0123456789"), split, tiny)


def run(quick: bool = False) -> Iterator[Case]:
    """All cases, as they are measured."""
    yield memory()
    if quick:
        yield from steps(QUICK_MODELS, (128,), False, 60)
        yield from fields(5)
    else:
        yield from steps(STEP_MODELS, (128, 512), True, 100)
        yield from epochs(EPOCH_IMAGES, 3)
        yield from members(40, True)
        yield from peers(30)
        yield from fields(20)


def report(cases: list[Case]) -> dict:
    """The JSON file's content."""
    return {"machine": machine(), "cases": [asdict(case) for case in cases]}


RATIOS = (
    ("step.{model}.{batch}.formulas", "step.{model}.{batch}.ours"),
    ("step.{model}.{batch}.autograd", "step.{model}.{batch}.ours"),
    ("step.{model}.{batch}.ours", "step.{model}.{batch}.floor"),
    ("step.{model}.{batch}.formulas", "step.{model}.{batch}.compiled"),
    ("step.{model}.{batch}.compiled", "step.{model}.{batch}.floor"),
    ("step.{model}.{batch}.ours", "step.linear.{batch}.torch"),
    ("step.{model}.{batch}.compiled", "step.linear.{batch}.torch"),
    ("step.{model}.{batch}.compiled", "step.linear.{batch}.torch-compiled"),
)


def as_markdown(content: dict) -> str:
    """The report for people: ratios of medians, then every case."""
    values = {case["case"]: case["value"] for case in content["cases"]}
    about = ", ".join(f"{key} {value}" for key, value in content["machine"].items())
    lines = [f"Made by `python -m densembed benchmark` on: {about}.", ""]
    lines += ["| ratio of medians | value |", "| --- | ---: |"]
    for model in STEP_MODELS[1:]:
        for batch in (128, 512):
            for upper, lower in RATIOS:
                names = [name.format(model=model, batch=batch) for name in (upper, lower)]
                if all(name in values for name in names):
                    ratio = values[names[0]] / values[names[1]]
                    lines.append(f"| {names[0]} / {names[1]} | {ratio:.2f} |")
    for name, value in values.items():
        part, _, kind = name.rpartition(".")
        if name.startswith("epoch.") and kind != "ours":
            lines.append(f"| {name} / {part}.ours | {value / values[part + '.ours']:.2f} |")
        if name.startswith("members.") and ".1." not in name:
            alone = ".".join((*name.split(".")[:2], "1", kind))
            lines.append(f"| {name} / {alone}, each member | {value / values[alone]:.2f} |")
    lines += ["", "| case | median | unit | spread | n |", "| --- | ---: | --- | ---: | ---: |"]
    for case in content["cases"]:
        lines.append(
            f"| {case['case']} | {case['value']:.3f} | {case['unit']} | {case['spread']:.3f} "
            f"| {case['n']} |"
        )
    return "\n".join(lines) + "\n"
