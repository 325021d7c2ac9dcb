"""Path evidence of all candidates (DESIGN: how a node is reached, by typed path), in plain torch.

B queries, C candidate slots, N nodes, T link types, P paths with weights. A row of the table is ascending by (path, node),
and no (path, node) is in it twice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

SELF_LOOP_PATH = 0
"""The path of a row's first entry, the target itself, which is no evidence."""
CENTRE, SPREAD = 6.0, 4.0
"""ln P is scaled to (ln P + 6) / 4, which is about -1 to 1 for most entries."""
SMALLEST = 1.1754943508222875e-38
"""The smallest normal float32: what is less likely counts as this."""
ENTRIES = 1 << 24
"""Entries of rows that are looked at together, some 100 bytes each, where there is no kernel for it."""


class EvidenceInputs(NamedTuple):
    """What the evidence is a function of. Gradients flow to `weights` and `unreached`."""

    weights: Tensor  # (T, P, 3) of a path: constant, slope of ln P forth, slope of ln P back
    unreached: Tensor  # (T,) the score of candidates that no path with weights leads to
    link_type: Tensor  # (B,) int64
    query: Tensor  # (B,) int64   node index
    row: Tensor  # (B,) int64     the query's row; outside the table: an empty one
    slot: Tensor  # (N,) int32    the place of a node among the C candidates, or -1; no two nodes have the same
    path_place: Tensor  # (number of path ids,) int32  the place of a path among the P, or -1: ignored; reversed if `backward`
    log_degree: Tensor  # (N,) float32
    indptr: Tensor  # these four are the table: where the levels of rows begin, and their entries
    node: Tensor
    path: Tensor
    probability: Tensor
    num_levels: int  # C + 1 levels of a row
    num_slots: int  # C candidates
    backward: bool  # whether queries are the targets of links, and candidates their sources


def path_evidence_torch(given: EvidenceInputs) -> tuple[Tensor, Tensor]:
    """(B, C): Σ over a candidate's entries of w₀ + w₁ s(ln P forth) + w₂ s(ln P back), and whether it has any."""
    batch, entry = row_entries(given.row, given.indptr, given.num_levels)
    slot, place = given.slot[given.node[entry].long()].long(), entry_places(given.path[entry], given.path_place)
    kept = (slot >= 0) & (place >= 0)
    batch, entry, slot, place = batch[kept], entry[kept], slot[kept], place[kept]
    terms = entry_terms(given, batch, entry, place)
    cells = given.link_type.shape[0], given.num_slots
    sums = terms.new_zeros(cells).index_put((batch, slot), terms, accumulate=True)
    reached = torch.zeros(cells, dtype=torch.bool, device=sums.device)
    reached[batch, slot] = True
    return torch.where(reached, sums, given.unreached[given.link_type][:, None]), reached


def row_entries(row: Tensor, indptr: Tensor, num_levels: int) -> tuple[Tensor, Tensor]:
    """Which query each entry of some rows belongs to, and its place in the table."""
    first, sizes = row_bounds(row, indptr, num_levels)
    batch = torch.repeat_interleave(torch.arange(len(row), device=row.device), sizes)
    before = (sizes.cumsum(0) - sizes)[batch]
    return batch, torch.arange(len(batch), device=row.device) - before + first[batch]


def row_bounds(row: Tensor, indptr: Tensor, num_levels: int) -> tuple[Tensor, Tensor]:
    """Where rows begin in the table, and how many entries they have: none outside it."""
    found = (row >= 0) & (row < (len(indptr) - 1) // num_levels)
    first, last = (indptr[torch.where(found, row + more, 0) * num_levels] for more in (0, 1))
    return first, last - first


def in_pieces(
    work: Callable[[Any], tuple[Tensor, Tensor]], given: Any, queries: tuple[str, ...], most: int = ENTRIES
) -> Tensor:
    """Scores by `work`, of so few queries at a time that their rows have `most` entries together, or of one; a GPU waits.

    `queries` are the names of the inputs that have a number for each query.
    """
    sizes = row_bounds(given.row, given.indptr, given.num_levels)[1].cpu().numpy()
    total, parts, first = np.cumsum(sizes), list[Tensor](), 0
    while first < len(total) or not parts:
        before = total[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        parts.append(work(given._replace(**{name: getattr(given, name)[first:last] for name in queries}))[0])
        first = last
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def entry_places(path: Tensor, path_place: Tensor) -> Tensor:
    """The place of each entry's path among the P, or -1; path ids beyond those of `path_place` are ignored."""
    known = (path != SELF_LOOP_PATH) & (path.long() < len(path_place))
    if not len(path_place):
        return torch.full_like(path, -1, dtype=torch.int64)
    return torch.where(known, path_place[torch.where(known, path.long(), 0)].long(), -1)


def entry_terms(given: Any, batch: Tensor, entry: Tensor, place: Tensor) -> Tensor:
    """w₀ + w₁ s(ln P forth) + w₂ s(ln P back) of entries of the rows of queries `batch`."""
    kind = given.weights.dtype
    own = given.probability[entry].to(kind).clamp(min=SMALLEST).log()
    degree = given.log_degree.to(kind)
    other = own + degree[given.query[batch]] - degree[given.node[entry].long()]
    forth, back = (other, own) if given.backward else (own, other)
    weights = given.weights[given.link_type[batch], place]
    terms: Tensor = weights[:, 0] + weights[:, 1] * (forth + CENTRE) / SPREAD + weights[:, 2] * (back + CENTRE) / SPREAD
    return terms


def shapes(given: EvidenceInputs) -> tuple[Tensor, Tensor]:
    cells = given.link_type.shape[0], given.num_slots
    return given.weights.new_empty(cells), given.weights.new_empty(cells, dtype=torch.bool)


def backward_shapes(given: EvidenceInputs, *_: Any) -> tuple[Tensor, Tensor]:
    """Gradients of weights and unreached."""
    return given.weights.new_empty(given.weights.shape), given.unreached.new_empty(given.unreached.shape)
