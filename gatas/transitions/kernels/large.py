"""Pushing mass in graphs of many nodes: what is held, and looked through, grows with what a level meets, not with the graph.

Masses of the 64 nodes that share a word of `met` lie on a page, given out when the first of them is met. Pages are few and
near each other, where a place for every node would be met all over memory. `met_parts` says which of `met_words` are not
empty, as these say it of `met`.
"""

import numpy as np

from gatas.ops.bits import LOW, ONE, SHIFT, WORD, add, count_bits, lowest_bit
from gatas.ops.compiled import compiled


@compiled()
def enough_pages(workspace, pages, num_edges):
    """Pages for all nodes that so many edges lead to. They hold anything: memory that is not met is never touched."""
    needed = WORD * min(num_edges, workspace.met.size) if workspace.place.size > 0 else 0
    return pages if needed <= pages.size else np.empty(min(2 * needed, WORD * workspace.met.size), np.float64)


@compiled()
def push_mass_by_page(adjacency, workspace, pages, level, run_state, run, next_run, kind):
    """Send the mass of the linked states along their edges of one type; returns how many nodes were met at most."""
    met, met_words, met_parts, place = workspace.met, workspace.met_words, workspace.met_parts, workspace.place
    weighted = adjacency.weight.size > 0
    edges, used = np.int64(0), np.uint32(0)
    at = workspace.first_run[kind]
    while at >= 0:
        state = run_state[at]
        share = level.mass[state] * adjacency.scale[level.node[state]]
        start, stop = adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]
        for edge in range(start, stop):
            node = np.uint64(adjacency.neighbour[edge])
            word, bit = node >> SHIFT, ONE << (node & LOW)
            sent = share * adjacency.weight[edge] if weighted else share
            if met[word] == 0:
                place[word] = used
                used += np.uint32(1)
                add(met_words, met_parts, word)
            at_page = (np.uint64(place[word]) << SHIFT) + (node & LOW)
            if met[word] & bit != 0:
                pages[at_page] += sent
            else:
                met[word] |= bit
                pages[at_page] = sent
        edges += stop - start
        at = next_run[at]
    return min(edges, WORD * met.size)


@compiled()
def collect_by_page(workspace, pages, out_node, out_mass, out):
    """Read out the nodes met and their mass, ascending; those seen in earlier steps are dropped. Returns how many there are."""
    met, met_words, met_parts, seen = workspace.met, workspace.met_words, workspace.met_parts, workspace.seen
    nodes, masses = out_node[out:], out_mass[out:]
    count = np.uint64(0)
    for whole in range(met_parts.size):
        while met_parts[whole] != 0:
            part = (np.uint64(whole) << SHIFT) + lowest_bit(met_parts[whole])
            met_parts[whole] &= met_parts[whole] - ONE
            while met_words[part] != 0:
                word = (part << SHIFT) + lowest_bit(met_words[part])
                met_words[part] &= met_words[part] - ONE
                page = np.uint64(workspace.place[word]) << SHIFT
                left = met[word] & ~seen[word]
                met[word] = 0
                while left != 0:
                    low = lowest_bit(left)
                    nodes[count], masses[count] = (word << SHIFT) + low, pages[page + low]
                    count += ONE
                    left &= left - ONE
    return np.int64(count)


@compiled()
def count_met(adjacency, workspace, run, next_run, kind):
    """How many nodes the linked runs of one type lead to, those seen in earlier steps aside."""
    met, met_words, met_parts = workspace.met, workspace.met_words, workspace.met_parts
    at = workspace.first_run[kind]
    while at >= 0:
        for edge in range(adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]):
            node = np.uint64(adjacency.neighbour[edge])
            word = node >> SHIFT
            if met[word] == 0:
                add(met_words, met_parts, word)
            met[word] |= ONE << (node & LOW)
        at = next_run[at]
    count = np.int64(0)
    for whole in range(met_parts.size):
        while met_parts[whole] != 0:
            part = (np.uint64(whole) << SHIFT) + lowest_bit(met_parts[whole])
            met_parts[whole] &= met_parts[whole] - ONE
            while met_words[part] != 0:
                word = (part << SHIFT) + lowest_bit(met_words[part])
                met_words[part] &= met_words[part] - ONE
                count += count_bits(met[word] & ~workspace.seen[word])
                met[word] = 0
    return count
