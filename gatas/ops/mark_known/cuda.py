"""`mark_known` by Triton: one program for each query."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.launch import launch
from gatas.ops.mark_known.contract import KnownInputs


def mark(given: KnownInputs) -> Tensor:
    """(B, C) bool."""
    out = torch.zeros((len(given.query), given.num_slots), dtype=torch.bool, device=given.query.device)
    launch(mark_row, (len(given.query),), *given[:5], out, len(given.slot), given.num_slots, BLOCK=256, num_warps=2)
    return out


@triton.jit
def mark_row(known_indptr, known_node, link_type, query, slot, out, num_nodes, num_slots, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    key = tl.load(link_type + b) * num_nodes + tl.load(query + b)
    first, last = tl.load(known_indptr + key), tl.load(known_indptr + key + 1)
    for start in range(first, last, BLOCK):
        known = start + tl.arange(0, BLOCK)
        neighbour = tl.load(known_node + known, mask=known < last, other=0)
        place = tl.load(slot + neighbour, mask=known < last, other=-1)
        tl.store(out + b * num_slots + place, tl.full((BLOCK,), 1, tl.int1), mask=place >= 0)
