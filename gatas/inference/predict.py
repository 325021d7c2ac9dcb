"""`predict`: classes of nodes, with probabilities."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.inference.embed import as_view
from gatas.inference.files import TABLES, check_suffix, counted, write_tables
from gatas.inference.ids import names_of, nodes_of
from gatas.inference.view import View, all_nodes
from gatas.progress import ProgressCallback
from gatas.tasks import Model, NodeClassifier


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model takes nodes for."""

    ids: Any  # a column
    names: tuple[str, ...]  # of the classes
    probabilities: NDArray[np.float32]  # (n, classes); add up to 1, unless there may be several
    several: bool  # whether a node may have any number of classes

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def labels(self) -> list[Any]:
        """The likeliest class of each node; where there may be several, a list of those that are likelier than not."""
        if not self.several:
            return [self.names[place] for place in self.probabilities.argmax(1)]
        return [[self.names[place] for place in np.flatnonzero(row > 0.5)] for row in self.probabilities]

    def table(self) -> Any:
        """Columns `id`, `class` or `classes`, and `p(…)` for each class."""
        labels = pa.array(self.labels, pa.list_(pa.string()) if self.several else pa.string())
        columns = {"id": self.ids, "classes" if self.several else "class": labels}
        chances = {f"p({name})": pa.array(column) for name, column in zip(self.names, self.probabilities.T, strict=True)}
        return pa.table({**columns, **chances})


def predict(asked: Model | View, ids: Any, *, batch_size: int | None = None) -> Prediction:
    """Classes and their probabilities, of nodes by their ids."""
    view = as_view(asked)
    check_classifies(view.model)
    return predict_nodes(view, nodes_of(view.graph, ids), batch_size)


def write_predictions(
    asked: Model | View, path: str | Path, ids: Any = None, *, progress: ProgressCallback = lambda share: None
) -> int:
    """Write the classes of all nodes, or of some, as Parquet, CSV or JSON; gives their number."""
    path, view = Path(path), as_view(asked)
    check_classifies(view.model)
    check_suffix(path, TABLES)
    nodes = all_nodes(view.graph) if ids is None else nodes_of(view.graph, ids)
    tables = (predict_nodes(view, batch).table() for batch in view.batches(nodes))
    write_tables(path, predict_nodes(view, nodes[:0]).table().schema, counted(tables, len(nodes), progress))
    return len(nodes)


def check_classifies(model: Model) -> None:
    """Of a model of links, classes cannot be asked for."""
    if not isinstance(model, NodeClassifier):
        raise GatasError("the model predicts links, not classes of nodes. Ask for links: predict_links, --pairs or --source.")


def predict_nodes(view: View, nodes: Ints, batch_size: int | None = None) -> Prediction:
    """The same by their numbers."""
    found = [_probabilities(view, batch) for batch in view.batches(nodes, batch_size)]
    several = view.model.task == "multi-label node classification"
    together = np.concatenate(found) if found else np.empty((0, len(view.model.names)), np.float32)
    return Prediction(names_of(view.graph, nodes), view.model.names, together, several)


def _probabilities(view: View, nodes: Ints) -> NDArray[np.float32]:
    """The mean over draws."""
    logits = torch.stack([view.headed(view.represent(nodes, draw)) for draw in view.draws])
    several = view.model.task == "multi-label node classification"
    chances = logits.sigmoid() if several else logits.softmax(-1)
    rows: NDArray[np.float32] = chances.mean(0).float().cpu().numpy()
    return rows
