"""`attend` on a GPU from n itself, keys and values included: made once per pair, or in tiles of slots and never written.

The operator has no implementation for CPUs: Triton's runs there in its interpreter, for tests.
"""

from typing import Any

from torch import Tensor

from gatas.ops.attend_neighbours.contract import (
    TILES_WIDEST,
    WIDEST,
    NeighbourInputs,
    Precision,
    Storage,
    attend_neighbours_torch,
    backward_shapes,
    own_pairs,
    shapes,
)
from gatas.ops.models import one_model
from gatas.ops.operator import operator

__all__ = ["TILES_WIDEST", "WIDEST", "NeighbourInputs", "Precision", "Storage", "attend_neighbours", "attend_neighbours_torch"]


def attend_neighbours(
    target_terms: Tensor,
    neighbours: Tensor,
    key_weight: Tensor,
    score: Tensor,
    value_weight: Tensor,
    value_bias: Tensor,
    index: Tensor | None,
    log_probability: Tensor,
    mask: Tensor,
    keep: Tensor | None = None,
    precision: Precision = "tf32",
    storage: Storage = "auto",
) -> Tensor:
    """(B, K, F''). With an index, keys and values are made once for each pair; without one, in tiles on the tensor cores.

    Args:
        target_terms: (B, K, F'), u: what g's hidden layer has of the target, bias included.
        neighbours: (U, J), n.
        key_weight: (K·F', J): keys are n · key_weightᵀ.
        score: (K, F'), w: g's output layer.
        value_weight: (K·F'', J): values are ELU(n · value_weightᵀ + value_bias).
        value_bias: (K·F'').
        index: (B, S), which pair each slot holds; None: U = B·S, its own.
        log_probability: (B, S), ln P.
        mask: (B, S), slots in use.
        keep: (B, S, K), attention dropout: 0, or 1 / (1 - p). None: nothing is dropped.
        precision: what the tensor cores are given.
        storage: what keys and values of pairs are stored in. A target gets NaN for one that float16 cannot hold.
    """
    if index is None and max(target_terms.shape[-1], neighbours.shape[-1], len(value_bias) // len(score)) > TILES_WIDEST:
        index = own_pairs(mask)
    single = (tensor.float() for tensor in (target_terms, neighbours, key_weight, score, value_weight, value_bias))
    given = (*single, index, log_probability.float(), mask, keep)
    out: Tensor = _attend_neighbours(*one_model(given), precision, storage)[0]
    return out.squeeze(0)


def _setup(ctx: Any, inputs: NeighbourInputs, output: list[Tensor]) -> None:
    *tensors, ctx.precision, ctx.storage = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grads: list[Tensor | None]) -> tuple[Tensor | None, ...]:
    if grads[0] is None:
        return (None,) * 12
    inputs, results = ctx.saved_tensors[:10], ctx.saved_tensors[10:]
    *weights, log = _attend_neighbours_backward(*inputs, ctx.precision, ctx.storage, list(results), grads[0])
    return (*weights, None, log, None, None, None, None)


_attend_neighbours = operator(
    "attend_neighbours",
    NeighbourInputs,
    "Tensor[]",
    __name__,
    "forward",
    devices="triton",
    shapes=shapes,
    setup=_setup,
    backward=_differentiate,
)
_attend_neighbours_backward = operator(
    "attend_neighbours_backward",
    NeighbourInputs,
    "Tensor[]",
    __name__,
    "backward",
    devices="triton",
    more={"results": list[Tensor], "grad_out": Tensor},
    shapes=backward_shapes,
)
