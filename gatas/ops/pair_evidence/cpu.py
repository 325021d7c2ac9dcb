"""`pair_evidence` by numba: a row is in the order of (path, node), so a node is looked for in each path by galloping.

Short paths are looked through instead, several at a time.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.ops import threads
from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.evidence.contract import SMALLEST
from gatas.ops.evidence.cpu import queries_by_type, row_bounds, row_sizes, summed_by_type, table_arrays
from gatas.ops.pair_evidence.contract import PairInputs

TINY = np.float32(SMALLEST)
BLOCK = 256
"""A path with fewer entries is looked through, which takes less time than a search whose steps wait for one another."""
SEARCH = 1024
"""A pair costs about as much as so many elements of other operators."""


def forward(given: PairInputs) -> tuple[Tensor, Tensor]:
    """Scores, and whether any path connects a pair."""
    out, reached = given.weights.new_empty(len(given.link_type)), torch.empty(len(given.link_type), dtype=torch.bool)
    arrays, table = [as_numpy(tensor) for tensor in given[:6]], table_arrays(given)
    degree, columns = as_numpy(given.log_degree), (out.numpy(), reached.numpy())

    def work(first: int, last: int) -> None:
        pair_scores(*arrays, degree, *table, given.num_levels, given.backward, first, last, *columns)

    threads.run_rows(work, len(out), SEARCH)
    return out, reached


def backward(given: PairInputs, reached: Tensor, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of weights and unreached."""
    pieces = queries_by_type(given, np.minimum(row_sizes(given), SEARCH) + 1)
    arrays, table = [as_numpy(tensor) for tensor in given[2:6]], table_arrays(given)
    degree, gradients = as_numpy(given.log_degree), (as_numpy(grad_out), as_numpy(reached))

    def work(first: int, last: int, sums: tuple[NDArray[Any], ...]) -> None:
        pair_gradients(*arrays, degree, *table, given.num_levels, given.backward, *gradients, *pieces, first, last, *sums)

    return summed_by_type(given, pieces, work, SEARCH)


def entries(
    other: Tensor, row: Tensor, indptr: Tensor, node: Tensor, path: Tensor, probability: Tensor, num_levels: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Which pair, path id and probability, for the entries of all pairs."""
    given = [as_numpy(column) for column in (other, row, indptr, node, path)]
    counts = np.zeros(len(other) + 1, np.int64)
    count_entries(*given, num_levels, counts)
    starts = np.cumsum(counts)
    found = torch.from_numpy(find_entries(*given, num_levels, starts, np.empty(starts[-1], np.int64)))
    pair = torch.repeat_interleave(torch.arange(len(other)), torch.from_numpy(counts[1:]))
    return pair, path[found].long(), probability[found]


@compiled()
def is_before(node, path, entry, wanted_path, wanted_node):
    here = np.int64(path[entry])
    return here < wanted_path or (here == wanted_path and np.int64(node[entry]) < wanted_node)


@compiled()
def seek(node, path, first, last, wanted_path, wanted_node):
    """The first entry from `first` on that is not before (path, node): in steps twice as long each time, then by halves."""
    step = np.int64(1)
    while first < last and is_before(node, path, first, wanted_path, wanted_node):
        ahead = min(first + step, last)
        if ahead == last or not is_before(node, path, ahead, wanted_path, wanted_node):
            low, high = first + 1, ahead
            while low < high:
                middle = (low + high) // 2
                if is_before(node, path, middle, wanted_path, wanted_node):
                    low = middle + 1
                else:
                    high = middle
            return low
        first, step = ahead, 2 * step
    return first


@compiled()
def scan(node, first, last, wanted):
    """The first entry of a node, whatever its path, or `last`: compared side by side, and one by one only if it is there."""
    hits, sought = np.int32(0), np.int32(wanted)
    for n in range(last - first):
        hits += np.int32(node[np.uint64(first) + np.uint64(n)] == sought)
    if hits == 0:
        return last
    while node[first] != wanted:
        first += 1
    return first


@compiled()
def next_entry(node, path, first, last, wanted):
    """The first entry of a node from `first` on, or `last`: by galloping where a path has a block or more, else by a scan."""
    while first < last:
        here, end = np.int64(path[first]), min(first + BLOCK, last)
        if end - first == BLOCK and path[end - 1] == here:
            first = seek(node, path, first, last, here, wanted)
            if first < last and path[first] == here:
                if node[first] == wanted:
                    return first
                first = seek(node, path, first, last, here + 1, -1)
        else:
            found = scan(node, first, end, wanted)
            if found < end:
                return found
            first = end
    return last


@compiled()
def scaled_logs(probability, log_degree, query, other, number):
    """(ln P + 6) / 4 from the row's end, and from the other."""
    own = np.log(number(max(probability, TINY)))
    back = own + number(log_degree[query]) - number(log_degree[other])
    return (own + number(6)) / number(4), (back + number(6)) / number(4)


@compiled()
def pair_scores(
    weights, unreached, link_type, query, other, row, log_degree, path_place, indptr, node, path, probability,
    num_levels, backward, first, last, out, reached,
):  # fmt: skip
    """Scores of some pairs."""
    own, rest = (2, 1) if backward else (1, 2)
    for b in range(first, last):
        entry, stop = row_bounds(indptr, num_levels, row[b], path, path_place.size)
        kind, total, found = link_type[b], out.dtype.type(0), False
        entry = next_entry(node, path, entry, stop, other[b])
        while entry < stop:
            place = path_place[path[entry]]
            if place >= 0:
                this, that = scaled_logs(probability[entry], log_degree, query[b], other[b], out.dtype.type)
                total += weights[kind, place, 0] + weights[kind, place, own] * this + weights[kind, place, rest] * that
                found = True
            entry = next_entry(node, path, entry + 1, stop, other[b])
        out[b], reached[b] = total if found else unreached[kind], found


@compiled()
def pair_gradients(
    link_type, query, other, row, log_degree, path_place, indptr, node, path, probability, num_levels, backward,
    grad_out, reached, order, cuts, shared, first, last, of_weights, of_unreached, parts, part_unreached,
):  # fmt: skip
    """Gradients of weights and unreached from some pieces of pairs; a type that an earlier piece has too is kept apart."""
    own, rest = (2, 1) if backward else (1, 2)
    for piece in range(first, last):
        for at in range(cuts[piece], cuts[piece + 1]):
            b = order[at]
            apart = link_type[b] == shared[piece]
            sums = parts[piece] if apart else of_weights[link_type[b]]
            if not reached[b]:
                if apart:
                    part_unreached[piece] += grad_out[b]
                else:
                    of_unreached[link_type[b]] += grad_out[b]
                continue
            entry, stop = row_bounds(indptr, num_levels, row[b], path, path_place.size)
            entry = next_entry(node, path, entry, stop, other[b])
            while entry < stop:
                place = path_place[path[entry]]
                if place >= 0:
                    this, that = scaled_logs(probability[entry], log_degree, query[b], other[b], of_weights.dtype.type)
                    sums[place, 0] += grad_out[b]
                    sums[place, own] += grad_out[b] * this
                    sums[place, rest] += grad_out[b] * that
                entry = next_entry(node, path, entry + 1, stop, other[b])


@compiled()
def count_entries(other, row, indptr, node, path, num_levels, counts):
    """How many entries each pair has, from place 1 on."""
    for b in range(other.size):
        entry, stop = row_bounds(indptr, num_levels, row[b], path, np.int64(0x7FFFFFFFFFFFFFFF))
        entry = next_entry(node, path, entry, stop, other[b])
        while entry < stop:
            counts[b + 1] += 1
            entry = next_entry(node, path, entry + 1, stop, other[b])


@compiled()
def find_entries(other, row, indptr, node, path, num_levels, starts, found):
    """The entries of each pair, one pair after another."""
    for b in range(other.size):
        entry, stop = row_bounds(indptr, num_levels, row[b], path, np.int64(0x7FFFFFFFFFFFFFFF))
        at = starts[b]
        entry = next_entry(node, path, entry, stop, other[b])
        while entry < stop:
            found[at] = entry
            at += 1
            entry = next_entry(node, path, entry + 1, stop, other[b])
    return found
