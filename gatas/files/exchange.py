"""Two names exchanged at once, by what Linux and macOS offer: a kill between two renames would leave one without content."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

AT_FDCWD, RENAME_EXCHANGE, RENAME_SWAP = -100, 2, 2
NOT_OFFERED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
"""Codes of systems and disks that know no exchange; EPERM is that of some sandboxes."""


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names stand for, at once; returns whether the system and the disk can."""
    call = _call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in NOT_OFFERED:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@lru_cache(maxsize=1)
def _call() -> Callable[[bytes, bytes], int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return lambda one, other: int(library.renamex_np(one, other, RENAME_SWAP))
    if hasattr(library, "renameat2"):
        return lambda one, other: int(library.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE))
    return None
