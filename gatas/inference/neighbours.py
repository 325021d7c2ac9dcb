"""`NearestNodes`: which nodes lie closest to one another in the space of embeddings, by faiss."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gatas.errors import GatasError, MissingExtraError, StoreError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.inference.files import FINGERPRINT
from gatas.inference.ids import ids_of, indices_of
from gatas.inference.trained import TrainedModel

Method = Literal["exact", "hnsw"]
LINKS = 32
"""Links that each node has in HNSW's graph."""
EFFORT = 64
"""Candidates that HNSW keeps while it searches."""
CHECKED = 1000
"""Nodes whose nearest are found exactly too, to say how many HNSW finds."""


@dataclass(frozen=True, eq=False)
class NearestIds:
    """The nodes closest to one, closest first, with the cosine between them."""

    ids: Any  # a column
    similarities: NDArray[np.float32]

    def table(self) -> Any:
        """Return an Arrow table with the columns `id` and `similarity`."""
        return pa.table({"id": self.ids, "similarity": pa.array(self.similarities)})


class NearestNodes:
    """An index over embeddings of all nodes: exact, or HNSW, which is quicker with millions and misses some.

    >>> NearestNodes(predictor.graph, predictor.embed_all()).nearest(17, top=10).ids
    """

    def __init__(self, graph: Graph, embeddings: NDArray[np.float32], method: Method = "exact") -> None:
        if method not in ("exact", "hnsw"):
            raise GatasError(f"method is {method!r}; expected 'exact' or 'hnsw'.")
        if len(embeddings) != graph.num_nodes:
            raise GatasError(f"{len(embeddings)} embeddings were given for {graph.num_nodes} nodes. Give one for each.")
        self.faiss, self.graph, self.method = faiss_or_refuse(), graph, method
        length = np.linalg.norm(embeddings, axis=1, keepdims=True)
        self.directions = np.ascontiguousarray(embeddings / np.where(length > 0, length, 1), np.float32)
        self.index = self._built(method)

    def nearest(self, node_id: Any, top: int = 10) -> NearestIds:
        """Find the `top` nodes closest to one given by id; the node itself is left out."""
        (node,) = indices_of(self.graph, node_id)
        similarities, found = self._search(self.index, np.array([node]), top)
        there = found[0] >= 0  # HNSW may find fewer
        return NearestIds(ids_of(self.graph, found[0][there]), similarities[0][there])

    def nearest_to(self, embedding: NDArray[np.float32], top: int = 10) -> NearestIds:
        """Find the `top` nodes closest to a representation, such as that of a node which is not in the graph."""
        direction = embedding / (float(np.linalg.norm(embedding)) or 1.0)
        asked = np.ascontiguousarray(direction[None], np.float32)
        similarities, found = self.index.search(asked, min(top, self.graph.num_nodes))
        there = found[0] >= 0
        return NearestIds(ids_of(self.graph, found[0][there]), similarities[0][there])

    @property
    def num_checked(self) -> int:
        """Return over how many nodes recall is measured."""
        return min(CHECKED, self.graph.num_nodes)

    def recall(self, top: int = 10) -> float:
        """Return the share of the exact `top` that the index finds, over nodes evenly chosen; 1 for the exact one."""
        if self.method == "exact":
            return 1.0
        nodes = np.linspace(0, self.graph.num_nodes - 1, self.num_checked).astype(np.int64)
        wanted = self._search(self._built("exact"), nodes, top)[1]
        found = self._search(self.index, nodes, top)[1]
        return float(np.mean([np.isin(own, other).mean() for own, other in zip(wanted, found, strict=True)]))

    def _built(self, method: Method) -> Any:
        size = self.directions.shape[1]
        if method == "exact":
            index = self.faiss.IndexFlatIP(size)
        else:
            index = self.faiss.IndexHNSWFlat(size, LINKS, self.faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efSearch = EFFORT
        index.add(self.directions)
        return index

    def _search(self, index: Any, nodes: Ints, top: int) -> tuple[NDArray[np.float32], Ints]:
        """Return (n, top) similarities and nodes; one more is asked for, as a node is its own closest."""
        top = min(top, self.graph.num_nodes - 1)
        similarities, found = index.search(self.directions[nodes], top + 1)
        others = found != nodes[:, None]
        others[others.all(1), -1] = False  # among equals the node itself may not be there
        shape = len(nodes), top
        return similarities[others].reshape(shape), found[others].reshape(shape)


def read_embeddings(path: str | Path, trained: TrainedModel) -> NDArray[np.float32]:
    """Read the embeddings of all nodes from a Parquet file that `write_embeddings` wrote with this very model."""
    path = Path(path)
    try:
        table = pq.read_table(path, columns=["id", "embedding"])
        size = table.schema.field("embedding").type.list_size
        rows = table["embedding"].combine_chunks().flatten().to_numpy().reshape(-1, size)
    except (OSError, KeyError, AttributeError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{path} could not be read as embeddings ({str(error).splitlines()[0]}).") from None
    made_by = (table.schema.metadata or {}).get(FINGERPRINT.encode(), b"").decode()
    if made_by != (own := trained.fingerprint):
        what = f"by model {made_by[:12]}" if made_by else "by no model that it names"
        raise StoreError(f"{path} was written {what}, but this one is {own[:12]}. Write it again with `gatas embed`.")
    nodes = indices_of(trained.graph, table["id"])
    if len(nodes) != trained.graph.num_nodes or len(np.unique(nodes)) != len(nodes):
        raise StoreError(f"{path} has {len(nodes):,} of {trained.graph.num_nodes:,} nodes. Write all with `gatas embed`.")
    ordered = np.empty(rows.shape, np.float32)
    ordered[nodes] = rows
    return ordered


def faiss_or_refuse() -> Any:
    """Return the library, or say how to get it."""
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("nearest nodes are found with faiss, which is not installed", "serve") from None
    return faiss
