"""The folder of a finished run: config, weights, metrics, history, ids and plots; and a model back from it."""

import hashlib
import json
import math
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from gatas import __version__
from gatas.datasets import Dataset, LinkTargets, open_dataset
from gatas.datasets.encoding import FORMAT as ENCODING_FORMAT
from gatas.datasets.encoding import Encoding
from gatas.datasets.saved import data_fingerprint
from gatas.errors import GatasError, GatasWarning, TrainingError
from gatas.graph.saved import graph_fingerprint
from gatas.graph.sums import check_sums, read_signed, signed
from gatas.tasks import LinkPredictor, Model, NodeClassifier
from gatas.tasks.learnable import Learnable
from gatas.training.checkpoint import verify_checkpoints, write_whole, writing
from gatas.training.config import TrainingConfig, load_config
from gatas.training.plots import curve_plot, depth_plot
from gatas.training.run import Run, Runs
from gatas.transitions import TransitionSource

ENCODING = "encoding.json"
SUMS = "sums.json"
ID_ROWS = 1 << 16
"""Ids that are written at once."""
FORMAT = 1
"""Of the folder; one that is read must have this or none, as those before it was written down."""


def write_run(runs: list[Run], folder: Path) -> None:
    """One run in the folder itself; several in folders of their own, with a summary above."""
    if len(runs) == 1:
        _write_one(runs[0], folder)
        return
    for run in runs:
        _write_one(run, folder / f"seed-{run.seed}")
    metrics = {"seeds": [run.seed for run in runs], **summary(Runs(runs))}
    _write_files(folder, {"config.yaml": runs[0].config.to_yaml().encode(), "metrics.json": _json(metrics)})


def summary(runs: Runs) -> dict[str, Any]:
    """Mean and standard deviation over seeds of every number that is measured."""
    return {
        split: {
            name: {"mean": runs.mean(f"{split}.{name}"), "std": runs.std(f"{split}.{name}")}
            for name, value in measured.items()
            if isinstance(value, float)
        }
        for split, measured in runs[0].metrics.items()
        if isinstance(measured, dict)
    }


def _write_one(run: Run, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"{folder} cannot be made ({error.strerror}). Choose another folder.") from None
    about = {
        "format": FORMAT,
        "gatas": __version__,
        "data": run.dataset.name,
        "note": run.dataset.note,
        "graph": graph_fingerprint(run.dataset.graph),
        "contents": data_fingerprint(run.dataset),
        "task": run.dataset.task,
        "names": run.dataset.names,
        "seed": run.seed,
    }
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in run.model.state_dict().items()}
    files = {
        "config.yaml": run.config.to_yaml().encode(),
        "weights.safetensors": save_tensors(weights, {"gatas": json.dumps(about)}),
        "about.json": _json(about),
        "ids.parquet": _ids(run.dataset),
        "history.jsonl": "".join(json.dumps(entry) + "\n" for entry in run.history).encode(),
        "curve.png": _png(curve_plot(run)),
    }
    if run.dataset.encoding is not None:
        files[ENCODING] = _json(run.dataset.encoding.model_dump(mode="json"))
    if "depth" in run.history[-1]:
        files["depth.png"] = _png(depth_plot(run))
    _write_files(folder, {**files, "metrics.json": _json(run.metrics)})


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    """With their sums. Of files the last is written last: its presence says that the run is finished."""
    with writing(folder):
        folder.joinpath(SUMS).unlink(missing_ok=True)  # of a run that was here before
    *others, last = files
    for name in others:
        write_whole(folder / name, files[name])
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_whole(folder / SUMS, signed({"sums": sums}))
    write_whole(folder / last, files[last])


def verify_run(folder: Path) -> None:
    """Read every byte of a run's folder, of its checkpoints, and of the runs of several seeds in it."""
    verify_checkpoints(folder)
    if not folder.joinpath(SUMS).exists():
        raise TrainingError(
            f"{folder} has no {SUMS}: its run is not finished, or of an earlier version. The same `gatas train` command again "
            "goes on, and writes it."
        )
    check_sums(folder, read_signed(folder / SUMS)["sums"])
    for seed in sorted(folder.glob("seed-*")):
        verify_run(seed)


def load(folder: str | Path, *, dataset: Dataset | None = None, data_dir: str | Path | None = None) -> Model:
    """The model of a finished run. Its data is loaded by name or from its files, unless given; it must be that trained on."""
    folder = Path(folder)
    about, weights = read_run(folder)
    return assembled(folder, about, weights, trained_on(folder, about, dataset, data_dir))


def trained_on(
    folder: Path, about: dict[str, Any], dataset: Dataset | None = None, data_dir: str | Path | None = None
) -> Dataset:
    """The data of a run, by name or from its files, unless it is given; what it was not trained on is refused."""
    if dataset is None:
        try:
            with warnings.catch_warnings(action="ignore", category=GatasWarning):  # said when it was trained
                dataset = open_dataset(load_config(folder / "config.yaml").data, data_dir)
        except GatasError as error:
            raise TrainingError(f"the data of {folder} is not at hand: {error} Or pass it as dataset.") from None
    found = graph_fingerprint(dataset.graph)
    if found != about["graph"]:
        raise TrainingError(
            f"{folder} was trained on another graph: {about['data']} with fingerprint {about['graph'][:12]}, but "
            f"{dataset.name} has {found[:12]}. Give the data set that it was trained on."
        )
    if dataset.origin is not None and data_fingerprint(dataset) != about["contents"]:
        raise TrainingError(
            f"{folder} was trained on other data: features, labels or splits of {about['data']} have changed since. Restore "
            "its files, or train anew."
        )
    return dataset


def assembled(
    folder: Path,
    about: dict[str, Any],
    weights: dict[str, Tensor],
    dataset: Dataset,
    transitions: TransitionSource | None = None,
) -> Model:
    """The model of a run over its data and, where they exist already, its transitions."""
    config = load_config(folder / "config.yaml")
    kind = LinkPredictor if isinstance(dataset.targets, LinkTargets) else NodeClassifier
    model = kind(dataset, transitions=transitions, seed=about["seed"], **config.model.model_dump())
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise TrainingError(f"the weights in {folder} do not fit its config.yaml and {dataset.name} ({error}).") from None
    model.encoding = _encoding(folder) or model.encoding
    answer_as_measured(model, config.training)
    return model.eval()


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What the folder of a finished run says of itself, and its weights; what is none is refused."""
    if not folder.is_dir():
        raise TrainingError(f"{folder} is not a folder; expected one that `gatas train` wrote.")
    if several := sorted(folder.glob("seed-*")):
        raise TrainingError(f"{folder} holds the runs of {len(several)} seeds. Give one of them, such as {several[0]}.")
    try:
        about = json.loads(folder.joinpath("about.json").read_text(encoding="utf-8"))
        if (written := about.get("format", FORMAT)) != FORMAT:
            raise TrainingError(f"{folder} has format {written!r}; this version of gatas reads format {FORMAT}. Update gatas.")
        weights = load_tensors(folder.joinpath("weights.safetensors").read_bytes())
        return {name: about[name] for name in ("data", "seed", "graph", "contents", "task", "names")}, weights
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise TrainingError(f"{folder} holds no finished run that can be read ({error}). Give the folder of one.") from None


def _encoding(folder: Path) -> Encoding | None:
    """How columns of own tables became features; None where there are none, or the folder is older."""
    path = folder / ENCODING
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (written := content.get("format")) != ENCODING_FORMAT:
            raise TrainingError(f"{path} has format {written!r}; this version of gatas reads {ENCODING_FORMAT}. Update gatas.")
        return Encoding(**content)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise TrainingError(f"{path} could not be read ({str(error).splitlines()[0]}). Train the run again.") from None


def answer_as_measured(model: Learnable, training: TrainingConfig) -> None:
    """Asked for anything, the model looks at neighbours as in its evaluation."""
    model.answer_mode = training.evaluation_mode
    model.answer_draws = training.evaluation_draws if training.evaluation_mode == "sample" else 1


def _ids(dataset: Dataset) -> bytes:
    """Which node each number is."""
    graph = dataset.graph
    schema = pa.schema({"node": pa.int64(), "id": pa.array([graph.id_of(0)]).type})
    buffer = BytesIO()
    with pq.ParquetWriter(buffer, schema) as writer:
        for first in range(0, graph.num_nodes, ID_ROWS):
            nodes = np.arange(first, min(first + ID_ROWS, graph.num_nodes))
            names = nodes if graph.node_ids is None else graph.node_ids.take(nodes)
            writer.write_table(pa.table([pa.array(nodes), pa.array(names)], schema=schema))
    return buffer.getvalue()


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, dpi=120, format="png")
    return buffer.getvalue()


def _json(content: Any) -> bytes:
    return (json.dumps(_known(content), indent=1, ensure_ascii=False) + "\n").encode()


def _known(content: Any) -> Any:
    """JSON has no NaN: what could not be measured is null."""
    if isinstance(content, dict):
        return {name: _known(value) for name, value in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content
