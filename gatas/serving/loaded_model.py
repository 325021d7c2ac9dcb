"""`LoadedModel`: a predictor that is ready to answer requests, with an index of its ids and of its nearest nodes."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets import SPLITS, Pairs
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.inference import NearestNodes, Predictor, load
from gatas.inference.embedding_map import EmbeddingMap, MapSample, draw_nodes, map_sample
from gatas.inference.ids import ids_of
from gatas.inference.node_data import NodeDataReader
from gatas.serving.background_map import BackgroundMap
from gatas.serving.errors import unprocessable
from gatas.serving.run_results import RunResults, read_results

NeighbourMethod = Literal["exact", "hnsw", "off"]
FIRST = 10
"""Nodes that the explorer's home page begins with."""
MAPPED = 2000
"""Nodes that the map shows: t-SNE takes some ten seconds for them on one core."""


class LoadedModel:
    """A predictor with all that requests need, made once: ids in a hash table, and nearest nodes in an index.

    Args:
        predictor: Answers the requests.
        neighbours: How nearest nodes are found. Any but `"off"` represents all nodes now. It is off where nodes have no
            representations.
        results: What the run measured, where the model comes from the folder of one.

    What links are ranked by is made now as well, so that no request waits for it.
    """

    def __init__(self, predictor: Predictor, neighbours: NeighbourMethod = "exact", results: RunResults | None = None) -> None:
        self.results, self.node_data = results, NodeDataReader(predictor.dataset)
        self.predictor, self.fingerprint, graph = predictor, predictor.fingerprint, predictor.dataset.graph
        self.neighbours, self.ids = neighbours if predictor.embedding_size else "off", IdIndex(graph)
        rows = self._representations()
        if not np.isfinite(rows).all():
            raise GatasError("the model's representations are not finite numbers. Serve another run, or train it again.")
        self.nearest = None if self.neighbours == "off" else NearestNodes(graph, rows, self.neighbours)
        self.map = BackgroundMap(self.fingerprint, self._map_maker(rows))
        predictor.prepare_links()

    def first_ids(self) -> list[int | str]:
        """Return ids of a few nodes to begin with: of those that are predicted, held-out ones first; of links, their ends."""
        found, splits = dict[int, None](), self.predictor.dataset.splits
        for name in reversed(SPLITS):
            part = splits.get(name, ())
            nodes = part.source if isinstance(part, Pairs) else part
            found |= dict.fromkeys(np.asarray(nodes[: 10 * FIRST]).tolist())  # a node may have many links
        found |= dict.fromkeys(range(min(FIRST, len(self.ids.ids))))
        return list(self.ids.ids.take(pa.array(list(found)[:FIRST], pa.int64())).to_pylist())

    def _map_maker(self, rows: NDArray[np.float32]) -> Callable[[], EmbeddingMap]:
        """Return what makes the map: of rows that are kept now, as another thread must not ask the model for them."""
        if not self.predictor.embedding_size:
            return _refusal("the nodes of this model have no representations, so that there is nothing to map.")
        if self.nearest is None:
            return _refusal("this server was started with --neighbours off: nodes were not represented. Start it without that.")
        count = len(rows)
        try:
            nodes = draw_nodes(np.arange(count), MAPPED)
        except GatasError as error:
            return _refusal(str(error))
        return partial(map_sample, self.predictor, MapSample(nodes, rows[nodes], count))

    def _representations(self) -> NDArray[np.float32]:
        """Represent all nodes, or where nearest ones are not asked for, one, to see whether it can be."""
        predictor = self.predictor
        if self.neighbours != "off":
            return predictor.all_nodes.represent_all() if predictor.predicts_links else predictor.embed_all()
        return predictor.embed_indices(np.arange(1 if predictor.embedding_size else 0))


def _refusal(reason: str) -> Callable[[], EmbeddingMap]:
    def refuse() -> EmbeddingMap:
        raise GatasError(reason)

    return refuse


class IdIndex:
    """Finds nodes by id, and ids by a part of them."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.ids = graph, ids_of(graph, np.arange(graph.num_nodes))
        self.texts = self.ids.cast(pa.string())
        graph.get_index("")  # makes the hash table

    def find(self, ids: Sequence[int | str]) -> Ints:
        """Return the indices of nodes given by id. An integer may be given as text, and text that is a number as an integer."""
        found = [self.graph.get_index(one) for one in ids]
        if -1 in found:
            missing = ids[found.index(-1)]
            raise unprocessable("unknown_id", f"no node has the id {missing!r}. Search for ids with /v1/nodes?query=TEXT.")
        return np.array(found, np.int64)

    def search(self, text: str, limit: int) -> tuple[list[Any], bool]:
        """Return ids that equal, begin with or contain a text, in this order and in any case; and whether there are more."""
        ranks = (
            pc.equal(self.texts, text),
            pc.starts_with(self.texts, text, ignore_case=True),
            pc.match_substring(self.texts, text, ignore_case=True),
        )
        matches = [np.flatnonzero(mask.to_numpy(zero_copy_only=False))[: limit + 1].tolist() for mask in ranks]
        distinct = list(dict.fromkeys(node for rank in matches for node in rank))
        return self.ids.take(pa.array(distinct[:limit], pa.int64())).to_pylist(), len(distinct) > limit


def load_model(run: Path, device: str = "auto", neighbours: NeighbourMethod = "exact") -> LoadedModel:
    """Load a run folder, and prepare the transitions of all its nodes. A symbolic link is followed at this moment."""
    folder = run.resolve()
    return LoadedModel(load(folder, device=device).prepare(), neighbours, read_results(folder))
