"""Memory of a process that trains on a CPU."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Ask glibc to keep what is freed, for the next step to use; whether it is there to be asked.

    A training step frees and takes the same large tensors again and again. By default glibc gives each back to the system
    and gets zeroed pages for the next, which costs a tenth of a step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, LARGEST))
