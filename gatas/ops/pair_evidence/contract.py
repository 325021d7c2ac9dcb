"""Path evidence of single pairs, in plain torch. B pairs of a query and another node; the rest as in `evidence`."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from gatas.ops.evidence.contract import entry_places, entry_terms, row_entries


class PairInputs(NamedTuple):
    """What the evidence of pairs is a function of. Gradients flow to `weights` and `unreached`."""

    weights: Tensor  # (T, P, 3) of a path: constant, slope of ln P forth, slope of ln P back
    unreached: Tensor  # (T,) the score of pairs that no path with weights connects
    link_type: Tensor  # (B,) int64
    query: Tensor  # (B,) int64   node index
    other: Tensor  # (B,) int64   node index of the other end
    row: Tensor  # (B,) int64     the query's row; outside the table: an empty one
    path_place: Tensor  # (number of path ids,) int32  the place of a path among the P, or -1: ignored; reversed if `backward`
    log_degree: Tensor  # (N,) float32
    indptr: Tensor  # these four are the table: where the levels of rows begin, and their entries
    node: Tensor
    path: Tensor
    probability: Tensor
    num_levels: int
    backward: bool  # whether queries are the targets of links, and the others their sources


def pair_evidence_torch(given: PairInputs) -> tuple[Tensor, Tensor]:
    """(B,) scores, and whether any path connects a pair."""
    batch, entry = row_entries(given.row, given.indptr, given.num_levels)
    place = entry_places(given.path[entry], given.path_place)
    kept = (place >= 0) & (given.node[entry].long() == given.other[batch])
    batch, entry, place = batch[kept], entry[kept], place[kept]
    terms = entry_terms(given, batch, entry, place)
    sums = terms.new_zeros(given.link_type.shape).index_put((batch,), terms, accumulate=True)
    reached = torch.zeros(sums.shape, dtype=torch.bool, device=sums.device)
    reached[batch] = True
    return torch.where(reached, sums, given.unreached[given.link_type]), reached


def shapes(given: PairInputs) -> tuple[Tensor, Tensor]:
    pairs = given.link_type.shape
    return given.weights.new_empty(pairs), given.weights.new_empty(pairs, dtype=torch.bool)


def backward_shapes(given: PairInputs, *_: Any) -> tuple[Tensor, Tensor]:
    """Gradients of weights and unreached."""
    return given.weights.new_empty(given.weights.shape), given.unreached.new_empty(given.unreached.shape)
