"""`path_evidence` by Triton: several programs for each row, which take its blocks in turn.

Terms are added up with atomic operations, as a node may be reached by paths of different blocks. A slot that nothing was
added to still has -0, which no sum of terms can be. In gradients the entries of a block, which are in the order of paths, are
first summed by path, so that there is one atomic operation for each run of a path.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.evidence.contract import EvidenceInputs
from gatas.ops.launch import launch

BLOCK = 512
PROGRAMS = 8192
"""About so many programs are launched, or one for each query if there are more of them."""
SLOTS = 1024
"""Slots that one program of a sweep over all of them takes at a time."""
SMALLEST = tl.constexpr(1.1754943508222875e-38)
LEAST_TERM = tl.constexpr(1e-30)
"""Smaller terms count as 0. Sums of larger ones are never subnormal, which atomic operations may round to -0."""


def forward(given: EvidenceInputs) -> tuple[Tensor, Tensor]:
    """Scores, and whether any path reaches a candidate."""
    batch, num_slots = len(given.link_type), given.num_slots
    sums = torch.full((batch, num_slots), -0.0, dtype=torch.float32, device=given.weights.device)
    reached = torch.empty((batch, num_slots), dtype=torch.bool, device=sums.device)
    launch(
        add_terms, (batch, programs_per_row(batch)), *given[:1], *given[2:12], sums, **sizes(given), BLOCK=BLOCK, num_warps=4
    )
    grid = (batch, triton.cdiv(num_slots, SLOTS))
    launch(finish_slots, grid, sums, given.unreached, given.link_type, reached, num_slots, SLOTS=SLOTS, num_warps=4)
    return sums, reached


def backward(given: EvidenceInputs, reached: Tensor, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of weights and unreached."""
    batch, num_slots = len(given.link_type), given.num_slots
    of_weights = torch.zeros_like(given.weights, memory_format=torch.contiguous_format)
    rest = torch.zeros(batch, dtype=torch.float32, device=of_weights.device)
    launch(
        sum_terms, (batch, programs_per_row(batch)), of_weights, *given[2:12], grad_out,
        **sizes(given), BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    launch(sum_unreached, (batch,), grad_out, reached, rest, num_slots, SLOTS=SLOTS, num_warps=4)
    return of_weights, torch.zeros_like(given.unreached).index_add_(0, given.link_type, rest)


def programs_per_row(batch: int) -> int:
    """How many programs share a row; of the batch's size alone, so that a graph can be captured."""
    return int(min(64, triton.cdiv(PROGRAMS, max(batch, 1))))


def sizes(given: EvidenceInputs) -> dict[str, Any]:
    num_rows = (len(given.indptr) - 1) // given.num_levels
    return {
        "num_rows": num_rows, "num_weights": given.weights.shape[1], "num_paths": len(given.path_place),
        "num_slots": given.num_slots, "LEVELS": given.num_levels, "BACKWARD": given.backward,
    }  # fmt: skip


@triton.jit
def row_bounds(row, indptr, num_rows, LEVELS: tl.constexpr):
    """Where a row begins and ends; nothing for a row outside the table."""
    found = (row >= 0) & (row < num_rows)
    level = indptr + tl.where(found, row, 0) * LEVELS
    return tl.load(level, mask=found, other=0), tl.load(level + LEVELS, mask=found, other=0)


@triton.jit
def entry_places(path, entry, inside, path_place, num_paths):
    """The path of entries, and its place among those with weights or -1; -1 for the self-loop and outside the row."""
    walked = tl.load(path + entry, mask=inside, other=0).to(tl.int64)
    known = inside & (walked != 0) & (walked < num_paths)
    return tl.load(path_place + walked, mask=known, other=-1).to(tl.int64)


@triton.jit
def scaled_logs(probability, log_degree, entry, neighbour, degree, kept, BACKWARD: tl.constexpr):
    """(ln P + 6) / 4 forth and back."""
    own = tl.log(tl.maximum(tl.load(probability + entry, mask=kept, other=1.0), SMALLEST))
    other = own + degree - tl.load(log_degree + neighbour, mask=kept, other=0.0)
    if BACKWARD:
        return other * 0.25 + 1.5, own * 0.25 + 1.5
    else:
        return own * 0.25 + 1.5, other * 0.25 + 1.5


@triton.jit
def path_terms(weights, place, forth, back, kept):
    """w₀ + w₁ s(ln P forth) + w₂ s(ln P back)."""
    first = tl.load(weights + place * 3, mask=kept, other=0.0)
    return (
        first
        + tl.load(weights + place * 3 + 1, mask=kept, other=0.0) * forth
        + (tl.load(weights + place * 3 + 2, mask=kept, other=0.0) * back)
    )


@triton.jit(do_not_specialize=["num_rows"])
def add_terms(
    weights, link_type, query, row, slot, path_place, log_degree, indptr, node, path, probability, sums,
    num_rows, num_weights, num_paths, num_slots, LEVELS: tl.constexpr, BACKWARD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Some blocks of one query's row: add the term of each entry to the slot of its node."""
    b = tl.program_id(0).to(tl.int64)
    first, last = row_bounds(tl.load(row + b), indptr, num_rows, LEVELS)
    degree = tl.load(log_degree + tl.load(query + b))
    weights += tl.load(link_type + b) * num_weights * 3
    sums += b * num_slots
    for start in range(first + tl.program_id(1) * BLOCK, last, tl.num_programs(1) * BLOCK):
        entry = start + tl.arange(0, BLOCK)
        place = entry_places(path, entry, entry < last, path_place, num_paths)
        neighbour = tl.load(node + entry, mask=place >= 0, other=0)
        at = tl.load(slot + neighbour, mask=place >= 0, other=-1)
        forth, back = scaled_logs(probability, log_degree, entry, neighbour, degree, at >= 0, BACKWARD)
        term = path_terms(weights, place, forth, back, at >= 0)
        term = tl.where(tl.abs(term) < LEAST_TERM, 0.0, term)
        tl.atomic_add(sums + at, term, mask=at >= 0, sem="relaxed")


@triton.jit
def finish_slots(sums, unreached, link_type, reached, num_slots, SLOTS: tl.constexpr):
    """Replace -0 by `unreached`, and note what is reached."""
    b = tl.program_id(0).to(tl.int64)
    slot = tl.program_id(1) * SLOTS + tl.arange(0, SLOTS)
    inside, at = slot < num_slots, b * num_slots + slot
    value = tl.load(sums + at, mask=inside, other=0.0)
    found = value.to(tl.int32, bitcast=True) != -2147483648
    tl.store(sums + at, tl.load(unreached + tl.load(link_type + b)), mask=inside & (found == 0))
    tl.store(reached + at, found, mask=inside)


@triton.jit
def add_in_run(path, constant, forth, back, next_path, next_constant, next_forth, next_back):
    """Sums of a run so far, begun anew where the path changes."""
    joined = path == next_path
    return (
        next_path,
        tl.where(joined, constant, 0.0) + next_constant,
        tl.where(joined, forth, 0.0) + next_forth,
        tl.where(joined, back, 0.0) + next_back,
    )


@triton.jit(do_not_specialize=["num_rows"])
def sum_terms(
    of_weights, link_type, query, row, slot, path_place, log_degree, indptr, node, path, probability, grad_out,
    num_rows, num_weights, num_paths, num_slots, LEVELS: tl.constexpr, BACKWARD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Some blocks of one query's row: gradients of the weights, summed over the entries of each path."""
    b = tl.program_id(0).to(tl.int64)
    first, last = row_bounds(tl.load(row + b), indptr, num_rows, LEVELS)
    degree = tl.load(log_degree + tl.load(query + b))
    of_weights += tl.load(link_type + b) * num_weights * 3
    grad_out += b * num_slots
    lane = tl.arange(0, BLOCK)
    for start in range(first + tl.program_id(1) * BLOCK, last, tl.num_programs(1) * BLOCK):
        entry = start + lane
        place = entry_places(path, entry, entry < last, path_place, num_paths)
        neighbour = tl.load(node + entry, mask=place >= 0, other=0)
        at = tl.load(slot + neighbour, mask=place >= 0, other=-1)
        forth, back = scaled_logs(probability, log_degree, entry, neighbour, degree, at >= 0, BACKWARD)
        gradient = tl.load(grad_out + at, mask=at >= 0, other=0.0)
        lowest, highest = tl.min(place, 0), tl.max(place, 0)
        if lowest == highest:
            if highest >= 0:
                tl.atomic_add(of_weights + highest * 3, tl.sum(gradient, 0), sem="relaxed")
                tl.atomic_add(of_weights + highest * 3 + 1, tl.sum(gradient * forth, 0), sem="relaxed")
                tl.atomic_add(of_weights + highest * 3 + 2, tl.sum(gradient * back, 0), sem="relaxed")
        else:
            run, constant, of_forth, of_back = tl.associative_scan(
                (place, gradient, gradient * forth, gradient * back), 0, add_in_run
            )
            after = entry_places(path, entry + 1, (entry + 1 < last) & (lane < BLOCK - 1), path_place, num_paths)
            ends = (run >= 0) & (after != run)
            tl.atomic_add(of_weights + run * 3, constant, mask=ends, sem="relaxed")
            tl.atomic_add(of_weights + run * 3 + 1, of_forth, mask=ends, sem="relaxed")
            tl.atomic_add(of_weights + run * 3 + 2, of_back, mask=ends, sem="relaxed")


@triton.jit
def sum_unreached(grad_out, reached, rest, num_slots, SLOTS: tl.constexpr):
    """The sum of one query's gradients over slots that are not reached."""
    b = tl.program_id(0).to(tl.int64)
    total = tl.zeros((SLOTS,), tl.float32)
    for first in range(0, num_slots, SLOTS):
        slot = first + tl.arange(0, SLOTS)
        missed = tl.load(reached + b * num_slots + slot, mask=slot < num_slots, other=1) == 0
        total += tl.load(grad_out + b * num_slots + slot, mask=missed, other=0.0)
    tl.store(rest + b, tl.sum(total, 0))
