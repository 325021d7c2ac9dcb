"""How long work tells its caller how far it is."""

from collections.abc import Callable

ProgressCallback = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1, in the caller's thread."""
