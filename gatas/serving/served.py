"""`Served`: a model that is ready to answer, with its nodes' ids and their nearest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.inference import NearestNodes, Predictor, load
from gatas.inference.ids import ids_of
from gatas.serving.refusal import unusable


class Served:
    """All that answers need is made here, once: ids are looked up by a hash, and nearest nodes in an index."""

    def __init__(self, predictor: Predictor, neighbours: Literal["exact", "hnsw", "off"] = "exact") -> None:
        self.predictor, self.fingerprint, graph = predictor, predictor.fingerprint, predictor.dataset.graph
        self.method, self.ids = neighbours, Ids(graph)
        rows = predictor.embed_indices(np.arange(1)) if neighbours == "off" else predictor.embed_all()
        if not np.isfinite(rows).all():
            raise GatasError("the model's representations are not finite numbers. Give a run whose training went well.")
        self.nearest = None if neighbours == "off" else NearestNodes(graph, rows, neighbours)


class Ids:
    """Nodes by their ids: looked up, or searched for."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.names = graph, ids_of(graph, np.arange(graph.num_nodes))
        self.texts = self.names.cast(pa.string())
        graph.get_index("")  # makes the hash

    def find(self, ids: Sequence[int | str]) -> Ints:
        """The nodes with these ids; integers may be written as text, and text that is a number as an integer."""
        found = [self.graph.get_index(name) for name in ids]
        if -1 in found:
            missing = ids[found.index(-1)]
            raise unusable("unknown_id", f"no node has the id {missing!r}. /v1/nodes?query=… searches for ids.")
        return np.array(found, np.int64)

    def search(self, text: str, limit: int) -> tuple[list[Any], bool]:
        """Ids that are the text, begin with it or contain it, in this order, in any case; and whether there are more."""
        ranks = (
            pc.equal(self.texts, text),
            pc.starts_with(self.texts, text, ignore_case=True),
            pc.match_substring(self.texts, text, ignore_case=True),
        )
        places = [np.flatnonzero(mask.to_numpy(zero_copy_only=False))[: limit + 1].tolist() for mask in ranks]
        distinct = list(dict.fromkeys(place for rank in places for place in rank))
        return self.names.take(pa.array(distinct[:limit], pa.int64())).to_pylist(), len(distinct) > limit


def load_served(run: Path, device: str = "auto", neighbours: Literal["exact", "hnsw", "off"] = "exact") -> Served:
    """Load the predictor of a run folder. A link is followed at this moment, so that where it points to may change later."""
    return Served(load(run.resolve(), device=device).prepare(), neighbours)
