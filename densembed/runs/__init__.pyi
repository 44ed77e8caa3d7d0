from .execution import execute
from .folder import MAX_NAME, Run, all_runs, read_only, runs_folder

__all__ = ["MAX_NAME", "Run", "all_runs", "execute", "read_only", "runs_folder"]
