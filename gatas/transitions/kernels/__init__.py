"""Every CPU numba function of this package. Each kernel has one typed caller, in `build.py`."""

from gatas.transitions.kernels.bits import WORD
from gatas.transitions.kernels.compiled import compiled
from gatas.transitions.kernels.likeliest import kth_largest
from gatas.transitions.kernels.rows import Adjacency, Workspace, count_rows, fill_rows

__all__ = ["WORD", "Adjacency", "Workspace", "compiled", "count_rows", "fill_rows", "kth_largest"]
