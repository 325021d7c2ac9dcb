"""Typed transitions of one target at a time, level by level: rows counted and filled.

A level is what is reached in exactly t steps: nodes with their mass, in groups of one path each, ascending by (path, node).
The next level is made group by group and edge type by edge type. All mass that goes over one longer path is added up in an
array with a place for every node, and the nodes that were met are kept in a bit set. So equal (node, path) states merge as
they are met, without hashing, sorting or branching on what was met, and a row comes out sorted because a bit set is read in
order.

    runs      the edges of a node that share a type, as one slice; `next_run` links those of a group by type
    seen      the nodes reached in earlier steps, as a bit set; masked when a group is read out (eq. 2). With revisits, those
              of the last step are not among them, and runs of self-edges, which `seen` masks otherwise, are passed over

Places are unsigned where it is hot: numba checks a signed index for being negative, which costs more than the work itself.
Counters that are passed on start as np.int64: from a plain 0 numba compiles a second version for the literal. Every function
writes only what its caller gave it, so rows can be filled by any number of threads in any order.
"""

from collections import namedtuple

import numpy as np

from gatas.ops.bits import LOW, ONE, SHIFT, TWICE, add, contains, count_bits, drain, lowest_bit, mark_all
from gatas.ops.compiled import compiled
from gatas.transitions.kernels.large import collect_by_page, count_met, enough_pages, push_mass_by_page
from gatas.transitions.kernels.likeliest import stored, write_likeliest

Adjacency = namedtuple("Adjacency", "neighbour weight run_indptr run_type run_start scale num_relations counts revisits")
"""Edges in runs. `scale` is 1 / (weight of a node's edges, self-edges aside) for walks, 1 for counts; `weight` may be empty.

With `revisits`, a self-edge is a run of its own, of type -1.
"""

Workspace = namedtuple("Workspace", "mass met met_words met_parts place seen types type_bits type_words first_run")
"""Scratch space for one thread: all zeros, and again all zeros when a kernel returns (`place`, `types`, `first_run` aside).

`mass` is for graphs of few nodes, `met_parts` and `place` are for those of many; in the other ones they are empty.
"""

Level = namedtuple("Level", "node mass path stop")
"""States of one step: node and mass of each; path and last state of each group."""

ANY_DEGREE = np.int64(2**63 - 1)

EDGES_PER_WORD = 16
"""From so many edges per word on, a bit set is scanned whole: cheaper than noting at every edge which words are in use."""


@compiled()
def count_rows(adjacency, workspace, targets, num_steps, max_degree, out_counts):
    """How many (node, path) states each target reaches at each step; out_counts is (targets, num_steps + 1)."""
    level, following = new_level(), new_level()
    run_state, run, next_run = new_runs()
    seen_nodes = np.empty(64, np.int32)
    mass = workspace.mass
    for row in range(targets.size):
        num_seen, num_groups, num_states = np.int64(0), np.int64(1), np.int64(1)
        before = num_states
        level.node[0], level.mass[0], level.path[0], level.stop[0] = targets[row], 1.0, -1, 1
        out_counts[row, 0] = 1
        for step in range(1, num_steps + 1):
            left_out, size = (following.node, before) if adjacency.revisits and step > 1 else (level.node, num_states)
            seen_nodes, num_seen = see(workspace.seen, left_out, size, seen_nodes, num_seen)
            most = max_degree if step > 1 else ANY_DEGREE  # the target's own edges are always walked
            num_runs, num_edges, _ = count_runs(adjacency, most, level, num_states)
            scan = num_edges > EDGES_PER_WORD * workspace.met.size
            run_state, run, next_run = at_least(run_state, num_runs), at_least(run, num_runs), at_least(next_run, num_runs)
            if step == num_steps:  # nothing is walked further, so the states need not be made
                out_counts[row, step] = count_level(
                    adjacency, workspace, most, level, num_groups, run_state, run, next_run, scan
                )
                break
            mass = enough_pages(workspace, mass, num_edges)
            following, num_groups = expand_level(
                adjacency, workspace, mass, most, level, num_groups, following, run_state, run, next_run, scan
            )
            level, following = following, level
            if num_groups == 0:
                break
            before, num_states = num_states, level.stop[num_groups - 1]
            out_counts[row, step] = num_states
        forget(workspace.seen, seen_nodes, num_seen)


@compiled()
def fill_rows(
    adjacency, workspace, targets, num_steps, max_degree, caps, out_counts, out_node, out_path, out_probability, out_dropped
):
    """Write the rows of `targets` one after another, and how many entries each has at each step; out_counts begins as zeros."""
    level, following = new_level(), new_level()
    run_state, run, next_run = new_runs()
    seen_nodes = np.empty(64, np.int32)
    rank = np.empty(0, np.float32)
    mass = workspace.mass
    out = np.int64(0)
    for row in range(targets.size):
        num_seen, num_groups, num_states = np.int64(0), np.int64(1), np.int64(1)
        before = num_states
        level.node[0], level.mass[0], level.path[0], level.stop[0] = targets[row], 1.0, -1, 1
        out_node[out], out_path[out], out_probability[out] = targets[row], 0, 1.0
        out_counts[row, 0] = 1
        out += 1
        for step in range(1, num_steps + 1):
            left_out, size = (following.node, before) if adjacency.revisits and step > 1 else (level.node, num_states)
            seen_nodes, num_seen = see(workspace.seen, left_out, size, seen_nodes, num_seen)
            most = max_degree if step > 1 else ANY_DEGREE
            num_runs, num_edges, stopped = count_runs(adjacency, most, level, num_states)
            scan = num_edges > EDGES_PER_WORD * workspace.met.size
            run_state, run, next_run = at_least(run_state, num_runs), at_least(run, num_runs), at_least(next_run, num_runs)
            mass = enough_pages(workspace, mass, num_edges)
            following, num_groups = expand_level(
                adjacency, workspace, mass, most, level, num_groups, following, run_state, run, next_run, scan
            )
            level, following = following, level
            if num_groups == 0:
                out_dropped[row, step] = 1.0 if stopped > 0.0 else 0.0
                break
            before, num_states = num_states, level.stop[num_groups - 1]
            out_dropped[row, step] = normalise(level.mass, num_states, stopped)
            out_counts[row, step] = min(num_states, caps[step])
            if out + out_counts[row, step] > out_node.size:  # kernels do not check where they write
                raise IndexError("a row has more entries than there is room for")
            if num_states > caps[step]:
                rank = at_least(rank, num_states)
                out_dropped[row, step] += write_likeliest(
                    level, num_groups, caps[step], rank, out, out_node, out_path, out_probability
                )
            else:
                write_level(level, num_groups, out, out_node, out_path, out_probability)
            out += out_counts[row, step]
        forget(workspace.seen, seen_nodes, num_seen)


@compiled()
def expand_level(adjacency, workspace, room, most, level, num_groups, following, run_state, run, next_run, scan):
    """The states one step further (eq. 2, not yet normalised), in lists that grow as needed, and their number of groups."""
    node, mass, path, stop = following
    large = workspace.place.size > 0
    size, groups, first = np.int64(0), np.int64(0), np.int64(0)
    for group in range(num_groups):
        link_runs(adjacency, workspace, most, level.node, first, level.stop[group], run_state, run, next_run)
        for kind in workspace.types[: drain(workspace.type_bits, workspace.type_words, workspace.types)]:
            if large:
                met = push_mass_by_page(adjacency, workspace, room, level, run_state, run, next_run, kind)
                node, mass = at_least(node, size + met), at_least(mass, size + met)
                found = collect_by_page(workspace, room, node, mass, size)
            else:
                met = push_mass(adjacency, workspace, room, level, run_state, run, next_run, kind, scan)
                node, mass = at_least(node, size + met), at_least(mass, size + met)
                found = collect(workspace, room, node, mass, size)
            if found > 0:
                size += found
                path, stop = at_least(path, groups + 1), at_least(stop, groups + 1)
                path[groups] = (level.path[group] + 1) * adjacency.num_relations + kind + 1
                stop[groups] = size
                groups += 1
        first = level.stop[group]
    return Level(node, mass, path, stop), groups


@compiled()
def count_level(adjacency, workspace, most, level, num_groups, run_state, run, next_run, scan):
    """How many states `expand_level` would make."""
    count, first = np.int64(0), np.int64(0)
    met, met_words = workspace.met, workspace.met_words
    for group in range(num_groups):
        link_runs(adjacency, workspace, most, level.node, first, level.stop[group], run_state, run, next_run)
        for kind in workspace.types[: drain(workspace.type_bits, workspace.type_words, workspace.types)]:
            if workspace.place.size > 0:
                count += count_met(adjacency, workspace, run, next_run, kind)
                continue
            at = workspace.first_run[kind]
            while at >= 0:
                for edge in range(adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]):
                    node = np.uint64(adjacency.neighbour[edge])
                    met[node >> SHIFT] |= ONE << (node & LOW)
                    if not scan:
                        met_words[node >> TWICE] |= ONE << (node >> SHIFT & LOW)
                at = next_run[at]
            if scan:
                mark_all(met_words)
            for part in range(met_words.size):
                while met_words[part] != 0:
                    word = (np.uint64(part) << SHIFT) + lowest_bit(met_words[part])
                    met_words[part] &= met_words[part] - ONE
                    count += count_bits(met[word] & ~workspace.seen[word])
                    met[word] = 0
        first = level.stop[group]
    return count


@compiled()
def link_runs(adjacency, workspace, most, node, first, stop, run_state, run, next_run):
    """Link the runs of a group's states by edge type, and collect these types; nodes with too many edges have none."""
    at = np.int64(0)
    for state in range(stop - 1, first - 1, -1):  # backwards, so that each list is in the order of the states
        if degree_of(adjacency, node[state]) > most:
            continue
        for candidate in range(adjacency.run_indptr[node[state]], adjacency.run_indptr[node[state] + 1]):
            kind = adjacency.run_type[candidate]
            if kind < 0:  # a self-edge
                continue
            new = not contains(workspace.type_bits, kind)
            run_state[at], run[at], next_run[at] = state, candidate, -1 if new else workspace.first_run[kind]
            workspace.first_run[kind] = at
            add(workspace.type_bits, workspace.type_words, kind)
            at += 1


@compiled()
def push_mass(adjacency, workspace, mass, level, run_state, run, next_run, kind, scan):
    """Send the mass of the linked states along their edges of one type; returns how many nodes were met at most."""
    met, met_words = workspace.met, workspace.met_words
    weighted = adjacency.weight.size > 0
    edges = np.int64(0)
    at = workspace.first_run[kind]
    while at >= 0:
        state = run_state[at]
        share = level.mass[state] * adjacency.scale[level.node[state]]
        start, stop = adjacency.run_start[run[at]], adjacency.run_start[run[at] + 1]
        for edge in range(start, stop):
            node = np.uint64(adjacency.neighbour[edge])
            mass[node] += share * adjacency.weight[edge] if weighted else share
            met[node >> SHIFT] |= ONE << (node & LOW)
            if not scan:
                met_words[node >> TWICE] |= ONE << (node >> SHIFT & LOW)
        edges += stop - start
        at = next_run[at]
    if scan:
        mark_all(met_words)
    return min(edges, mass.size)


@compiled()
def collect(workspace, mass, out_node, out_mass, out):
    """Read out the nodes met and their mass, ascending; those seen in earlier steps are dropped. Returns how many there are."""
    met, met_words, seen = workspace.met, workspace.met_words, workspace.seen
    nodes, masses = out_node[out:], out_mass[out:]
    count = np.uint64(0)
    for part in range(met_words.size):
        while met_words[part] != 0:
            word = (np.uint64(part) << SHIFT) + lowest_bit(met_words[part])
            met_words[part] &= met_words[part] - ONE
            dropped, left = met[word] & seen[word], met[word] & ~seen[word]
            met[word] = 0
            while dropped != 0:  # a self-edge ends here too: its node is in the level it starts from
                mass[(word << SHIFT) + lowest_bit(dropped)] = 0.0
                dropped &= dropped - ONE
            while left != 0:
                node = (word << SHIFT) + lowest_bit(left)
                nodes[count], masses[count] = node, mass[node]
                mass[node] = 0.0
                count += ONE
                left &= left - ONE
    return np.int64(count)


@compiled()
def see(seen, node, size, seen_nodes, num_seen):
    """Mark a level's nodes as seen, and list them for `forget`."""
    seen_nodes = at_least(seen_nodes, num_seen + size)
    for k in range(size):
        place = np.uint64(node[k])
        seen[place >> SHIFT] |= ONE << (place & LOW)
        seen_nodes[num_seen + k] = node[k]
    return seen_nodes, num_seen + size


@compiled()
def forget(seen, seen_nodes, num_seen):
    for k in range(num_seen):
        seen[np.uint64(seen_nodes[k]) >> SHIFT] = 0


@compiled()
def normalise(mass, size, stopped):
    """Ψ of §3.3 for one target and step; returns the share of mass that was stopped, as if all of it had led to new nodes.

    A mass so small that it is lost (below 1e-300) stays above zero.
    """
    total = stopped
    for k in range(size):
        mass[k] = max(mass[k], 1e-300)
    for k in range(size):
        total += mass[k]
    scale = 1.0 / total
    for k in range(size):
        mass[k] *= scale
    return stopped * scale


@compiled()
def write_level(level, num_groups, out, out_node, out_path, out_probability):
    size = level.stop[num_groups - 1]
    nodes, paths, probabilities = out_node[out:], out_path[out:], out_probability[out:]
    for k in range(size):
        nodes[k] = level.node[k]
    for k in range(size):
        probabilities[k] = stored(level.mass[k])
    first = 0
    for group in range(num_groups):
        path = level.path[group]
        of_group = paths[first:]
        for k in range(level.stop[group] - first):
            of_group[k] = path
        first = level.stop[group]


@compiled()
def count_runs(adjacency, most, level, size):
    """Runs and edges of a level's states, and the mass of those that are not walked on from."""
    runs = edges = np.int64(0)
    stopped = 0.0
    for k in range(size):
        degree = degree_of(adjacency, level.node[k])
        if degree > most:
            stopped += level.mass[k] * degree if adjacency.counts else level.mass[k]
            continue
        runs += adjacency.run_indptr[level.node[k] + 1] - adjacency.run_indptr[level.node[k]]
        edges += degree
    return runs, edges, stopped


@compiled()
def degree_of(adjacency, node):
    return adjacency.run_start[adjacency.run_indptr[node + 1]] - adjacency.run_start[adjacency.run_indptr[node]]


@compiled()
def at_least(array, size):
    """The array, or a longer one with the same beginning."""
    if size <= array.size:
        return array
    longer = np.empty(max(size, 2 * array.size), array.dtype)
    for k in range(array.size):  # a slice would do, but takes numba two seconds longer to compile
        longer[k] = array[k]
    return longer


@compiled()
def new_level():
    return Level(np.empty(64, np.int32), np.empty(64, np.float64), np.empty(64, np.int64), np.empty(64, np.int64))


@compiled()
def new_runs():
    return np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
