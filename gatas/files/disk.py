"""What a disk refuses: room for more, or a file that another process holds."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""Codes of errors that say so."""


def check_free_space(folder: Path, num_bytes: int) -> None:
    """Raise the error of a full disk before so many bytes are written to one that has no room for them."""
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise OSError(errno.ENOSPC, f"it needs {num_bytes:,} bytes and the disk has {free:,} free")


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that caused it, says that the disk takes no more: trying again does not help."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__
    return False


def reason(error: OSError) -> str:
    """Why the system refused, in its words. numpy reports a short write without a code; its text says how much was written."""
    return error.strerror or str(error) or "the disk may be full"


class FileLock:
    """A lock that processes hold on a file, and which ends with them. Opening it takes nothing yet; nothing here waits."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w")

    def acquire(self) -> None:
        """Be the only holder. `BlockingIOError`: another process is one; other errors: the disk knows no locks."""
        fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def acquire_shared(self) -> None:
        """Be one of several holders. `BlockingIOError`: another process is the only one."""
        fcntl.flock(self.file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def close(self) -> None:
        """Give up the lock."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is alone in a folder, and have others wait; on a disk that knows no locks nobody waits."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
