"""Typed transitions of one target at a time, level by level: every CPU numba function of this package.

A level is the list of states (node, path, mass) reached in exactly t steps, ascending by (path, node). The next one is made
by taking the states that share a path together, their edges one type at a time, and adding up mass in an array with a place
for every node. So equal (node, path) states merge as they are met, with no hashing and no sorting, and a row comes out
sorted because the nodes met are kept in a bit set that is read in order.

    mark[j]   who touched node j: the `seen` number of the target (reached in an earlier step), or the current (path) number
    mass[j]   what has arrived at j over the current path
    runs      the edges of a node that share a type, as one slice; `next_run` links the runs of the states of a path by type

Counters that are passed on start as np.int64: from a plain 0 numba compiles a second version for the literal.
Every function writes only what its caller gave it, so rows can be filled by any number of threads in any order.
"""

from collections import namedtuple

import numpy as np
from numba import njit

Adjacency = namedtuple("Adjacency", "neighbour weight run_indptr run_type run_start scale num_relations")
"""Edges in runs. `scale` is 1 / (weight of a node's edges, self-edges aside) for walks, 1 for counts; `weight` may be empty."""

Workspace = namedtuple("Workspace", "mark mass touched node_bits node_words types type_bits type_words first_run")
"""Scratch space for one thread: `mark` and the bit sets start at zero, the rest may hold anything."""

WORD = 64
SHIFT = 6
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
LOWEST_BIT = np.zeros(WORD, np.int64)
for _bit in range(WORD):
    LOWEST_BIT[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


@njit(cache=True, nogil=True)
def count_rows(adjacency, workspace, targets, num_steps, out_counts):
    """How many (node, path) states each target reaches at each step; out_counts is (targets, num_steps + 1)."""
    state_node, state_path, state_mass = new_states()
    next_node, next_path, next_mass = new_states()
    run_state, run, next_run = new_runs()
    number = np.int64(0)
    for row in range(targets.size):
        seen = -(row + 1)
        workspace.mark[targets[row]] = seen
        state_node[0], state_path[0], state_mass[0] = targets[row], -1, 1.0
        out_counts[row, 0] = 1
        size = np.int64(1)
        for step in range(1, num_steps + 1):
            num_runs = count_runs(adjacency, state_node, size)
            run_state, run, next_run = (
                at_least(run_state, num_runs),
                at_least(run, num_runs),
                at_least(next_run, num_runs),
            )
            if step == num_steps:  # nothing is walked further, so the states need not be made
                size, number = count_level(
                    adjacency, workspace, state_node, state_path, size, run_state, run, next_run, seen, number
                )
                out_counts[row, step] = size
                break
            next_node, next_path, next_mass, next_size, number = expand_level(
                adjacency, workspace, state_node, state_path, state_mass, size,
                next_node, next_path, next_mass, run_state, run, next_run, seen, number,
            )  # fmt: skip
            size = next_size
            out_counts[row, step] = size
            mark_seen(workspace.mark, next_node, size, seen)
            state_node, state_path, state_mass, next_node, next_path, next_mass = (
                next_node, next_path, next_mass, state_node, state_path, state_mass,
            )  # fmt: skip
            if size == 0:
                break


@njit(cache=True, nogil=True)
def fill_rows(
    adjacency, workspace, targets, num_steps, max_candidates, indptr, out_node, out_path, out_probability, out_dropped
):
    """Write the rows of `targets`; row r, step t is the slice indptr[r·(C+1)+t] : indptr[r·(C+1)+t+1] of the out arrays."""
    state_node, state_path, state_mass = new_states()
    next_node, next_path, next_mass = new_states()
    run_state, run, next_run = new_runs()
    rank = np.empty(0, np.float32)
    number = np.int64(0)
    for row in range(targets.size):
        seen = -(row + 1)
        workspace.mark[targets[row]] = seen
        state_node[0], state_path[0], state_mass[0] = targets[row], -1, 1.0
        out = indptr[row * (num_steps + 1)]
        out_node[out], out_path[out], out_probability[out] = targets[row], 0, 1.0
        size = np.int64(1)
        for step in range(1, num_steps + 1):
            num_runs = count_runs(adjacency, state_node, size)
            run_state, run, next_run = (
                at_least(run_state, num_runs),
                at_least(run, num_runs),
                at_least(next_run, num_runs),
            )
            next_node, next_path, next_mass, size, number = expand_level(
                adjacency, workspace, state_node, state_path, state_mass, size,
                next_node, next_path, next_mass, run_state, run, next_run, seen, number,
            )  # fmt: skip
            normalise(next_mass, size)
            out = indptr[row * (num_steps + 1) + step]
            if size > max_candidates:
                rank = at_least(rank, size)
                out_dropped[row, step] = write_likeliest(
                    next_node,
                    next_path,
                    next_mass,
                    size,
                    max_candidates,
                    rank,
                    out,
                    out_node,
                    out_path,
                    out_probability,
                )
            else:
                write_states(next_node, next_path, next_mass, size, out, out_node, out_path, out_probability)
            if step < num_steps:
                mark_seen(workspace.mark, next_node, size, seen)
            state_node, state_path, state_mass, next_node, next_path, next_mass = (
                next_node, next_path, next_mass, state_node, state_path, state_mass,
            )  # fmt: skip
            if size == 0:
                break


@njit(cache=True, nogil=True)
def expand_level(
    adjacency, workspace, state_node, state_path, state_mass, size,
    next_node, next_path, next_mass, run_state, run, next_run, seen, number,
):  # fmt: skip
    """The states one step further (eq. 2, not yet normalised); the lists they are written to grow as needed."""
    next_size = 0
    first = np.int64(0)
    while first < size:
        stop = link_runs(adjacency, workspace, state_node, state_path, first, size, run_state, run, next_run)
        for kind in workspace.types[: drain(workspace.type_bits, workspace.type_words, workspace.types)]:
            number += 1
            path = (state_path[first] + 1) * adjacency.num_relations + kind + 1
            found = push_mass(adjacency, workspace, state_node, state_mass, run_state, run, next_run, kind, seen, number)
            found = sort_touched(workspace, found)
            next_node = at_least(next_node, next_size + found)
            next_path, next_mass = at_least(next_path, next_node.size), at_least(next_mass, next_node.size)
            for k in range(found):
                node = workspace.touched[k]
                next_node[next_size + k], next_path[next_size + k] = node, path
                next_mass[next_size + k] = workspace.mass[node]
            next_size += found
        first = stop
    return next_node, next_path, next_mass, next_size, number


@njit(cache=True, nogil=True)
def count_level(adjacency, workspace, state_node, state_path, size, run_state, run, next_run, seen, number):
    """How many states `expand_level` would make."""
    count = 0
    first = np.int64(0)
    while first < size:
        stop = link_runs(adjacency, workspace, state_node, state_path, first, size, run_state, run, next_run)
        for kind in workspace.types[: drain(workspace.type_bits, workspace.type_words, workspace.types)]:
            number += 1
            at = workspace.first_run[kind]
            while at >= 0:
                for edge in range(adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]):
                    node = adjacency.neighbour[edge]
                    mark = workspace.mark[node]
                    if mark != number and mark != seen:
                        workspace.mark[node] = number
                        count += 1
                at = next_run[at]
        first = stop
    return count, number


@njit(cache=True, nogil=True)
def link_runs(adjacency, workspace, state_node, state_path, first, size, run_state, run, next_run):
    """Link the runs of all states that share the first one's path, by edge type; returns where the next path starts."""
    stop = first + 1
    while stop < size and state_path[stop] == state_path[first]:
        stop += 1
    at = 0
    for state in range(stop - 1, first - 1, -1):  # backwards, so that each list is in the order of the states
        node = state_node[state]
        for candidate in range(adjacency.run_indptr[node], adjacency.run_indptr[node + 1]):
            kind = adjacency.run_type[candidate]
            if add(workspace.type_bits, workspace.type_words, kind):
                workspace.first_run[kind] = -1
            run_state[at], run[at], next_run[at] = state, candidate, workspace.first_run[kind]
            workspace.first_run[kind] = at
            at += 1
    return stop


@njit(cache=True, nogil=True)
def push_mass(adjacency, workspace, state_node, state_mass, run_state, run, next_run, kind, seen, number):
    """Send the mass of the linked states along their edges of one type; returns how many nodes were touched."""
    mark, mass, touched = workspace.mark, workspace.mass, workspace.touched
    weighted = adjacency.weight.size > 0
    found = 0
    at = workspace.first_run[kind]
    while at >= 0:
        share = state_mass[run_state[at]] * adjacency.scale[state_node[run_state[at]]]
        for edge in range(adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]):
            node = adjacency.neighbour[edge]
            amount = share * adjacency.weight[edge] if weighted else share
            if mark[node] == number:
                mass[node] += amount
            elif mark[node] != seen:  # a node reached in an earlier step (or the state itself: a self-edge) is not entered
                mark[node], mass[node], touched[found] = number, amount, node
                found += 1
        at = next_run[at]
    return found


@njit(cache=True, nogil=True)
def sort_touched(workspace, found):
    """Put the touched nodes in ascending order."""
    for k in range(found):
        add(workspace.node_bits, workspace.node_words, workspace.touched[k])
    return drain(workspace.node_bits, workspace.node_words, workspace.touched)


@njit(cache=True, nogil=True)
def add(bits, words, member):
    """Add to a bit set, whose `words` say which of its words are not empty; whether it is new."""
    word = member >> SHIFT
    bit = np.uint64(1) << np.uint64(member & (WORD - 1))
    words[word >> SHIFT] |= np.uint64(1) << np.uint64(word & (WORD - 1))
    new = bits[word] & bit == 0
    bits[word] |= bit
    return new


@njit(cache=True, nogil=True)
def drain(bits, words, out):
    """Empty a bit set into `out`, ascending; returns how many there were."""
    count = 0
    for group in range(words.size):
        while words[group] != 0:
            word = (group << SHIFT) + lowest_bit(words[group])
            words[group] &= words[group] - np.uint64(1)
            left = bits[word]
            bits[word] = 0
            while left != 0:
                out[count] = (word << SHIFT) + lowest_bit(left)
                count += 1
                left &= left - np.uint64(1)
    return count


@njit(cache=True, nogil=True)
def lowest_bit(word):
    """The place of the lowest set bit, by a De Bruijn sequence."""
    return LOWEST_BIT[((word & (~word + np.uint64(1))) * DE_BRUIJN) >> np.uint64(58)]


@njit(cache=True, nogil=True)
def normalise(mass, size):
    """Ψ of §3.3 for one target and step; an empty level stays empty."""
    total = 0.0
    for k in range(size):
        total += mass[k]
    for k in range(size):
        mass[k] /= total


@njit(cache=True, nogil=True)
def write_states(node, path, mass, size, out, out_node, out_path, out_probability):
    for k in range(size):
        out_node[out + k], out_path[out + k], out_probability[out + k] = node[k], path[k], stored(mass[k])


@njit(cache=True, nogil=True)
def write_likeliest(node, path, mass, size, keep, rank, out, out_node, out_path, out_probability):
    """Write the `keep` likeliest states in their order, the first of equals; returns the mass of the others."""
    for k in range(size):
        rank[k] = stored(mass[k])
    threshold = kth_largest(rank, size, keep)
    ties = keep
    for k in range(size):
        if stored(mass[k]) > threshold:
            ties -= 1
    dropped = 0.0
    for k in range(size):
        probability = stored(mass[k])
        if probability == threshold and ties > 0:
            ties -= 1
        elif probability <= threshold:
            dropped += mass[k]
            continue
        out_node[out], out_path[out], out_probability[out] = node[k], path[k], probability
        out += 1
    return dropped


@njit(cache=True, nogil=True)
def kth_largest(values, size, k):
    """Quickselect; reorders `values`."""
    low, high = 0, size - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return values[k - 1]


@njit(cache=True, nogil=True)
def stored(mass):
    """Probabilities are kept in float32; one too small for it stays the smallest there is, so that ln P is finite."""
    return max(np.float32(mass), np.float32(1.1754944e-38))


@njit(cache=True, nogil=True)
def mark_seen(mark, node, size, seen):
    for k in range(size):
        mark[node[k]] = seen


@njit(cache=True, nogil=True)
def count_runs(adjacency, state_node, size):
    count = 0
    for k in range(size):
        count += adjacency.run_indptr[state_node[k] + 1] - adjacency.run_indptr[state_node[k]]
    return count


@njit(cache=True, nogil=True)
def at_least(array, size):
    """The array, or a longer one with the same beginning."""
    if size <= array.size:
        return array
    longer = np.empty(max(size, 2 * array.size), array.dtype)
    for k in range(array.size):  # a slice would do, but takes numba two seconds longer to compile
        longer[k] = array[k]
    return longer


@njit(cache=True, nogil=True)
def new_states():
    return np.empty(64, np.int32), np.empty(64, np.int64), np.empty(64, np.float64)


@njit(cache=True, nogil=True)
def new_runs():
    return np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
