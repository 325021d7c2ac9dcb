"""`embed`: representations of nodes, as an array or as a file; and the fingerprint of what made them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from gatas.files import RunningChecksum
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.graph.saved import graph_fingerprint
from gatas.inference.files import check_suffix, counted, write_matrix, write_tables
from gatas.inference.ids import names_of, nodes_of
from gatas.inference.view import View, all_nodes
from gatas.progress import ProgressCallback
from gatas.tasks import Model

SUFFIXES = (".parquet", ".npy")
FINGERPRINT = "gatas.model"
"""Under which a Parquet file's schema holds it too."""


def embed(asked: Model | View, ids: Any, *, batch_size: int | None = None) -> NDArray[np.float32]:
    """(n, K·F'') representations of nodes by their ids: the same for a node alone and among any others."""
    view = as_view(asked)
    return embed_nodes(view, nodes_of(view.graph, ids), batch_size)


def embed_all(asked: Model | View, *, progress: ProgressCallback = lambda share: None) -> NDArray[np.float32]:
    """The representations of all nodes, in memory."""
    view = as_view(asked)
    rows = (_embedded(view, batch) for batch in view.batches(all_nodes(view.graph)))
    return np.concatenate(list(counted(rows, view.graph.num_nodes, progress)))


def embed_nodes(view: View, nodes: Ints, batch_size: int | None = None) -> NDArray[np.float32]:
    """The same by their numbers."""
    found = [_embedded(view, batch) for batch in view.batches(nodes, batch_size)]
    return np.concatenate(found) if found else np.empty((0, view.model.encoder.output_size), np.float32)


def write_embeddings(
    asked: Model | View,
    path: str | Path,
    ids: Any = None,
    *,
    batch_size: int | None = None,
    progress: ProgressCallback = lambda share: None,
) -> int:
    """Write the representations of all nodes, or of some, as they are made; gives their number.

    A Parquet file has the columns `id`, `embedding` and `model`, the fingerprint. An .npy file has the rows alone, in the
    order of `ids` or of all nodes, which the run folder's ids.parquet lists.
    """
    path, view = Path(path), as_view(asked)
    check_suffix(path, SUFFIXES)
    nodes = all_nodes(view.graph) if ids is None else nodes_of(view.graph, ids)
    size = view.model.encoder.output_size
    if path.suffix.lower() == ".npy":
        rows = (_embedded(view, batch) for batch in view.batches(nodes, batch_size))
        write_matrix(path, (len(nodes), size), counted(rows, len(nodes), progress))
    else:
        schema = embedding_schema(view.graph, size, model_fingerprint(view.model))
        tables = (
            embedding_table(view.graph, batch, _embedded(view, batch), schema) for batch in view.batches(nodes, batch_size)
        )
        write_tables(path, schema, counted(tables, len(nodes), progress))
    return len(nodes)


def embedding_schema(graph: Graph | ExtendedGraph, size: int, fingerprint: str) -> Any:
    """Columns of a file of embeddings."""
    fields = {
        "id": names_of(graph, np.zeros(1, np.int64)).type,
        "embedding": pa.list_(pa.float32(), size),
        "model": pa.dictionary(pa.int32(), pa.string()),
    }
    return pa.schema(fields, metadata={FINGERPRINT: fingerprint})


def embedding_table(graph: Graph | ExtendedGraph, nodes: Ints, rows: NDArray[np.float32], schema: Any) -> Any:
    """A batch of them."""
    fingerprint = schema.metadata[FINGERPRINT.encode()].decode()
    columns = [
        names_of(graph, nodes),
        pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1]),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(nodes), np.int32)), [fingerprint]),
    ]
    return pa.table(columns, schema=schema)


def model_fingerprint(model: Model, graph: str | None = None) -> str:
    """A hash of all that answers depend on: graph (whose own may be given), features, settings and weights."""
    asked = f"{model.config.model_dump_json()} {model.answer_mode} {model.answer_draws} {model.names}"
    digest = RunningChecksum(f"{graph or graph_fingerprint(model.graph)} {asked}".encode())
    state = {**model.state_dict(), **({} if model.features is None else {"features": model.features})}
    for name, tensor in sorted(state.items()):
        if name not in ("sampler.draws", "encoder.passes"):  # counters of training, which answers do not depend on
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            content = tensor.detach().cpu().contiguous().numpy()
            digest.update(content.reshape(-1).data.cast("B") if content.size else b"")
    return digest.hexdigest()


def as_view(asked: Model | View) -> View:
    """A model is asked about its own graph."""
    return asked if isinstance(asked, View) else View(asked)


def _embedded(view: View, nodes: Ints) -> NDArray[np.float32]:
    """The mean over draws."""
    found = torch.stack([view.represent(nodes, draw) for draw in view.draws]).mean(0)
    rows: NDArray[np.float32] = found.float().cpu().numpy()
    return rows
