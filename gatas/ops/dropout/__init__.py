"""Which elements a dropout keeps, by numba on a CPU and by Triton on a GPU: the same ones."""

from torch import Tensor

from gatas.ops.dropout.contract import KeepInputs, empty_keep, keep_at_torch, keep_torch
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource

__all__ = ["KeepInputs", "keep", "keep_at", "keep_at_torch", "keep_torch"]


def keep(
    noise: NoiseSource,
    place: int,
    first: Tensor,
    second: Tensor,
    width: int,
    probability: float,
    rate: Tensor | None = None,
) -> Tensor:
    """(R, width) float32: 0 with the given probability, else 1 / (1 - probability). Row r is named by first[r], second[r].

    A `rate`, () float64, is a probability that models called as one have each for itself.
    """
    own = None if rate is None else rate[None]
    kept: Tensor = _keep(noise.seed[None], noise.step[None], place, first[None], second[None], width, probability, own)
    return kept.squeeze(0)


_keep = operator("keep", KeepInputs, "Tensor", __name__, "keep", shapes=empty_keep)


def keep_at(noise: NoiseSource, place: int, row: Tensor, column: Tensor, probability: float) -> Tensor:
    """(E,) float32: what `keep` has at column[e] of the row named (row[e], 0); for the elements of sparse rows."""
    if row.is_cuda:
        return keep_at_torch(noise, place, row, column, probability)
    from gatas.ops.dropout import cpu

    return cpu.keep_at(noise, place, row, column, probability)
