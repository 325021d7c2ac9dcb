"""What a run says of all nodes, embeddings or classes: parts are rows, the whole is the file that one process would write."""

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
from gatas.inference.embed import embed_nodes, embedding_schema, embedding_table, model_fingerprint
from gatas.inference.files import write_matrix, write_tables
from gatas.inference.ids import names_of
from gatas.inference.predict import Prediction, predict_nodes
from gatas.inference.view import View, batch_size_on, batches
from gatas.nn.ablations import ABLATIONS
from gatas.scale.job import Job, Outline
from gatas.scale.parts import Part
from gatas.scale.transitions import row_seconds
from gatas.training import load_config
from gatas.training.folder import assembled, read_run, trained_on
from gatas.training.loop import chosen_device
from gatas.transitions import OnDemand
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.prepared import Prepared, prepared

NEIGHBOUR_SECONDS = 8e-6
"""Of a processor, to look at one neighbour of a node, about."""


@dataclass(frozen=True)
class AnswersTask:
    """What a run's model says of every node of the graph that it was trained on, which lies in a store."""

    asked: Literal["embeddings", "predictions"]
    run: str
    graph: str
    batch_size: int | None = None
    device: str = "cpu"

    @property
    def name(self) -> str:
        return self.asked

    @property
    def whole_batch(self) -> int:
        """Parts are of so many nodes, or several times that many: the batches of one process."""
        return self.batch_size or batch_size_on(self.device)

    def identity(self) -> dict[str, Any]:
        names = ("about.json", "config.yaml", "weights.safetensors")
        return {
            "task": self.asked,
            "graph": store_fingerprint(Path(self.graph), KINDS),
            "run": [checksum(Path(self.run, name)) for name in names],
            "batch_size": self.batch_size,
            "device": self.device,
        }

    def outline(self, scratch: Path) -> Outline:
        run = Path(self.run)
        (about, weights), config = read_run(run), load_config(run / "config.yaml").model
        dataset = Dataset.open(self.graph)
        graph = dataset.graph
        steps = ABLATIONS[config.ablation].transitions(config.num_steps)["num_steps"]
        limits: Any = {"max_candidates": config.max_candidates, "max_degree": config.max_degree}
        source = OnDemand(graph, steps, config.transition_kind, **limits, scratch=scratch)
        arrays, parameters = prepared(source)
        view = View(assembled(run, about, weights, dataset, source))
        size = view.model.encoder.output_size if self.asked == "embeddings" else len(view.model.names)
        parameters |= {"model": model_fingerprint(view.model, about["graph"]), "size": size, "about": about}
        neighbours = np.minimum(np.sum(source.walks, axis=0), config.sample_size)
        seconds = row_seconds(source) + NEIGHBOUR_SECONDS * neighbours
        return Outline(seconds, 4.0 * size * graph.num_nodes, self.whole_batch, arrays, parameters)

    def arrays(self, job: Job, part: Part, threads: int) -> NamedArrays:
        view, nodes = _view(self, job.folder, job.key, threads), np.arange(part.first, part.last)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            if self.asked == "embeddings":
                return {"rows": embed_nodes(view, nodes, self.batch_size)}
            return {"rows": predict_nodes(view, nodes, self.batch_size).probabilities}
        finally:
            torch.set_num_threads(before)

    def assemble(self, job: Job, out: Path, overwrite: bool) -> dict[str, Any]:
        graph, plan = Graph.open(self.graph), job.plan
        size, model = plan.parameter("size"), plan.parameter("model")
        if out.suffix.lower() == ".npy":
            write_matrix(out, (graph.num_nodes, size), (rows for _, rows in self._batches(job)))
        elif self.asked == "embeddings":
            schema = embedding_schema(graph, size, model)
            write_tables(out, schema, (embedding_table(graph, nodes, rows, schema) for nodes, rows in self._batches(job)))
        else:
            tables = (_predictions(graph, plan, nodes, rows) for nodes, rows in self._batches(job))
            schema = _predictions(graph, plan, np.empty(0, np.int64), np.empty((0, size), np.float32)).schema
            write_tables(out, schema, tables)
        return {"nodes": graph.num_nodes, "size": size, "model": model}

    def _batches(self, job: Job) -> Iterator[tuple[Ints, NDArray[np.float32]]]:
        """Nodes and their rows, in the batches of one process."""
        for part, store in zip(job.parts, job.stores, strict=True):
            for nodes in batches(np.arange(part.first, part.last), self.whole_batch):
                yield nodes, np.array(store.array("rows")[nodes[0] - part.first : nodes[-1] + 1 - part.first])


def check_classifies(run: Path) -> None:
    """Before the work, not after it."""
    if read_run(run)[0]["task"] == "link prediction":
        raise GatasError("the model predicts links, not classes of nodes; of all nodes there are too many. Leave --engine out.")


def store_data(run: Path, folder: Path, data_dir: Path | None = None) -> Path:
    """The store of a run's graph, which workers map; where it has none, one is made of what answers depend on."""
    if folder.exists():
        return folder
    dataset = trained_on(run, read_run(run)[0], data_dir=data_dir)
    if dataset.store is not None:
        return dataset.store
    dataset.save(folder)
    return folder


@lru_cache(maxsize=1)
def _view(task: AnswersTask, folder: Path, key: str, threads: int) -> View:
    """The model over what all parts share, mapped once in a process."""
    plan, dataset = open_store(folder / "plan", "plan"), Dataset.open(task.graph)
    about, weights = read_run(Path(task.run))
    device, source = chosen_device(task.device), Prepared(dataset.graph, plan, threads)
    rows = ReadAhead(source) if device.type == "cuda" else source  # processors would be taken from what is at work
    return View(assembled(Path(task.run), about, weights, dataset, rows).to(device))


def _predictions(graph: Graph, plan: Store, nodes: Ints, rows: NDArray[np.float32]) -> Any:
    about = plan.parameter("about")
    several = about["task"] == "multi-label node classification"
    return Prediction(names_of(graph, nodes), tuple(about["names"]), rows, several).table()
