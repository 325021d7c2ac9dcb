"""Which elements a dropout keeps, by numba on a CPU and by Triton on a GPU: the same ones."""

from torch import Tensor

from gatas.ops.dropout.contract import KeepInputs, empty_keep, keep_torch
from gatas.ops.operator import operator
from gatas.ops.random import NoiseSource

__all__ = ["KeepInputs", "keep", "keep_torch"]


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
