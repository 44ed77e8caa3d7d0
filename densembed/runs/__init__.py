"""A run is a folder. What is in it is all there is to know; its state is derived, never stored.

config.json             the RunConfig, written before anything else
name                    what a person calls it, where somebody did
events.jsonl            what happened, a whole line at a time
checkpoint.safetensors  the last good checkpoint, replaced atomically
resume.safetensors      what going on takes, and a digest of the data, while it is not over
lock                    held by the process that trains: "running" means just that
control                 what a person asked for, a word: stop, pause, or step (an epoch, then pause)
log.txt                 the traceback of a failure, for who wants to know
"""

from densembed.runs.execution import execute
from densembed.runs.folder import MAX_NAME, Run, all_runs, read_only, runs_folder

__all__ = ["MAX_NAME", "Run", "all_runs", "execute", "read_only", "runs_folder"]
