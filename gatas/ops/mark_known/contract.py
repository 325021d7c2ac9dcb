"""Which candidates are known links of queries, in plain torch."""

from typing import NamedTuple

import torch
from torch import Tensor


class KnownInputs(NamedTuple):
    """B queries, C candidate slots, N nodes, T link types."""

    known_indptr: Tensor  # (T·N + 1,) int64  where the known links of (type, query node) begin; with T = 1, of numbered queries
    known_node: Tensor  # int32 or int64      the other ends of known links
    link_type: Tensor  # (B,) int64
    query: Tensor  # (B,) int64   node index, or number
    slot: Tensor  # (N,) int32    the place of a node among the C candidates, or -1
    num_slots: int


def mark_known_torch(given: KnownInputs) -> Tensor:
    """(B, C) bool."""
    key = given.link_type * len(given.slot) + given.query
    first, sizes = given.known_indptr[key], given.known_indptr[key + 1] - given.known_indptr[key]
    batch = torch.repeat_interleave(torch.arange(len(key), device=key.device), sizes)
    place = torch.arange(len(batch), device=key.device) - (sizes.cumsum(0) - sizes)[batch] + first[batch]
    slot = given.slot[given.known_node[place].long()].long()
    out = shapes(given).zero_()
    out[batch[slot >= 0], slot[slot >= 0]] = True
    return out


def shapes(given: KnownInputs) -> Tensor:
    return given.query.new_empty((given.query.shape[0], given.num_slots), dtype=torch.bool)
