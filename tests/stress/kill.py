"""Kill the worker at random moments and compare, bit for bit, with runs that nothing disturbed.

    python -m tests.stress.kill --kills 50 --runs 17

Each run trains twice on the worker process that the app uses: once undisturbed, once killed
(SIGKILL) at random moments after its first step, and taken up again by itself. Not for pytest.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import torch

from densembed.runs import Run, execute
from densembed.runs.execution import RESTARTS
from densembed.training.config import RunConfig
from densembed.workers.cluster import Cluster
from tests.waiting import wait_for, work

CONFIGS = (
    {"model": "logistic-el-3", "epochs": 160, "batch_size": 16},
    {"model": "logistic-el-mnn-4-2", "epochs": 120, "batch_size": 16},
    {"model": "linear", "epochs": 300, "batch_size": 16, "weight_decay": 0.01},
    {"model": "logistic-el-5", "epochs": 120, "batch_size": 25, "seeds": 2},
)
LONGEST_WAIT = 3.0
"""Seconds between a sign of life and the kill, uniform from 0: a moment, not a wait."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--runs", type=int, default=17)
    parser.add_argument("--seed", type=int, default=0, help="of models and moments")
    options = parser.parse_args()
    if options.kills > RESTARTS * options.runs:
        parser.error(f"A run goes on by itself {RESTARTS} times: more runs for so many kills.")
    draw = random.Random(options.seed)
    root = Path(tempfile.mkdtemp(prefix="densembed-kill-"))
    cluster = Cluster()
    killed, different, again = 0, [], []
    try:
        for number in range(options.runs):
            config = RunConfig(
                **CONFIGS[number % len(CONFIGS)], seed=draw.randrange(1000), device="cpu"
            )
            quiet, disturbed = Run.create(config, root), Run.create(config, root)
            cluster.submit(quiet, execute)
            _wait(lambda run=quiet: run.state() == "done", quiet)
            cluster.submit(disturbed, execute)
            share = -(-(options.kills - killed) // (options.runs - number))
            planned = min(RESTARTS, share)
            lost = [step for _ in range(planned) if (step := _kill(disturbed, draw)) is not None]
            _wait(lambda run=disturbed: run.state() == "done", disturbed)
            killed += len(lost)
            again += lost
            if fault := _difference(quiet, disturbed):
                different.append(f"{config.model}, seed {config.seed}: {fault}")
            print(
                f"{number + 1:3} {config.model:22} killed {len(lost)} times, went on from "
                f"{[event['step'] for event in _starts(disturbed)[1:]]}: {fault or 'identical'}",
                flush=True,
            )
    finally:
        cluster.close()
        shutil.rmtree(root, ignore_errors=True)
    print(
        f"{killed} kills over {options.runs} runs: {options.runs - len(different)} runs end bit "
        f"for bit as undisturbed ones; {mean(again or [0]):,.0f} steps trained again a kill."
    )
    for line in different:
        print("DIFFERENT:", line)
    return 1 if different else 0


def _kill(run: Run, draw: random.Random) -> int | None:
    """Kill its process; how many steps are lost, or None where it had ended before."""
    _wait(lambda: (run.events() or [{"kind": ""}])[-1]["kind"] in ("progress", "epoch", "end"), run)
    time.sleep(draw.uniform(0, LONGEST_WAIT))
    if run.state() != "running":
        return None
    events, starts = run.events(), _starts(run)
    os.kill(starts[-1]["process"], signal.SIGKILL)
    _wait(lambda: len(_starts(run)) > len(starts) or run.state() == "done", run)
    if len(_starts(run)) == len(starts):  # it had ended while we looked
        return None
    step = max(event.get("step", 0) for event in events)
    return max(0, step - _starts(run)[-1]["step"])


def _starts(run: Run) -> list[dict]:
    return [event for event in run.events() if event["kind"] == "start"]


def _difference(quiet: Run, disturbed: Run) -> str:
    first, second = quiet.checkpoint(), disturbed.checkpoint()
    if first.steps != second.steps:
        return "other snapshots"
    for name, tensor in first.tensors.items():
        if not torch.equal(tensor.view(torch.int32), second.tensors[name].view(torch.int32)):
            return f"other bits in {name}"
    told = [
        [epoch.model_dump(exclude={"seconds"}) for epoch in checkpoint.header.epochs]
        for checkpoint in (first, second)
    ]
    return "" if told[0] == told[1] else "other metrics"


def _wait(condition: Callable[[], bool], run: Run) -> None:
    """As long as events come in, or the process that is to write them works."""
    wait_for(condition, lambda: (len(run.events()), work()))


if __name__ == "__main__":
    sys.exit(main())
