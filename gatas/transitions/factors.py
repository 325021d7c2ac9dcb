"""`structure_factors`: what the structure of a graph alone says of each node, as a row of numbers (NetMF, Qiu et al. 2018).

Letters: A the symmetric adjacency matrix, D its degrees, P = D⁻¹A the transition probabilities, T steps, vol(G) = Σ A.
Nodes are alike if walks from them are: rows are the leading factors of M = log max(1, vol(G)/T · Σ_{c=1..T} Pᶜ D⁻¹).
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gatas.graph import Graph

MOST_ENTRIES, MOST_WALKS = 5e7, 1e9
"""Entries of M, some 400 MB in each of three matrices, and products that make them, some 10 s; else steps are fewer."""
POWER_ITERATIONS = 4
"""Of the randomised SVD: more change little."""
NEGLIGIBLE = 1e-5
"""Factors of a smaller share of the first are rounding errors."""


def structure_factors(graph: Graph, size: int, num_steps: int = 3) -> NDArray[np.float32]:
    """Return (N, size) leading factors of log transition probabilities, each row of length 1.

    Edges count in both directions and whatever their type, by their weights if they have any. Nodes without edges have zeros,
    and so do factors beyond those that the graph has. Where M would have too many entries, walks have fewer steps. A graph has
    one answer: nothing is drawn but from a fixed seed, and the number of threads does not matter.
    """
    factors = np.zeros((graph.num_nodes, size), np.float32)
    adjacency = _adjacency(graph)
    matrix = _log_transitions(adjacency, affordable_steps(adjacency, num_steps))
    if size and matrix.nnz:
        found = _leading_factors(matrix, min(size, graph.num_nodes))
        length = np.linalg.norm(found, axis=1, keepdims=True)
        factors[:, : found.shape[1]] = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
    return factors


def affordable_steps(adjacency: sparse.csr_array, num_steps: int) -> int:
    """Return how many steps walks may have, 1 at least, with M and the products that make it within bounds."""
    entries, products = 0.0, 0.0
    walks: NDArray[np.float64] = np.ones(adjacency.shape[0])
    ones = sparse.csr_array((np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), adjacency.shape)
    for step in range(1, num_steps + 1):
        walks = np.asarray(ones @ walks)
        entries += float(np.minimum(walks, len(walks)).sum())
        products += float(walks.sum())
        if step > 1 and (entries > MOST_ENTRIES or products > MOST_WALKS):
            return step - 1
    return num_steps


def _adjacency(graph: Graph) -> sparse.csr_array:
    """A: the larger of both directions; 1 for every edge, or the sum of the weights of all types."""
    weight = np.ones(graph.num_edges) if graph.weight is None else np.asarray(graph.weight, np.float64)
    shape = (graph.num_nodes, graph.num_nodes)
    directed = sparse.csr_array((weight, np.array(graph.neighbour), np.array(graph.indptr)), shape)
    directed.sum_duplicates()  # edges of several types
    if graph.weight is None:
        directed.data[:] = 1.0
    return sparse.csr_array(directed.maximum(directed.T))


def _log_transitions(adjacency: sparse.csr_array, num_steps: int) -> sparse.csr_array:
    """M, where it is larger than 0."""
    degree = adjacency.sum(axis=1)
    inverse = sparse.diags_array(np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0))
    step = sparse.csr_array(inverse @ adjacency).astype(np.float32)  # P
    walks = sparse.csr_array(step @ inverse.astype(np.float32))  # Pᶜ D⁻¹, symmetric
    total = walks.copy()
    for _ in range(num_steps - 1):
        walks = step @ walks
        total = total + walks
    total.data *= np.float32(degree.sum() / num_steps)
    total.data = np.log(np.maximum(total.data, 1.0, out=total.data), out=total.data)
    total.eliminate_zeros()
    return total


def _leading_factors(matrix: sparse.csr_array, size: int) -> NDArray[np.float32]:
    """(N, size) U √Σ; zeros for rows without entries, which rounding errors would else fill."""
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums of several threads differ by rounding
        left, values, _ = randomized_svd(matrix, size, n_iter=POWER_ITERATIONS, random_state=0)
    values = np.where(values > NEGLIGIBLE * values[0], values, 0.0)
    factors: NDArray[np.float32] = (left * np.sqrt(values)).astype(np.float32)
    factors[np.diff(matrix.indptr) == 0] = 0.0
    return factors
