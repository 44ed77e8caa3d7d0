"""Processes that train: local ones, or those of a Dask scheduler."""
