"""The folder of a finished run, which holds all that answering needs: no table of the user's is read again.

config.yaml          all settings                        weights.safetensors  the model's best weights
data/                graph, node table and targets       metrics.json         what was measured; written last
about.json           format, version, task, seed         history.jsonl        epoch by epoch
ids.parquet          the id of each node index           *.png, *.csv         plots, and tables by class or number
checksums.json       the sha256 of every file here

Epochs count from 0 in files: `best_epoch` of metrics.json is a line of history.jsonl. What people read counts from 1.
"""

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from gatas import __version__
from gatas.datasets import Dataset, LinkTargets, NodeTargets, NumberTargets
from gatas.datasets.config import StoreData
from gatas.errors import StoreError, TrainingError
from gatas.files import checksum_of, read_signed_json, signed_json, verify_checksums, verify_file
from gatas.graph.saved import KINDS
from gatas.graph.storage import copy_store, store_fingerprint, verify_store
from gatas.tasks import LinkPredictor, Model, NodeClassifier, NodeRegressor
from gatas.training.checkpoint import verify_checkpoints, write_whole, writing
from gatas.training.config import Config, load_config
from gatas.training.run import Runs, TrainedRun
from gatas.transitions import TransitionSource

CHECKSUMS = "checksums.json"
DATA = "data"
ID_ROWS = 1 << 16
"""Ids that are written at once."""
MODELS: dict[type, type[LinkPredictor] | type[NodeClassifier] | type[NodeRegressor]] = {
    LinkTargets: LinkPredictor,
    NodeTargets: NodeClassifier,
    NumberTargets: NodeRegressor,
}
"""The models of what is asked of a graph."""
FORMAT = 2
"""Format 1 is that of gatas 0.1, whose folders do not hold their data."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run in its folder."""

    folder: Path
    about: dict[str, Any]
    weights: dict[str, Tensor]

    @cached_property
    def config(self) -> Config:
        return load_config(self.folder / "config.yaml")

    def open_data(self) -> Dataset:
        """Map the data that the run was trained on."""
        try:
            contents = store_fingerprint(self.folder / DATA, KINDS)
            if contents != self.about["contents"]:
                raise TrainingError(
                    f"{self.folder} was trained on other data: fingerprint {self.about['contents'][:12]}, but its folder "
                    f"{DATA} has {contents[:12]}. Bring back what was there, or train again."
                )
            dataset = Dataset.open(self.folder / DATA)
        except StoreError as error:
            raise TrainingError(f"the data of {self.folder} cannot be read: {error}") from None
        origin = self.config.data
        if isinstance(origin, StoreData) and origin.transitions is not None and not origin.transitions.exists():
            origin = origin.model_copy(update={"transitions": None})  # rows are then computed when they are needed
        return replace(dataset, name=self.about["data"], note=self.about["note"], origin=origin)

    def make_model(self, dataset: Dataset, transitions: TransitionSource | None = None) -> Model:
        """Make the trained model over its data and, where they exist already, its transitions."""
        settings = {**self.config.model.model_dump(), "node_embedding_start": "random"}  # weights are those of the run
        if (paths := self.weights.get("head.path_ids")) is not None:
            settings["paths"] = paths.numpy()
        model = MODELS[type(dataset.targets)](dataset, transitions=transitions, seed=self.about["seed"], **settings)
        model.config = model.config.model_copy(update={"node_embedding_start": self.config.model.node_embedding_start})
        try:
            model.load_state_dict(self.weights)
        except RuntimeError as error:
            raise TrainingError(f"the weights in {self.folder} do not fit its config.yaml and data ({error}).") from None
        if isinstance(model, NodeClassifier):
            model.temperature = self.about["temperature"]
        return model.eval()


def read_run(folder: Path) -> StoredRun:
    """Read what the folder of a finished run says of itself, and its weights; what is none is refused."""
    if not folder.is_dir():
        raise TrainingError(f"{folder} is not a folder; expected one that `gatas train` wrote.")
    if several := sorted(folder.glob("seed-*")):
        raise TrainingError(f"{folder} holds the runs of {len(several)} seeds. Give one of them, such as {several[0]}.")
    try:
        about = json.loads(folder.joinpath("about.json").read_text(encoding="utf-8"))
        _check_format(folder, about.get("format", 1))
        weights = load_tensors(folder.joinpath("weights.safetensors").read_bytes())
        found = {name: about[name] for name in ("data", "note", "seed", "contents", "task", "names")}
        found["temperature"] = float(about.get("temperature", 1.0))  # of earlier versions: probabilities as they were
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise TrainingError(f"{folder} holds no finished run that can be read ({error}). Give the folder of one.") from None
    return StoredRun(folder, found, weights)


def _check_format(folder: Path, written: Any) -> None:
    if written == 1:
        raise TrainingError(f"{folder} was written by gatas 0.1, whose runs do not hold their data. Train the model again.")
    if written != FORMAT:
        raise TrainingError(f"{folder} has format {written!r}; this version of gatas reads format {FORMAT}. Update gatas.")


def write_run(runs: list[TrainedRun], folder: Path) -> None:
    """Write one run in the folder itself; several in folders of their own, with a summary above."""
    if len(runs) == 1:
        _write_one(runs[0], folder, None)
        return
    first = folder / f"seed-{runs[0].seed}"
    for run in runs:
        own = folder / f"seed-{run.seed}"
        _write_one(run, own, None if own == first else first / DATA)
    metrics = {"seeds": [run.seed for run in runs], **summary(Runs(runs))}
    _write_files(folder, {"config.yaml": runs[0].config.to_yaml().encode(), "metrics.json": _json(metrics)})


def summary(runs: Runs[Any]) -> dict[str, Any]:
    """Return mean and standard deviation over seeds of every number that is measured."""
    return {
        split: _spreads(runs, split, measured)
        | ({"ranking": _spreads(runs, f"{split}.ranking", measured["ranking"])} if "ranking" in measured else {})
        for split, measured in runs[0].metrics.items()
        if isinstance(measured, dict)
    }


def _spreads(runs: Runs[Any], place: str, measured: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"mean": runs.mean(f"{place}.{name}"), "std": runs.std(f"{place}.{name}")}
        for name, value in measured.items()
        if isinstance(value, float)
    }


def _write_one(run: TrainedRun, folder: Path, stored_data: Path | None) -> None:
    from gatas.training.detail_files import detail_files
    from gatas.training.plots import curve_plot, depth_plot, png  # matplotlib: half a second that readers need not wait

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"{folder} cannot be made ({error.strerror}). Choose another folder.") from None
    _write_data(run.dataset, folder / DATA, stored_data)
    about = {
        "format": FORMAT,
        "gatas": __version__,
        "data": run.dataset.name,
        "note": run.dataset.note,
        "contents": store_fingerprint(folder / DATA, KINDS),
        "task": run.dataset.task,
        "names": run.dataset.names,
        "seed": run.seed,
        **({"temperature": run.model.temperature} if isinstance(run.model, NodeClassifier) else {}),
    }
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in run.model.state_dict().items()}
    files = {
        "config.yaml": run.config.to_yaml().encode(),
        "weights.safetensors": save_tensors(weights, {"gatas": json.dumps(about)}),
        "about.json": _json(about),
        "ids.parquet": _ids(run.dataset),
        "history.jsonl": "".join(json.dumps(entry) + "\n" for entry in run.history).encode(),
        "curve.png": png(curve_plot(run)),
    }
    if "depth" in run.history[-1]:
        files["depth.png"] = png(depth_plot(run))
    files |= detail_files(run)
    _write_files(folder, {**files, "metrics.json": _json(run.metrics)})


def _write_data(dataset: Dataset, folder: Path, stored: Path | None) -> None:
    """Write the data; what lies in a store already is linked where the disk allows it, or else copied."""
    try:
        if stored is not None or dataset.store is not None:
            copy_store(stored or dataset.store or folder, folder, overwrite=True)
        else:
            dataset.save(folder, overwrite=True)
    except StoreError as error:
        raise TrainingError(
            f"{error} Nothing that was saved is lost: make room, or allow writing, and start again to go on from there."
        ) from None


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write files with their checksums. The last one is written last: its presence says that the run is finished."""
    with writing(folder):
        folder.joinpath(CHECKSUMS).unlink(missing_ok=True)  # of a run that was here before
    *others, last = files
    for name in others:
        write_whole(folder / name, files[name])
    checksums = {name: checksum_of(content) for name, content in files.items()}
    write_whole(folder / CHECKSUMS, signed_json({"checksums": checksums}))
    write_whole(folder / last, files[last])


def verify_run(folder: Path) -> None:
    """Read every byte of a run's folder, of its data and checkpoints, and of the runs of several seeds in it."""
    verify_checkpoints(folder)
    if not folder.joinpath(CHECKSUMS).exists():
        raise TrainingError(
            f"{folder} has no {CHECKSUMS}: its run is not finished, or of an earlier version. The same `gatas train` command "
            "again goes on, and writes it."
        )
    verify_checksums(folder, read_signed_json(folder / CHECKSUMS)["checksums"])
    for beside in folder.glob(".*.sha256"):  # of what was added later, such as the report
        added = folder / beside.name.removeprefix(".").removesuffix(".sha256")
        if added.exists():
            verify_file(added)
    seeds = sorted(folder.glob("seed-*"))
    if not seeds:
        verify_store(folder / DATA)
    for seed in seeds:
        verify_run(seed)


def _ids(dataset: Dataset) -> bytes:
    """Return a Parquet file with the id of each node index."""
    graph = dataset.graph
    schema = pa.schema({"node": pa.int64(), "id": pa.array([graph.id_of(0)]).type})
    buffer = BytesIO()
    with pq.ParquetWriter(buffer, schema) as writer:
        for first in range(0, graph.num_nodes, ID_ROWS):
            nodes = np.arange(first, min(first + ID_ROWS, graph.num_nodes))
            names = nodes if graph.node_ids is None else graph.node_ids.take(nodes)
            writer.write_table(pa.table([pa.array(nodes), pa.array(names)], schema=schema))
    return buffer.getvalue()


def _json(content: Any) -> bytes:
    return (json.dumps(_known(content), indent=1, ensure_ascii=False) + "\n").encode()


def _known(content: Any) -> Any:
    """Replace NaN, which JSON does not have, by null: what could not be measured."""
    if isinstance(content, dict):
        return {name: _known(value) for name, value in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content
