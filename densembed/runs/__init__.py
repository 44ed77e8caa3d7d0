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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
