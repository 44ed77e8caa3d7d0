"""Checks of files before reading, and atomic writing."""

import errno
import os
import secrets
from pathlib import Path


def in_home(path: str | os.PathLike) -> Path:
    """A path in which `~` is the home folder, also where no shell has replaced it."""
    return Path(os.path.expanduser(path))


def is_same_file(first: str | os.PathLike, second: str | os.PathLike) -> bool:
    """Whether two paths name one file, which need not exist."""
    try:
        return os.path.samefile(first, second)  # also for names that differ in case alone
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def check_regular(path: str | os.PathLike) -> None:
    """Raise OSError for a named pipe or a device, as reading could wait without end.

    Opening folders and missing files fails by itself.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))


def read_regular(path: str | os.PathLike, size: int = -1) -> bytes:
    """The first `size` bytes of a file, or all of them, without waiting for any.

    Raises OSError for a named pipe, a device, or a file of the system without an end, such as
    /proc/kmsg.
    """
    check_regular(path)

    def open_without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # Windows lacks it

    with open(path, "rb", opener=open_without_waiting) as file:
        if (data := file.read(size)) is None:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), os.fspath(path))
    return data


def is_protected(path: str | os.PathLike) -> bool:
    """Whether a file exists that may not be written: replacing it needs no such permission."""
    try:
        writable = os.stat(path).st_mode & 0o222  # the administrator may write without it
    except OSError:
        return False
    return not (writable and os.access(path, os.W_OK))


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that after a crash, or with a full disk, the old file is intact.

    A link is kept, and the file that it names is written. Raises OSError for a file that is
    write-protected, and for a named pipe or a device such as /dev/null, which a file would replace.
    """
    check_regular(path)
    if is_protected(path):
        raise PermissionError(errno.EACCES, "The file is write-protected", os.fspath(path))
    path = Path(os.path.realpath(path))
    # The end of the name alone, as the whole may be as long as a name can be.
    temporary = path.with_name(f".{path.name[-40:]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not that of the temporary file
        raise
    finally:
        temporary.unlink(missing_ok=True)
