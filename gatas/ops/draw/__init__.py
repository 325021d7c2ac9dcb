"""Samples without replacement ∝ P for several models at once, by numba on a CPU and by Triton on a GPU: the same ones."""

from gatas.ops.draw.contract import DrawInputs, Drawn, draw_torch, shapes
from gatas.ops.operator import operator

__all__ = ["DrawInputs", "Drawn", "draw_samples", "draw_torch"]

draw_samples = operator(
    "draw", DrawInputs, "(Tensor, Tensor, Tensor, Tensor, Tensor)", __name__, "draw", shapes=shapes, shared=range(5, 9)
)
"""Takes the fields of `DrawInputs`, gives `Drawn`."""
