"""Runs: each one is a folder, and its state is derived from the files, never stored.

config.json             the RunConfig, written first
name                    the user's name for the run, if any
events.jsonl            what happened, one line per event
checkpoint.safetensors  the last good checkpoint, replaced atomically
resume.safetensors      the state to resume from and a digest of the data, until the run ends
lock                    held by the process that trains, so the run is running while it is locked
control                 the user's request: stop, pause, or step (one epoch, then pause)
log.txt                 the traceback of a failure
"""

from densembed.runs.execution import execute
from densembed.runs.folder import MAX_NAME, Run, all_runs, read_only, runs_folder

__all__ = ["MAX_NAME", "Run", "all_runs", "execute", "read_only", "runs_folder"]
