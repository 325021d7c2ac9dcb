"""How kernels are compiled."""

from numba import njit


def compiled(**options):
    """`njit` that keeps its result for the next process, where there is a folder to keep it in, and lets go of the GIL."""

    def decorate(function):
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # installed read-only and no home: compiled anew each time, unless NUMBA_CACHE_DIR is set
            return njit(nogil=True, **options)(function)

    return decorate
