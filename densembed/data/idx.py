"""The four files of MNIST's form, which torchvision knows for several data sets."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from densembed.data.download import NetworkFault, download, fetched
from densembed.files import replace_file


def fetch(
    title: str,
    source: type,
    data_dir: Path,
    raw: Path,
    lock: str,
    intact: Callable[[Path], bool],
    files: str,
) -> None:
    """Download those of the four files that are not intact; raises as `download`.

    Args:
        source: torchvision's class, with `mirrors` and `resources`.
        raw: the folder of the unpacked files; an archive that lies there is unpacked.
        intact: whether an unpacked file is whole.
    """
    from torchvision.datasets.utils import check_integrity

    def work(deadline: float) -> None:
        raw.mkdir(parents=True, exist_ok=True)
        for archive, md5 in source.resources:
            target = raw / archive.removesuffix(".gz")
            if intact(target):
                continue
            if check_integrity(raw / archive, md5):
                replace_file(target, _unpacked(raw / archive))
                continue
            addresses = [mirror + archive for mirror in source.mirrors]
            with fetched(
                addresses, raw, lambda part, md5=md5: check_integrity(part, md5), deadline
            ) as part:
                replace_file(target, _unpacked(part))

    names = [archive.removesuffix(".gz") for archive, _ in source.resources]
    absent = [name for name in names if not (raw / name).is_file()]
    partly = 0 < len(absent) < len(names)
    download(
        title, data_dir, lock, work, files, f"{raw} lacks {', '.join(absent)}" if partly else ""
    )


def _unpacked(archive: Path) -> bytes:
    packed = archive.read_bytes()
    try:
        return gzip.decompress(packed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise NetworkFault(f"{archive.name} cannot be unpacked") from error
