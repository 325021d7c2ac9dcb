"""Import the libraries that a command works with, quickly."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Collect no garbage while torch and what stands on it are imported: a fifth of the time went into looking for some.

    The modules are left out of later collections too. Where torch is imported already, nothing changes.
    """
    if "torch" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
