"""Compiled code is kept on disk, and compiled again if it cannot be read or kept."""

import errno

import pytest

numba = pytest.importorskip("numba")
from numba.core.caching import IndexDataCacheFile  # noqa: E402

from densembed.kernels import compiler  # noqa: E402


def twice(x):
    return x + x


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """What compiles `twice` as a new process would, and whether that took the code from disk."""
    monkeypatch.setattr(compiler.settings, "CACHE_DIR", str(tmp_path))

    def call() -> bool:
        function = compiler.kernel(twice)
        assert function(3.0) == 6.0
        return bool(function.stats.cache_hits)

    return call


def test_compiled_code_is_kept(compiled):
    assert [compiled(), compiled()] == [False, True]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: b"garbage" + data[7:],
                                    lambda data: data[: len(data) // 2]])  # fmt: skip
def test_damaged_code_is_compiled_again(compiled, tmp_path, ending, damage):
    compiled()
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    assert [compiled(), compiled()] == [False, True]


def test_without_room_for_code_it_is_compiled_each_time(compiled, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_dump", full)
    assert [compiled(), compiled()] == [False, False]
