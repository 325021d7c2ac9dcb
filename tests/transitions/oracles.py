"""Slow, obvious twins of the transition kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.graph import Graph
from gatas.transitions import Rows, Transitions
from gatas.transitions.paths import extend_path, last_relation, num_paths, parent_path

Entries = dict[tuple[int, int, int], float]
"""{(step, node, path): probability} of one target."""


def dense_transitions(
    graph: Graph, num_steps: int, *, kind: str = "walk", max_degree: float = np.inf, revisits: bool = False
) -> NDArray[np.float64]:
    """(C + 1, N, N, M): T⁽ᵗ⁾[i, j, m], transcribed from §3.3 with the corrections of its eq. 2, index by index.

    With `revisits` only what was reached in steps 0 … t - 2 is left out of step t.
    What would go on through nodes of more than `max_degree` edges is left out, and counts in Ψ as if it had led to new nodes.
    """
    N, n, M = graph.num_nodes, graph.num_relations, num_paths(graph.num_relations, num_steps)
    A = np.zeros((N, N, M))  # eq. before (2): relation k + 1 is edge type k; the self-loop and self-edges are not walked
    weight = np.ones(graph.num_edges) if graph.weight is None else graph.weight
    for i, j, k, w in zip(graph.source, graph.neighbour, graph.edge_type, weight, strict=True):
        if i != j:
            A[i, j, k + 1] = w
    T = np.zeros((num_steps + 1, N, N, M))
    T[0, np.arange(N), np.arange(N), 0] = 1.0
    T[1] = psi(A)
    step = A if kind == "count" else T[1]
    degree = np.diff(graph.indptr)
    through = (degree <= max_degree)[None, :, None]
    sent = degree[None, :, None] if kind == "count" else 1.0
    for t in range(2, num_steps + 1):
        walked, stopped = T[t - 1] * through, (T[t - 1] * ~through * sent).sum(axis=(1, 2), keepdims=True)
        reached = T[: t - 1 if revisits else t].sum(axis=(0, 3)) > 0
        for m in range(M):
            parent, last = parent_path(m, n), last_relation(m, n)
            if parent >= 0 and last > 0:
                T[t, :, :, m] = np.where(reached, 0.0, walked[:, :, parent] @ step[:, :, last])
        T[t] = psi(T[t], stopped)
    return T


def psi(tensor: NDArray[np.float64], stopped: Any = 0.0) -> NDArray[np.float64]:
    """Ψ: every target's entries, and what was stopped of it, add up to 1, or stay 0."""
    total = tensor.sum(axis=(1, 2), keepdims=True) + stopped
    result: NDArray[np.float64] = np.divide(tensor, total, out=np.zeros_like(tensor), where=total > 0)
    return result


def dense_entries(tensor: NDArray[np.float64], target: int) -> Entries:
    """The non-zero entries of a target."""
    places = zip(*np.nonzero(tensor[:, target]), strict=True)
    return {(int(t), int(j), int(m)): float(tensor[t, target, j, m]) for t, j, m in places}


def scipy_transitions(graph: Graph, num_steps: int) -> list[dict[int, Any]]:
    """For each step a sparse matrix per path: typed products, visited nodes masked, rows normalised."""
    N, n = graph.num_nodes, graph.num_relations
    source, weight = graph.source, np.ones(graph.num_edges) if graph.weight is None else graph.weight.astype(np.float64)
    proper = source != graph.neighbour
    degree = np.bincount(source[proper], weight[proper], minlength=N)
    share = np.where(proper, weight / np.maximum(degree, 1e-300)[source], 0.0)
    step = {}
    for kind in range(graph.num_edge_types):
        chosen = proper & (graph.edge_type == kind)
        step[kind + 1] = sparse.csr_array((share[chosen], (source[chosen], graph.neighbour[chosen])), shape=(N, N))
    levels: list[dict[int, Any]] = [{0: sparse.eye_array(N, format="csr")}, step]
    reached = sum(level for matrices in levels for level in matrices.values())
    for _ in range(2, num_steps + 1):
        products = {extend_path(path, kind, n): matrix @ step[kind] for path, matrix in levels[-1].items() for kind in step}
        masked = {path: _without(product, reached) for path, product in products.items()}
        total = sum(np.asarray(matrix.sum(axis=1)).ravel() for matrix in masked.values())
        scale = sparse.diags_array(np.divide(1.0, total, out=np.zeros(N), where=np.asarray(total) > 0))
        levels.append({path: sparse.csr_array(scale @ matrix) for path, matrix in masked.items() if matrix.nnz})
        reached = reached + sum(levels[-1].values(), sparse.csr_array((N, N)))
    return levels


def _without(matrix: Any, reached: Any) -> Any:
    result = sparse.csr_array(matrix - matrix.multiply(reached > 0))
    result.eliminate_zeros()
    return result


def entries(transitions: Any, target: int) -> Entries:
    """A row of a table as a dictionary."""
    row = transitions.row(target)
    columns = (row.step.tolist(), row.node.tolist(), row.path.tolist(), row.probability.tolist())
    found = {(step, node, path): probability for step, node, path, probability in zip(*columns, strict=True)}
    assert len(found) == len(row.node), "an entry occurs twice"
    return found


def one_table(transitions: Transitions) -> Rows:
    """The only shard of a table in memory."""
    (rows,) = transitions.shards
    return rows


def same_bytes(left: Rows, right: Rows) -> bool:
    """Whether two tables are equal to the last bit."""
    names = ("indptr", "node", "path", "probability", "dropped_mass")
    return all(getattr(left, name).tobytes() == getattr(right, name).tobytes() for name in names)


def walked(
    graph: Graph, target: int, num_steps: int, *, kind: str = "walk", revisits: bool = False
) -> tuple[Entries, list[float]]:
    """One target's entries, walk by walk in dictionaries, and the total of each step before Ψ."""
    weight = np.ones(graph.num_edges) if graph.weight is None else graph.weight.astype(np.float64)
    edges: dict[int, list[tuple[int, int, float]]] = {node: [] for node in range(graph.num_nodes)}
    for i, j, k, w in zip(graph.source.tolist(), graph.neighbour.tolist(), graph.edge_type.tolist(), weight, strict=True):
        if i != j:
            edges[i].append((j, k + 1, float(w)))
    levels, totals = [{(target, -1): 1.0}], [1.0]
    for step in range(1, num_steps + 1):
        reached = {node for level in levels[: max(1, step - 1) if revisits else step] for node, _ in level}
        level: dict[tuple[int, int], float] = {}
        for (node, path), mass in levels[-1].items():
            degree = 1.0 if kind == "count" else sum(w for _, _, w in edges[node])
            for neighbour, relation, w in edges[node]:
                if neighbour not in reached:
                    longer = neighbour, extend_path(path, relation, graph.num_relations)
                    level[longer] = level.get(longer, 0.0) + mass * w / degree
        totals.append(sum(level.values()))
        levels.append({state: mass / totals[-1] for state, mass in level.items()})
    found = {(t, node, path): mass for t, level in enumerate(levels[1:], 1) for (node, path), mass in level.items()}
    return {(0, target, 0): 1.0} | found, totals
