"""`path_evidence` by numba. Threads share out queries; gradients are summed over pieces of them, always the same ones.

Entries are taken by blocks: first their logarithms, vectorised, then their terms, one after another. Where a block has few
paths, as rows are in the order of paths, the weights of a path are read once for the run of its entries; else each entry
reads its own without a branch, which nobody would foresee.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor

from gatas.ops import threads
from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.evidence.contract import SMALLEST, EvidenceInputs

BLOCK = 512
"""Entries whose logarithms are computed together."""
MANY_RUNS = 8
"""A block has many paths if a run of one has fewer entries than this, on average."""
DUMPS = 64
"""Slots after those of candidates, for what is not kept: with one alone, each addition would wait for the last."""
PIECES = 32
"""Queries are shared out among threads in as many pieces, however many threads there are."""
TINY = np.float32(SMALLEST)


class Pieces(NamedTuple):
    """Queries ordered by link type and cut into pieces of about equal work."""

    order: NDArray[np.int64]  # (B,) queries by type
    cuts: NDArray[np.int64]  # (pieces + 1,)
    shared: NDArray[np.int64]  # (pieces,) the first type of a piece if an earlier piece has it too, else -1


def forward(given: EvidenceInputs) -> tuple[Tensor, Tensor]:
    """Scores, and whether any path reaches a candidate."""
    cells = len(given.link_type), given.num_slots
    kind = as_numpy(given.weights[:0]).dtype
    out, reached = np.empty(cells, kind), np.empty(cells, np.bool_)  # numpy asks for huge pages: four times as fast to fill
    nodes, arrays = node_places(given), [as_numpy(tensor) for tensor in given[:5]]
    table, order = table_arrays(given), np.argsort(arrays[2], kind="stable")  # the weights of a type stay in the cache

    def work(first: int, last: int) -> None:
        evidence_rows(*arrays, nodes, *table, given.num_levels, given.backward, order[first:last], out, reached)

    threads.run_rows(work, len(given.link_type), given.num_slots + row_size(given))
    return torch.from_numpy(out), torch.from_numpy(reached)


def backward(given: EvidenceInputs, reached: Tensor, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of weights and unreached."""
    pieces = queries_by_type(given, row_sizes(given) + given.num_slots)
    nodes, arrays, table = node_places(given), [as_numpy(tensor) for tensor in given[2:5]], table_arrays(given)
    gradients = as_numpy(grad_out), as_numpy(reached)

    def work(first: int, last: int, sums: tuple[NDArray[Any], ...]) -> None:
        evidence_gradients(*arrays, nodes, *table, given.num_levels, given.backward, *gradients, *pieces, first, last, *sums)

    return summed_by_type(given, pieces, work, given.num_slots + row_size(given))


def node_places(given: EvidenceInputs) -> NDArray[np.int32]:
    """(N, 2): the slot of each node, and the bits of ln(degree) / 4: side by side, as they are read."""
    places = np.empty((len(given.slot), 2), np.int32)
    fill_node_places(as_numpy(given.slot), as_numpy(given.log_degree), given.num_slots, places)
    return places


def table_arrays(given: Any) -> list[NDArray[Any]]:
    """Where paths are among those with weights, and the table."""
    return [as_numpy(column) for column in (given.path_place, given.indptr, given.node, given.path, given.probability)]


def row_size(given: Any) -> int:
    """Entries in a row, on average."""
    return int(len(given.node) * given.num_levels // max(len(given.indptr) - 1, 1))


def row_sizes(given: Any) -> NDArray[np.int64]:
    """(B,) entries in the row of each query."""
    row, indptr = as_numpy(given.row), as_numpy(given.indptr)[:: given.num_levels]
    found = (row >= 0) & (row < len(indptr) - 1)
    sizes: NDArray[np.int64] = np.zeros(len(row), np.int64)
    sizes[found] = indptr[row[found] + 1] - indptr[row[found]]
    return sizes


def queries_by_type(given: Any, work: NDArray[np.int64]) -> Pieces:
    """Pieces of queries in the order of their types, of about equal work."""
    link_type = as_numpy(given.link_type)
    order = np.argsort(link_type, kind="stable")
    total = np.concatenate([[0], np.cumsum(work[order])])
    cuts = np.unique(np.searchsorted(total, total[-1] * np.arange(PIECES + 1) // PIECES))
    cuts[-1:] = len(order)  # queries without any work at the end
    first = order[cuts[:-1]] if len(order) else order
    before = order[np.maximum(cuts[:-1], 1) - 1] if len(order) else order
    is_shared = (link_type[first] == link_type[before]) & (cuts[:-1] > 0) if len(order) else np.zeros(0, np.bool_)
    return Pieces(order, cuts, np.where(is_shared, link_type[first], -1))


def summed_by_type(given: Any, pieces: Pieces, work: Any, row_elements: int) -> tuple[Tensor, Tensor]:
    """Let `work` add up gradients, and add what pieces have of types that they share with earlier ones."""
    count = len(pieces.shared)
    of_weights, of_unreached = (
        torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in (given.weights, given.unreached)
    )
    totals = of_weights.numpy(), of_unreached.numpy()
    parts = np.zeros((count, *totals[0].shape[1:]), totals[0].dtype)  # numpy takes memory when it is written to
    part_unreached = np.zeros(count, totals[1].dtype)
    sums = (*totals, parts, part_unreached)
    threads.run_rows(lambda first, last: work(first, last, sums), count, row_elements * len(pieces.order) // max(count, 1))
    for piece, kind in enumerate(pieces.shared.tolist()):
        if kind >= 0:
            totals[0][kind] += parts[piece]
            totals[1][kind] += part_unreached[piece]
    return of_weights, of_unreached


def log(x):
    """ln x of a normal number above 0. In float32 by Cephes' polynomial, which LLVM vectorises."""


@overload(log)
def _log(x):
    if x != types.float32:
        return lambda x: np.log(x)

    def single(x):
        bits = np.float32(x).view(np.int32)
        power = (bits - np.int32(0x3F3504F3)) >> np.int32(23)  # x = (1 + r) · 2^power, 1 + r from √½ to √2
        r = np.int32(bits - (power << np.int32(23))).view(np.float32) - np.float32(1.0)
        y = np.float32(7.0376836292e-2)
        y = y * r + np.float32(-1.1514610310e-1)
        y = y * r + np.float32(1.1676998740e-1)
        y = y * r + np.float32(-1.2420140846e-1)
        y = y * r + np.float32(1.4249322787e-1)
        y = y * r + np.float32(-1.6668057665e-1)
        y = y * r + np.float32(2.0000714765e-1)
        y = y * r + np.float32(-2.4999993993e-1)
        y = y * r + np.float32(3.3333331174e-1)
        square, whole = r * r, np.float32(power)
        small = y * r * square + whole * np.float32(-2.12194440e-4) - np.float32(0.5) * square
        return r + small + whole * np.float32(0.693359375)

    return single


@compiled()
def fill_node_places(slot, log_degree, num_slots, places):
    for n in range(slot.size):
        i = np.uint64(n)
        places[i, np.uint64(0)] = slot[i] if slot[i] >= 0 else num_slots + (n & (DUMPS - 1))
        places[i, np.uint64(1)] = np.float32(log_degree[i] * np.float32(0.25)).view(np.int32)


@compiled()
def degree_of(nodes, node):
    """ln(degree) / 4 of a node."""
    return np.int32(nodes[np.uint64(node), np.uint64(1)]).view(np.float32)


@compiled()
def row_bounds(indptr, num_levels, row, path, num_paths):
    """Where a row begins, after the self-loop, and ends, before ids that are none; nothing for a row outside the table."""
    if row < 0 or row >= (indptr.size - 1) // num_levels:
        return np.int64(0), np.int64(0)
    first, last = indptr[row * num_levels], indptr[(row + 1) * num_levels]
    while first < last and path[first] == 0:
        first += 1
    while first < last and path[last - 1] >= num_paths:
        last -= 1
    return first, last


@compiled()
def evidence_rows(
    weights, unreached, link_type, query, row, nodes, path_place, indptr, node, path, probability, num_levels, backward,
    order, out, reached,
):  # fmt: skip
    """Scores of all slots for some queries. A slot that nothing was added to still has -0, which no sum of terms can be."""
    num_slots, number = out.shape[1], out.dtype.type
    scaled, sums = np.empty(BLOCK, out.dtype), np.empty(num_slots + DUMPS, out.dtype)
    for b in order:
        kind = link_type[b]
        degree = number(degree_of(nodes, query[b]))
        start, stop = row_bounds(indptr, num_levels, row[b], path, path_place.size)
        sums[:] = number(-0.0)
        for at in range(start, stop, BLOCK):
            size = min(BLOCK, stop - at)
            scale_logs(probability, at, size, scaled)
            if few_runs(path, at, size):
                add_runs(weights[kind], path_place, nodes, node, path, scaled, at, size, degree, backward, sums)
            else:
                add_entries(weights[kind], path_place, nodes, node, path, scaled, at, size, degree, backward, num_slots, sums)
        finish_row(sums, unreached[kind], out, reached, b)


@compiled(fastmath={"contract"}, error_model="numpy")
def scale_logs(probability, first, size, out):
    """(ln P + 6) / 4 for a block of entries."""
    number = out.dtype.type
    for n in range(size):
        chance = number(max(probability[np.uint64(first) + np.uint64(n)], TINY))
        out[np.uint64(n)] = log(chance) * number(0.25) + number(1.5)


@compiled()
def few_runs(path, first, size):
    """Whether a block of entries has few paths, so that each has a run of several entries."""
    changes = np.int32(0)
    for n in range(size - 1):
        entry = np.uint64(first) + np.uint64(n)
        changes += np.int32(path[entry] != path[entry + np.uint64(1)])
    return changes * MANY_RUNS < size


@compiled()
def run_end(path, first, size, n):
    """Where the run of one path ends that begins n entries after the first of a block."""
    here, end = path[np.uint64(first) + np.uint64(n)], n + 1
    while end < size and path[np.uint64(first) + np.uint64(end)] == here:
        end += 1
    return end


@compiled(fastmath={"contract"})
def add_runs(weights, path_place, nodes, node, path, scaled, first, size, degree, backward, sums):
    """Add the terms of a block, path by path: constant + slope · ln P - of_degree · ln(degree)."""
    n, zero = 0, sums.dtype.type(0)
    while n < size:
        here = path[np.uint64(first) + np.uint64(n)]
        place = path_place[np.uint64(here)]
        if place < 0:
            n = run_end(path, first, size, n)
            continue
        k = np.uint64(place)
        of_degree = weights[k, np.uint64(1)] if backward else weights[k, np.uint64(2)]
        constant = weights[k, np.uint64(0)] + of_degree * degree
        slope = weights[k, np.uint64(1)] + weights[k, np.uint64(2)]
        while n < size:
            entry = np.uint64(first) + np.uint64(n)
            if path[entry] != here:
                break
            v = np.uint64(node[entry])
            term = constant + slope * scaled[np.uint64(n)] - of_degree * degree_of(nodes, v)
            sums[np.uint64(nodes[v, np.uint64(0)])] += term + zero  # never -0
            n += 1


@compiled(fastmath={"contract"})
def add_entries(weights, path_place, nodes, node, path, scaled, first, size, degree, backward, num_slots, sums):
    """Add the terms of a block, each with the weights of its own path."""
    own, other = np.uint64(2 if backward else 1), np.uint64(1 if backward else 2)
    zero = sums.dtype.type(0)
    for n in range(size):
        entry = np.uint64(first) + np.uint64(n)
        v, place = np.uint64(node[entry]), path_place[np.uint64(path[entry])]
        k = np.uint64(max(place, 0))
        slot = np.uint64(nodes[v, np.uint64(0)]) if place >= 0 else np.uint64(num_slots) + np.uint64(n & (DUMPS - 1))
        this = scaled[np.uint64(n)]
        that = this + (degree - degree_of(nodes, v))
        sums[slot] += weights[k, np.uint64(0)] + weights[k, own] * this + weights[k, other] * that + zero


@compiled()
def finish_row(sums, unreached, out, reached, row):
    """Copy the sums of a query, with `unreached` in place of -0."""
    i, number = np.uint64(row), out.dtype.type
    for c in range(out.shape[1]):
        place = np.uint64(c)
        value = sums[place]
        found = (value != number(0)) | (np.copysign(number(1), value) > number(0))
        out[i, place] = value if found else unreached
        reached[i, place] = found


@compiled()
def evidence_gradients(
    link_type, query, row, nodes, path_place, indptr, node, path, probability, num_levels, backward,
    grad_out, reached, order, cuts, shared, first, last, of_weights, of_unreached, parts, part_unreached,
):  # fmt: skip
    """Gradients of weights and unreached from some pieces of queries; a type that an earlier piece has too is kept apart."""
    num_slots, number = grad_out.shape[1], of_weights.dtype.type
    scaled, grads = np.empty(BLOCK, of_weights.dtype), np.zeros(num_slots + DUMPS, of_weights.dtype)
    for piece in range(first, last):
        for at in range(cuts[piece], cuts[piece + 1]):
            b = order[at]
            kind = link_type[b]
            apart = kind == shared[piece]
            sums = parts[piece] if apart else of_weights[kind]
            rest = copy_gradients(grad_out, reached, b, grads)
            if apart:
                part_unreached[piece] += rest
            else:
                of_unreached[kind] += rest
            degree = number(degree_of(nodes, query[b]))
            start, stop = row_bounds(indptr, num_levels, row[b], path, path_place.size)
            for block in range(start, stop, BLOCK):
                size = min(BLOCK, stop - block)
                scale_logs(probability, block, size, scaled)
                if few_runs(path, block, size):
                    sum_runs(grads, path_place, nodes, node, path, scaled, block, size, degree, backward, sums)
                else:
                    sum_entries(grads, path_place, nodes, node, path, scaled, block, size, degree, backward, sums)


@compiled(fastmath={"reassoc", "contract"})
def copy_gradients(grad_out, reached, row, grads):
    """Copy a query's gradients; returns their sum over slots that are not reached."""
    i, rest = np.uint64(row), grads.dtype.type(0)
    for c in range(grad_out.shape[1]):
        place = np.uint64(c)
        gradient = grad_out[i, place]
        grads[place] = gradient
        rest += grads.dtype.type(0) if reached[i, place] else gradient
    return rest


@compiled(fastmath={"contract"})
def sum_runs(grads, path_place, nodes, node, path, scaled, first, size, degree, backward, sums):
    """Add the gradients of a block to the weights, path by path."""
    own, other = np.uint64(2 if backward else 1), np.uint64(1 if backward else 2)
    n, zero = 0, grads.dtype.type(0)
    while n < size:
        here = path[np.uint64(first) + np.uint64(n)]
        place = path_place[np.uint64(here)]
        if place < 0:
            n = run_end(path, first, size, n)
            continue
        constant, of_log, of_degree = zero, zero, zero
        while n < size:
            entry = np.uint64(first) + np.uint64(n)
            if path[entry] != here:
                break
            v = np.uint64(node[entry])
            gradient = grads[np.uint64(nodes[v, np.uint64(0)])]
            constant += gradient
            of_log += gradient * scaled[np.uint64(n)]
            of_degree += gradient * degree_of(nodes, v)
            n += 1
        k = np.uint64(place)
        sums[k, np.uint64(0)] += constant
        sums[k, own] += of_log
        sums[k, other] += of_log + degree * constant - of_degree


@compiled(fastmath={"contract"})
def sum_entries(grads, path_place, nodes, node, path, scaled, first, size, degree, backward, sums):
    """Add the gradients of a block to the weights, one entry after another."""
    own, other = np.uint64(2 if backward else 1), np.uint64(1 if backward else 2)
    for n in range(size):
        entry = np.uint64(first) + np.uint64(n)
        v, place = np.uint64(node[entry]), path_place[np.uint64(path[entry])]
        if place >= 0:
            k, this = np.uint64(place), scaled[np.uint64(n)]
            gradient = grads[np.uint64(nodes[v, np.uint64(0)])]
            sums[k, np.uint64(0)] += gradient
            sums[k, own] += gradient * this
            sums[k, other] += gradient * (this + (degree - degree_of(nodes, v)))
