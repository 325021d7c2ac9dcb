"""Which candidates are known links of queries, for filtered ranking, by numba on a CPU and by Triton on a GPU."""

from gatas.ops.mark_known.contract import KnownInputs, mark_known_torch, shapes
from gatas.ops.operator import operator

__all__ = ["KnownInputs", "mark_known", "mark_known_torch"]

mark_known = operator("mark_known", KnownInputs, "Tensor", __name__, "mark", shapes=shapes, shared=range(5))
"""Takes the fields of `KnownInputs`, gives (B, C) bool."""
