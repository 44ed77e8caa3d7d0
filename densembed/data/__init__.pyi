from .dataset import Dataset, Split, as_input, full_scale, noun
from .names import DataError, check_name, is_folder, is_path, is_signals
from .sources import (
    DATASETS,
    Source,
    default_data_dir,
    files_of,
    is_available,
    is_outside,
    load_dataset,
    slug,
    title,
)

__all__ = [
    "DATASETS",
    "DataError",
    "Dataset",
    "Source",
    "Split",
    "as_input",
    "check_name",
    "default_data_dir",
    "files_of",
    "full_scale",
    "is_available",
    "is_folder",
    "is_outside",
    "is_path",
    "is_signals",
    "load_dataset",
    "noun",
    "slug",
    "title",
]
