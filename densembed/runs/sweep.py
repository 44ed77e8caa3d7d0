"""A sweep: the members of a plan, which of them train in one step, what came of it.

It is a folder:

plan.json         the base config and the values of each field
control           "stop", where a person asked for it
001/, 002/, …     a group of members of one shape, with events.jsonl and lock as a run has them
001/K.safetensors member K of the plan, once it is done

A member that is done is not trained again: after a kill, a stop or a restart the rest goes on.
"""

import csv
import io
import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import filelock
from pydantic import ValidationError

from densembed.files import replace_file
from densembed.runs import Run, jobs, runs_folder
from densembed.runs.events import end_state, starts
from densembed.runs.execution import RESTARTS, died, end, fail
from densembed.runs.folder import is_identifier
from densembed.runs.jobs import Job
from densembed.runs.sweep_plan import MOST_MEMBERS, Plan
from densembed.training.checkpoint import Checkpoint, CheckpointError
from densembed.training.config import RunConfig
from densembed.training.errors import Errors

OVER = ("done", "diverged")


@dataclass(frozen=True)
class Row:
    """A combination and what came of its seeds so far; `parameters` is None before the first.

    `typical` is the member nearest their mean error, None while none is done.
    """

    change: dict
    parameters: int | None
    errors: Errors
    diverged: int
    seeds: int
    typical: Job | None = None


@dataclass(frozen=True)
class Sweep:
    """One sweep's folder, seen from any process."""

    path: Path

    @classmethod
    def create(cls, plan: Plan, path: Path | None = None) -> "Sweep":
        """Make its folder, or find it where the same plan is there already.

        Raises ValueError where another one is.
        """
        path = path or sweeps_folder() / f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        sweep = cls(path)
        if (path / "plan.json").exists():
            if sweep.plan != plan:
                raise ValueError(f"{path.name[:60]} holds another sweep: choose another folder.")
            return sweep
        path.mkdir(parents=True, exist_ok=True)
        replace_file(path / "plan.json", plan.model_dump_json(indent=1).encode())
        return sweep

    @classmethod
    def find(cls, identifier: str) -> "Sweep | None":
        """The sweep of that identifier, or None. An identifier is data: it is never a path."""
        if not is_identifier(identifier):
            return None
        sweep = cls(sweeps_folder() / identifier)
        return sweep if sweep.plan else None

    @property
    def identifier(self) -> str:
        return self.path.name

    @property
    def started(self) -> datetime:
        """When it was asked for, in this machine's time."""
        return Run(self.path).started

    @property
    def plan(self) -> Plan | None:
        """What it was told, or None where the file is gone or damaged."""
        try:
            return _plan(self.path, self._version)
        except (OSError, ValidationError):
            return None

    def jobs(self) -> list[Job]:
        """Its members in the order of the plan, each with its place in a group's folder."""
        try:
            return _jobs(self.path, self._version)
        except (OSError, ValidationError):
            return []

    def groups(self) -> list["Group"]:
        """Its members in groups of one shape."""
        return [Group(path) for path in sorted(self.by_group())]

    def by_group(self) -> dict[Path, list[Job]]:
        """The members of each group, by its folder."""
        try:
            return _by_group(self.path, self._version)
        except (OSError, ValidationError):
            return {}

    @property
    def _version(self) -> int:
        return (self.path / "plan.json").stat().st_mtime_ns

    def submit(self, cluster, data_dir: str | None = None) -> None:
        """Queue the groups that are not over, after taking back a stop."""
        (self.path / "control").unlink(missing_ok=True)
        for group in self.groups():
            if not group.over():
                group.path.mkdir(exist_ok=True)
                group.resume()
                cluster.submit(group, train_group, data_dir)

    def stop(self) -> None:
        """Ask for the end: what is done is kept, what is under way is not."""
        replace_file(self.path / "control", b"stop")

    def state(self) -> str:
        """queued, running, done, stopped, failed or interrupted."""
        states = {group.state() for group in self.groups()}
        order = ("running", "queued", "interrupted", "failed", "stopped")
        return next((state for state in order if state in states), "done")

    def reason(self) -> str:
        """Why a group failed, or ""."""
        lasts = [group.last or {} for group in self.groups()]
        return next((last["reason"] for last in lasts if last.get("reason")), "")

    def rows(self) -> list[Row]:
        """A row for each combination, in the order of the grid."""
        plan, members = self.plan, self.jobs()
        found, seeds = [_result(job) for job in members], plan.base.seeds
        rows = []
        for k, change in enumerate(plan.combinations()):
            own = slice(k * seeds, (k + 1) * seeds)
            part = [(job, of) for job, of in zip(members[own], found[own], strict=True) if of]
            done = [(job, of["error"]) for job, of in part if of["outcome"] == "done"]
            errors = Errors([error for _, error in done])
            parameters = part[0][1]["parameters"] if part else None
            typical = done[errors.typical][0] if done else None
            rows.append(Row(change, parameters, errors, len(part) - len(done), seeds, typical))
        return rows

    def key(self, job: Job) -> str:
        """What a link calls a member; `find_member` finds it."""
        return f"{self.identifier}-{job.path.stem}"

    def as_csv(self) -> str:
        """A line for each member that is over: all fields, parameters, outcome, error in %.

        And its checkpoint, seen from the sweep's folder.
        """
        out = io.StringIO()
        fields = [name for name in RunConfig.model_fields if name != "seeds"]
        results = ["parameters", "outcome", "test_error", "seconds", "checkpoint"]
        table = csv.DictWriter(out, [*fields, *results], lineterminator="\n")
        table.writeheader()
        for job in self.jobs():
            if result := _result(job):
                table.writerow(
                    job.config.model_dump(include=set(fields))
                    | {
                        "parameters": result["parameters"], "outcome": result["outcome"],
                        "test_error": result["error"], "seconds": round(result["seconds"], 3),
                        "checkpoint": job.path.relative_to(self.path).as_posix(),
                    }
                )  # fmt: skip
        return out.getvalue()

    def delete(self) -> None:
        Run(self.path).delete()


class Group(Run):
    """A group of a sweep: a run of several members, whose wish is the sweep's."""

    @property
    def sweep(self) -> Sweep:
        return Sweep(self.path.parent)

    @property
    def identifier(self) -> str:
        return f"{self.path.parent.name}-{self.path.name}"

    @property
    def config(self) -> RunConfig | None:
        """That of its first member: they share the device and all that takes time."""
        return next((job.config for job in self.jobs()), None)

    def jobs(self) -> list[Job]:
        return self.sweep.by_group().get(self.path, [])

    def todo(self) -> list[Job]:
        return [job for job in self.jobs() if _result(job) is None]

    def over(self) -> bool:
        return not self.todo()

    def wish(self) -> str:
        return "stop" if Run(self.path.parent).wish() == "stop" else ""

    def state(self) -> str:
        return "done" if self.over() else super().state()

    def resume(self, epochs: int | None = None) -> None:
        """Count its deaths anew: a person asked for it."""
        self._append_idle(("", "failed", "stopped"), "queue")


def sweeps_folder() -> Path:
    return runs_folder() / "sweeps"


def all_sweeps() -> list[Sweep]:
    """Every sweep in the folder, newest first. Their plans are not read, so some may be damaged."""
    if not sweeps_folder().is_dir():
        return []
    paths = sorted(sweeps_folder().iterdir(), reverse=True)
    known = [path for path in paths if is_identifier(path.name)]
    return [Sweep(path) for path in known if (path / "plan.json").is_file()]


def find_member(key: str) -> Path | None:
    """The checkpoint of a member that is over, by its key: looked up, never a path."""
    sweep = Sweep.find(key.rpartition("-")[0])
    members = {sweep.key(job): job for job in sweep.jobs()} if sweep else {}
    return members[key].path if key in members and _result(members[key]) else None


def train_group(path: str, data_dir: str | None = None) -> str:
    """Train what is left of a group in this process; returns the state it ended in."""
    group = Group(Path(path))
    try:
        with filelock.FileLock(group.path / "lock", timeout=2):
            return _train_locked(group, data_dir)
    except filelock.Timeout:
        return "running"
    except OSError:  # the folder is gone or not writable; there is no place to say more
        return "failed"


def _train_locked(group: Group, data_dir: str | None) -> str:
    if end_state(group.last) == "failed":
        return "failed"
    if group.over() or group.wish():
        return "done" if group.over() else "stopped"
    if (deaths := starts(group.events())) > RESTARTS:
        return end(group, "failed", died(deaths))
    group.append("start")
    try:
        jobs.together(group.todo(), data_dir, lambda: bool(group.wish()))
    except Exception as error:
        return fail(group, error)
    return "stopped" if group.wish() else "done"


# A page that follows a sweep asks for these every other second.


@lru_cache(maxsize=64)
def _plan(path: Path, version: int) -> Plan:
    return Plan.model_validate_json((path / "plan.json").read_bytes())


@lru_cache(maxsize=64)
def _jobs(path: Path, version: int) -> list[Job]:
    members = [Job(config, path) for config in _plan(path, version).members()]
    groups = jobs.groups(members)
    place = {id(job.config): k for k, group in enumerate(groups, 1) for job in group}
    return [
        Job(job.config, path / f"{place[id(job.config)]:03d}" / f"{number}.safetensors")
        for number, job in enumerate(members, 1)
    ]


@lru_cache(maxsize=64)
def _by_group(path: Path, version: int) -> dict[Path, list[Job]]:
    found: dict[Path, list[Job]] = {}
    for job in _jobs(path, version):
        found.setdefault(job.path.parent, []).append(job)
    return found


def _result(job: Job) -> dict | None:
    """What a member came to, once it is over."""
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
