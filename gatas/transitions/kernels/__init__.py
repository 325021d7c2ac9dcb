"""The numba kernels of the transitions. Each has one typed caller, in `build.py`."""

from gatas.ops.bits import WORD
from gatas.transitions.kernels.rows import Adjacency, Workspace, count_rows, fill_rows

__all__ = ["WORD", "Adjacency", "Workspace", "count_rows", "fill_rows"]
