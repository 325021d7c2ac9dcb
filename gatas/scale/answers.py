"""Embeddings or classes of all nodes of a run: parts are rows, the whole is the file that one process would write."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.files import checksum
from gatas.graph import Graph
from gatas.graph.inputs import Ints
from gatas.graph.saved import KINDS
from gatas.graph.storage import NamedArrays, Store, open_store, store_fingerprint
from gatas.inference import NumberPrediction, Prediction, Predictor
from gatas.inference.files import embedding_schema, embedding_table, write_matrix, write_tables
from gatas.inference.ids import ids_of
from gatas.inference.trained import batch_size_on
from gatas.nn.ablations import ABLATIONS
from gatas.scale.parts import Part
from gatas.scale.task import Job, Outline
from gatas.scale.transitions import row_seconds
from gatas.training.folder import DATA, StoredRun, read_run
from gatas.training.loop import chosen_device
from gatas.transitions import OnDemand, TransitionSource
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.prepared import Prepared, prepared

NEIGHBOUR_SECONDS = 8e-6
"""Processor seconds to look at one neighbour of a node, about."""


@dataclass(frozen=True)
class AnswersTask:
    """What a run's predictor says of every node of the graph that it was trained on."""

    asked: Literal["embeddings", "predictions"]
    run: str
    batch_size: int | None = None
    device: str = "cpu"

    @property
    def name(self) -> str:
        return self.asked

    @property
    def data(self) -> Path:
        """Return the store of the run's data, which workers map."""
        return Path(self.run, DATA)

    @property
    def whole_batch(self) -> int:
        """Return the number of nodes that parts have, or have several times: the batches of one process."""
        return self.batch_size or batch_size_on(self.device)

    def identity(self) -> dict[str, Any]:
        names = ("about.json", "config.yaml", "weights.safetensors")
        return {
            "task": self.asked,
            "graph": store_fingerprint(self.data, KINDS),
            "run": [checksum(Path(self.run, name)) for name in names],
            "batch_size": self.batch_size,
            "device": self.device,
        }

    def outline(self, scratch: Path) -> Outline:
        run = read_run(Path(self.run))
        dataset, config = run.open_data(), run.config.model
        steps = ABLATIONS[config.ablation].transitions(config.steps)["num_steps"]
        limits: Any = {name: getattr(config, name) for name in ("max_candidates", "max_degree", "revisits")}
        source = OnDemand(dataset.graph, steps, config.transition_kind, **limits, scratch=scratch)
        arrays, parameters = prepared(source)
        predictor = _made(run, dataset, source, "cpu")
        if self.asked == "embeddings" and not predictor.embedding_size:
            predictor.embed_indices(np.arange(1))  # refuses, and says why
        size = predictor.embedding_size if self.asked == "embeddings" else len(predictor.names)
        parameters |= {"model": predictor.fingerprint, "size": size, "about": run.about}
        neighbours = np.minimum(np.sum(source.walks, axis=0), config.sample_size)
        seconds = row_seconds(source) + NEIGHBOUR_SECONDS * neighbours
        return Outline(seconds, 4.0 * size * dataset.graph.num_nodes, self.whole_batch, arrays, parameters)

    def arrays(self, job: Job, part: Part, threads: int) -> NamedArrays:
        predictor, nodes = _predictor(self, job.folder, job.key, threads), np.arange(part.first, part.last)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            if self.asked == "embeddings":
                return {"rows": predictor.embed_indices(nodes, self.batch_size)}
            found = predictor.predict_indices(nodes, self.batch_size)
            return {"rows": found.values if isinstance(found, NumberPrediction) else found.probabilities}
        finally:
            torch.set_num_threads(before)

    def assemble(self, job: Job, out: Path, overwrite: bool) -> dict[str, Any]:
        graph, plan = Graph.open(self.data), job.plan
        size, model = plan.parameter("size"), plan.parameter("model")
        if out.suffix.lower() == ".npy":
            write_matrix(out, (graph.num_nodes, size), (rows for _, rows in self._batches(job)))
        elif self.asked == "embeddings":
            schema = embedding_schema(graph, size, model)
            write_tables(out, schema, (embedding_table(graph, nodes, rows, schema) for nodes, rows in self._batches(job)))
        else:
            tables = (_predictions(graph, plan, nodes, rows) for nodes, rows in self._batches(job))
            kind = np.float64 if plan.parameter("about")["task"] == "node regression" else np.float32
            schema = _predictions(graph, plan, np.empty(0, np.int64), np.empty((0, size), kind)).schema
            write_tables(out, schema, tables)
        return {"nodes": graph.num_nodes, "size": size, "model": model}

    def _batches(self, job: Job) -> Iterator[tuple[Ints, NDArray[Any]]]:
        """Give nodes and their rows, in the batches of one process."""
        for part, store in zip(job.parts, job.stores, strict=True):
            for first in range(part.first, part.last, self.whole_batch):
                nodes = np.arange(first, min(first + self.whole_batch, part.last))
                yield nodes, np.array(store.array("rows")[nodes[0] - part.first : nodes[-1] + 1 - part.first])


def check_predicts_nodes(run: Path) -> None:
    """Refuse to predict classes or numbers of nodes with a run of links, before the work rather than after it."""
    if read_run(run).about["task"] == "link prediction":
        raise GatasError("the model predicts links, not classes of nodes; of all nodes there are too many. Leave --engine out.")


def _made(run: StoredRun, dataset: Dataset, rows: TransitionSource, device: str) -> Predictor:
    training = run.config.training
    model = run.make_model(dataset, rows).to(chosen_device(device))
    return Predictor(model, dataset, mode=training.evaluation_mode, draws=training.evaluation_draws)


@lru_cache(maxsize=1)
def _predictor(task: AnswersTask, folder: Path, key: str, threads: int) -> Predictor:
    """Make the predictor over what all parts share, mapped once in a process."""
    run = read_run(Path(task.run))
    dataset = run.open_data()
    source = Prepared(dataset.graph, open_store(folder / "plan", "plan"), threads)
    on_gpu = chosen_device(task.device).type == "cuda"  # reading ahead on a CPU would take processors from what is at work
    return _made(run, dataset, ReadAhead(source) if on_gpu else source, task.device)


def _predictions(graph: Graph, plan: Store, nodes: Ints, rows: NDArray[Any]) -> Any:
    about = plan.parameter("about")
    if about["task"] == "node regression":
        return NumberPrediction(ids_of(graph, nodes), tuple(about["names"]), rows).table()
    multi_label = about["task"] == "multi-label node classification"
    return Prediction(ids_of(graph, nodes), tuple(about["names"]), rows, multi_label).table()
