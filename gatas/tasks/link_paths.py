"""The typed paths that may speak for links: which there are, what they are made of, and their reverses."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from gatas.errors import TransitionError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.inputs import Ints
from gatas.nn.link_head import LinkHead, PathPlaces
from gatas.nn.path_weights import PathWeights
from gatas.ops.evidence.contract import SELF_LOOP_PATH
from gatas.transitions import Transitions, TransitionSource
from gatas.transitions.build import inverse_degree
from gatas.transitions.paths import num_paths, path_of, relation_table

MOST_PATHS = 1 << 26
"""Path ids that a table of places is made for."""


def walks_both_ways(graph: Graph) -> bool:
    """Whether every edge can be walked back: only then is a path from one node to another a path back as well."""
    return NO_INVERSE not in tuple(graph.inverse_of)


def path_weights(
    graph: Graph, transitions: TransitionSource, edge_types: Ints, rank: int, paths: Ints | None = None
) -> tuple[PathWeights, PathPlaces]:
    """Make weights for the paths that a table has, or for all paths where rows are made on demand.

    Args:
        graph: The graph that paths go through.
        transitions: Its rows.
        edge_types: The edge type of each type of link, or -1.
        rank: Factors of the weights, where these are not a table.
        paths: Ids of the paths, ascending, where these are known from an earlier training.
    """
    num_relations, num_steps = graph.num_relations, transitions.setting.num_steps
    count = num_paths(num_relations, num_steps)
    if count > MOST_PATHS:
        raise TransitionError(
            f"{num_relations} relations over {num_steps} steps make {count:,} paths; weights are for {MOST_PATHS:,} at "
            "most. Use fewer steps, or leave 'paths' out of link_score."
        )
    paths = walked_paths(transitions, graph) if paths is None else paths
    relations = relation_table(paths, num_relations, num_steps)  # (P, C)
    place = np.full(count, -1, np.int32)
    place[paths] = np.arange(len(paths), dtype=np.int32)
    reverse = np.full(count, -1, np.int32)
    turned = reversed_paths(relations, graph)
    reverse[turned] = place[paths]
    own = np.array([place[path_of((kind + 1,), num_relations)] if kind >= 0 else -1 for kind in edge_types], np.int64)
    tensors = (torch.from_numpy(array) for array in (relations, own, place, reverse))
    of_path, own_path, forward, backward = tensors
    return PathWeights(of_path, len(edge_types), num_relations, own_path, rank), PathPlaces(forward, backward)


def with_met_paths(head: LinkHead, met: Ints, graph: Graph, edge_types: Ints) -> tuple[PathWeights, PathPlaces] | None:
    """Return weights of further paths, that training never saw, by the factors that it learned; None where there are none.

    Where weights are a table, paths that training never saw have none. With a path goes its reverse.

    Args:
        head: A head that scores by paths.
        met: Ids of paths, known or not.
        graph: A graph with the relations that paths are made of.
        edge_types: The edge type of each type of link, or -1.
    """
    forward, backward = head.path_places
    new = met[(met > SELF_LOOP_PATH) & (forward.cpu().numpy()[met] < 0)]
    if head.paths.is_table or not len(new):
        return None
    num_relations, num_steps = graph.num_relations, head.paths.relations.shape[1]
    new = np.union1d(new, reversed_paths(relation_table(new, num_relations, num_steps), graph))
    new = new[forward.cpu().numpy()[new] < 0]
    relations = relation_table(new, num_relations, num_steps)
    place = torch.arange(head.paths.num_paths, head.paths.num_paths + len(new), dtype=torch.int32, device=forward.device)
    forward, backward = forward.clone(), backward.clone()
    forward[torch.from_numpy(new)] = place
    backward[torch.from_numpy(reversed_paths(relations, graph))] = place
    own = torch.tensor([path_of((max(kind, 0) + 1,), num_relations) for kind in edge_types.tolist()])
    own_path = torch.where(torch.from_numpy(edge_types) >= 0, forward.cpu()[own].long(), -1)
    return head.paths.extended(torch.from_numpy(relations), own_path), PathPlaces(forward, backward)


def walked_paths(transitions: TransitionSource, graph: Graph) -> Ints:
    """Return the ids of paths that occur in a table, or of all where rows are made on demand, without the self-loop."""
    num_relations, num_steps = graph.num_relations, transitions.setting.num_steps
    count = num_paths(num_relations, num_steps)
    if isinstance(transitions, Transitions):
        occurs = np.zeros(count, np.bool_)
        for shard in transitions.shards:
            occurs[shard.path] = True
        occurs[0] = False
        return np.flatnonzero(occurs)
    every = np.arange(1, count)
    walked: Ints = every[(relation_table(every, num_relations, num_steps) != 0).all(1)]
    return walked


def count_paths(graph: Graph, num_steps: int) -> int:
    """Return how many typed paths of up to three steps walks can take at most, without building their rows."""
    kind, source, target = (np.asarray(column, np.int64) for column in (graph.edge_type, graph.source, graph.neighbour))
    ones, shape = np.ones(len(kind), np.bool_), (graph.num_edge_types, graph.num_nodes)
    leaving = sparse.csr_array((ones, (kind, source)), shape)  # which types of edges leave each node
    arriving = sparse.csr_array((ones, (kind, target)), shape)
    count = len(np.unique(kind))
    if num_steps > 1:
        count += int((arriving @ leaving.T).nnz)
    if num_steps > 2:
        before, after = arriving.sum(0)[source], leaving.sum(0)[target]  # types that lead to an edge, and on from it
        through = np.bincount(kind, before.astype(np.float64) * after, minlength=graph.num_edge_types)
        first, last = (leaving @ arriving.T).sum(1), (arriving @ leaving.T).sum(1)  # of those that lead to its type, and on
        count += int(np.minimum(through, first.astype(np.float64) * last).sum())
    return count


def reversed_paths(relations: NDArray[np.int64], graph: Graph) -> Ints:
    """Return the ids of paths walked back: inverse relations in the opposite order."""
    inverse = np.concatenate([[0], np.asarray(graph.inverse_of, np.int64) + 1])
    found = np.full(len(relations), -1, np.int64)
    for step in reversed(range(relations.shape[1])):
        there = relations[:, step] >= 0
        longer = (found + 1) * graph.num_relations + inverse[relations[:, step].clip(min=0)]
        found = np.where(there, longer, found)
    return found


def log_degrees(graph: Graph) -> torch.Tensor:
    """Return (N,) ln of the total weight of each node's edges; 0 for a node without any."""
    inverse = inverse_degree(graph, 0, graph.num_nodes)
    return torch.from_numpy(-np.log(np.where(inverse > 0, inverse, 1.0))).float()
