from .execution import execute
from .folder import Run, all_runs, read_only, runs_folder

__all__ = ["Run", "all_runs", "execute", "read_only", "runs_folder"]
