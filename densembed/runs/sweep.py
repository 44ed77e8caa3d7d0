"""Sweeps: the members of a plan in groups that train in one step, and their results.

A sweep is a folder:

plan.json         the base config and the values of each field
data-….json       a data set that it began with
control           "stop", if the user requested it
001/, 002/, …     a group of members of one shape, with events.jsonl and lock as in a run
001/K.safetensors member K of the plan when it has finished

Finished members are not trained again: after a kill, a stop or a restart, the others continue.
"""

import csv
import io
import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from densembed.files import replace_file
from densembed.runs import jobs
from densembed.runs.events import end_state, starts
from densembed.runs.execution import RESTARTS, died, end, fail, locked
from densembed.runs.folder import (
    NamedFolder,
    TrainingFolder,
    is_identifier,
    new_identifier,
    read_request,
    runs_folder,
)
from densembed.runs.jobs import Job
from densembed.runs.sweep_plan import MOST_MEMBERS, Plan
from densembed.training.checkpoint import Checkpoint
from densembed.training.config import RunConfig
from densembed.training.errors import Errors
from densembed.training.header import CheckpointError

OVER = ("done", "diverged")


@dataclass(frozen=True)
class Row:
    """A combination of values and the results of its seeds so far.

    `parameters` is None until a member has finished. `typical` is the member whose error is closest
    to the mean, or None.
    """

    change: dict
    parameters: int | None
    errors: Errors
    diverged: int
    seeds: int
    typical: Job | None = None


@dataclass(frozen=True)
class Sweep(NamedFolder):
    """The folder of a sweep."""

    @classmethod
    def create(cls, plan: Plan, path: Path | None = None) -> "Sweep":
        """Create the folder, or open it if it has the same plan.

        Raises ValueError if it has another plan, or one that is damaged.
        """
        path = path or sweeps_folder() / new_identifier()
        sweep = cls(path)
        if (path / "plan.json").exists():
            if sweep.plan is None:
                raise ValueError(
                    f"The file 'plan.json' in {path.name[:60]} is damaged. Choose another folder."
                )
            if sweep.plan != plan:
                raise ValueError(f"{path.name[:60]} has another sweep. Choose another folder.")
            return sweep
        path.mkdir(parents=True, exist_ok=True)
        replace_file(path / "plan.json", plan.model_dump_json(indent=1).encode())
        return sweep

    @classmethod
    def find(cls, identifier: str) -> "Sweep | None":
        """The sweep with that identifier, or None. An identifier is never used as a path."""
        if not is_identifier(identifier):
            return None
        sweep = cls(sweeps_folder() / identifier)
        return sweep if sweep.plan else None

    @property
    def plan(self) -> Plan | None:
        """Its plan, or None if the file is missing or damaged."""
        try:
            return _plan(self.path, self._version)
        except (OSError, ValidationError):
            return None

    def jobs(self) -> list[Job]:
        """Its members in the order of the plan, each with a path in its group's folder."""
        return sorted(chain(*self.by_group().values()), key=lambda job: int(job.path.stem))

    def groups(self) -> list["Group"]:
        """Its groups of members of one shape."""
        return [Group(path) for path in sorted(self.by_group())]

    def by_group(self) -> dict[Path, list[Job]]:
        """The members of each group, by the group's folder."""
        try:
            return _by_group(self.path, self._version)
        except (OSError, ValidationError):
            return {}

    @property
    def _version(self) -> int:
        return (self.path / "plan.json").stat().st_mtime_ns

    def submit(self, cluster, data_dir: str | None = None) -> None:
        """Queue the unfinished groups, and withdraw an earlier stop."""
        (self.path / "control").unlink(missing_ok=True)
        for group in self.groups():
            if not group.over():
                group.path.mkdir(exist_ok=True)
                group.resume()
                cluster.submit(group, train_group, data_dir)

    def stop(self) -> None:
        """Request the end. Only finished members are saved."""
        replace_file(self.path / "control", b"stop")

    def state(self) -> str:
        """queued, running, done, stopped, failed or interrupted."""
        states = {group.state() for group in self.groups()}
        order = ("running", "queued", "interrupted", "failed", "stopped")
        return next((state for state in order if state in states), "done")

    def reason(self) -> str:
        """Why a group failed, or ""; after the name of its model if there are several models."""
        groups = self.groups()
        models = [group.config.model if group.config else "" for group in groups]
        for group, model in zip(groups, models, strict=True):
            if reason := (group.last or {}).get("reason"):
                return f"{model}: {reason}" if len({*models}) > 1 else reason
        return ""

    def share(self) -> float:
        """How much of the training is done, 0 to 1."""
        groups = self.groups()
        left = sum(group.left() for group in groups)
        return 1 - left / sum(len(group.jobs()) for group in groups)

    def rows(self) -> list[Row]:
        """One row per combination, in the order of the grid."""
        plan, members = self.plan, self.jobs()
        if plan is None:
            return []
        results, seeds = [_result(job) for job in members], plan.base.seeds
        rows = []
        for k, change in enumerate(plan.combinations()):
            own = slice(k * seeds, (k + 1) * seeds)
            pairs = zip(members[own], results[own], strict=True)
            part = [(job, result) for job, result in pairs if result]
            done = [(job, result["error"]) for job, result in part if result["outcome"] == "done"]
            errors = Errors([error for _, error in done])
            parameters = part[0][1]["parameters"] if part else None
            typical = done[errors.typical][0] if done else None
            rows.append(Row(change, parameters, errors, len(part) - len(done), seeds, typical))
        return rows

    def key(self, job: Job) -> str:
        """The key of a member in links, for `find_member`."""
        return f"{self.identifier}-{job.path.stem}"

    def as_csv(self) -> str:
        """One line per finished member: config, parameters, outcome, error in percent, seconds.

        The path of the checkpoint is relative to the sweep's folder.
        """
        out = io.StringIO()
        fields = [name for name in RunConfig.model_fields if name != "seeds"]
        results = ["parameters", "outcome", "test_error", "seconds", "checkpoint"]
        table = csv.writer(out, lineterminator="\n")
        table.writerow([*fields, *results])
        for job in self.jobs():
            if result := _result(job):
                table.writerow(
                    [
                        *(getattr(job.config, name) for name in fields),
                        result["parameters"],
                        result["outcome"],
                        result["error"],
                        round(result["seconds"], 3),
                        job.path.relative_to(self.path).as_posix(),
                    ]
                )
        return out.getvalue()


@dataclass(frozen=True)
class Group(TrainingFolder):
    """The folder of a group: members that train in one step, stopped with their sweep."""

    @property
    def sweep(self) -> Sweep:
        return Sweep(self.path.parent)

    @property
    def saved(self) -> str:
        some = any(job.path.is_file() for job in self.sweep.jobs())
        return "The finished trainings of the sweep were saved." if some else ""

    @property
    def next_step(self) -> str:
        return "resume the sweep"

    @property
    def identifier(self) -> str:
        return f"{self.path.parent.name}-{self.path.name}"

    @property
    def config(self) -> RunConfig | None:
        """The config of its first member, with the same device and model as the others."""
        return next((job.config for job in self.jobs()), None)

    def jobs(self) -> list[Job]:
        return self.sweep.by_group().get(self.path, [])

    def todo(self) -> list[Job]:
        return [job for job in self.jobs() if _result(job) is None]

    def over(self) -> bool:
        return not self.todo()

    def left(self) -> float:
        """The number of unfinished members, less what is done of them."""
        todo, last = len(self.todo()), self.last
        if last and last["kind"] == "progress":
            return todo * (1 - last["step"] / last["steps"])
        return todo

    def request(self) -> str:
        """The sweep's request."""
        return "stop" if read_request(self.path.parent) == "stop" else ""

    def state(self) -> str:
        return "done" if self.over() else super().state()

    def resume(self) -> None:
        """Queue the group again; earlier deaths of its process no longer count."""
        self._append_idle(("", "failed", "stopped"), "queue")


def sweeps_folder() -> Path:
    return runs_folder() / "sweeps"


def all_sweeps() -> list[Sweep]:
    """Every sweep in the folder, newest first. Plans are not read, so some may be damaged."""
    if not sweeps_folder().is_dir():
        return []
    paths = sorted(sweeps_folder().iterdir(), reverse=True)
    return [
        Sweep(path) for path in paths if is_identifier(path.name) and (path / "plan.json").is_file()
    ]


def find_member(key: str) -> Path | None:
    """The checkpoint of a finished member by its key, which is never used as a path."""
    sweep = Sweep.find(key.rpartition("-")[0])
    members = {sweep.key(job): job for job in sweep.jobs()} if sweep else {}
    return members[key].path if key in members and _result(members[key]) else None


def train_group(path: str, data_dir: str | None = None) -> str:
    """Train the unfinished members of a group in this process; returns the final state."""
    group = Group(Path(path))
    return locked(group, lambda: _train_locked(group, data_dir))


def _train_locked(group: Group, data_dir: str | None) -> str:
    if end_state(group.last) == "failed":
        return "failed"
    if group.over() or group.request():
        return "done" if group.over() else "stopped"
    if (deaths := starts(group.events())) > RESTARTS:
        return end(group, "failed", died(group, deaths))
    group.append("start")
    try:
        jobs.together(
            group.todo(), data_dir, lambda: bool(group.request()), group.path.parent, group.append
        )
    except Exception as error:
        return fail(group, error)
    return "stopped" if group.request() else "done"


# The page of a sweep reads these every two seconds.


@lru_cache(maxsize=64)
def _plan(path: Path, version: int) -> Plan:
    return Plan.model_validate_json((path / "plan.json").read_bytes())


@lru_cache(maxsize=64)
def _by_group(path: Path, version: int) -> dict[Path, list[Job]]:
    configs = _plan(path, version).members()
    members = [Job(config, Path(f"{k}.safetensors")) for k, config in enumerate(configs, 1)]
    folders = ((path / f"{k:03d}", group) for k, group in enumerate(jobs.groups(members), 1))
    return {
        folder: [Job(job.config, folder / job.path) for job in group] for folder, group in folders
    }


def _result(job: Job) -> dict | None:
    """The result of a member, or None until it has finished."""
    try:
        return _read(job.path, job.path.stat().st_mtime_ns, job.config.model_dump_json())
    except (OSError, CheckpointError):
        return None


@lru_cache(maxsize=4 * MOST_MEMBERS)
def _read(path: Path, version: int, config: str) -> dict | None:
    checkpoint = Checkpoint.open(path)
    header = checkpoint.header
    if json.loads(config) != header.config.model_dump() or header.outcome not in OVER:
        return None
    return {
        "outcome": header.outcome,
        "parameters": checkpoint.parameters,
        "error": checkpoint.errors[0] if checkpoint.errors else None,
        "seconds": sum(epoch.seconds for epoch in header.epochs),
    }
