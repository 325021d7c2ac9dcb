"""The search for the settings of nodes that follow from the data, on validation data: test splits are taken away at once.

    python -m benchmarks.choose GRAPH… [--splits split0,split20] [--seeds 3] [--only NAME;…] --log results/choose.jsonl

A graph is a YAML file, the name of a data set, or a folder with edges.parquet and nodes.parquet. Every line of the log is one
set of settings, over what there is without a recipe, on one split of a graph. What the log has is not run again. Several of
these processes may be started, to fill a GPU: each takes what no other is at.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.nodes import named
from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.experiments.comparison_data import Loaded, loaded
from gatas.experiments.recording import commit, hardware
from gatas.files import FileLock
from gatas.training.config import Config, NamedData
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, fit_models, make_model
from gatas.training.run import Runs

Settings = dict[str, Any]

PATIENT: Settings = {"training.monitor": "metric", "training.epochs": 300, "training.patience": 40}
OWN: Settings = {**PATIENT, "model.skip_connection": True, "model.output_norm": True}
MEANS: Settings = {**OWN, "model.path_mean_size": 64}
AVERAGED: Settings = {**MEANS, "training.ema_decay": 0.99}
NOISY: Settings = {
    **PATIENT, "training.monitor": "loss", "model.input_noise": 0.8, "model.dropout": 0.3, "training.l2": 0.005,
    "training.epochs": 600, "training.patience": 60, "model.path_mean_size": 64, "training.batch_size": 1000,
}  # fmt: skip
AGREE: Settings = {
    **NOISY, "training.consistency": 1.5, "training.consistency_draws": 3, "training.consistency_nodes": 1000,
}  # fmt: skip
BROAD: Settings = {
    "training.batch_size": 500, "training.by_graph": True, "training.learning_rate": 0.003, "training.schedule": "cosine",
    "training.epochs": 120, "training.patience": 120, "training.monitor": "metric", "training.l2": 1e-5, "model.dropout": 0.0,
    "model.hidden_size": 256, "model.hidden_sizes": (1024, 1024), "model.sample_size": 500, "model.num_heads": 10,
    "model.relation_embedding_size": 5,
}  # fmt: skip
CANDIDATES: dict[str, Settings] = {
    "as it was": {},
    "own": OWN,
    "means": MEANS,
    "averaged": AVERAGED,
    "averaged, labels": {**AVERAGED, "model.label_inputs": True, "model.label_dropout": 0.3},
    "averaged, wide": {**AVERAGED, "model.hidden_size": 128, "model.path_mean_size": 128},
    "averaged, two steps": {**AVERAGED, "model.num_steps": 2},
    "averaged, noise": {**AVERAGED, "model.input_noise": 0.5},
    "averaged, l2": {**AVERAGED, "training.l2": 1e-3},
    "averaged, slow": {**AVERAGED, "training.learning_rate": 0.002},
    "averaged, output dropout": {**AVERAGED, "model.output_dropout": 0.5},
    "noisy": NOISY,
    "noisy, metric": {**NOISY, "training.monitor": "metric"},
    "noisy, averaged": {**NOISY, "training.ema_decay": 0.99},
    "noisy, l2 .02": {**NOISY, "training.l2": 0.02},
    "noisy, no means": {**NOISY, "model.path_mean_size": 0},
    "noisy, no means, l2 .05": {**NOISY, "model.path_mean_size": 0, "training.l2": 0.05},
    "agree": AGREE,
    "agree, no means": {**AGREE, "model.path_mean_size": 0},
    "agree, no means, l2 .05": {**AGREE, "model.path_mean_size": 0, "training.l2": 0.05},
    "agree, two steps": {**AGREE, "model.num_steps": 2},
    "agree, four steps": {**AGREE, "model.num_steps": 4},
    "agree, labels": {**AGREE, "model.label_inputs": True, "model.label_dropout": 0.3},
    "agree, own": {**AGREE, "model.skip_connection": True, "model.output_norm": True},
    "broad, own": {**BROAD, "model.skip_connection": True, "model.output_norm": True},
    "broad, means": {**BROAD, "model.skip_connection": True, "model.output_norm": True, "model.path_mean_size": 256},
    "agree, no embeddings": {**AGREE, "model.node_embedding_size": 0},
}


def graphs(args: argparse.Namespace) -> Iterator[Loaded]:
    """Splits of graphs without their test nodes."""
    for graph in args.graphs:
        splits = args.splits.split(",") if (Path(graph) / "edges.parquet").is_file() else ()
        for name, dataset, config in loaded(named(graph, args.log.parent), args.data_dir, splits):
            kept = {split: rows for split, rows in dataset.splits.items() if split != "test"}
            yield Loaded(name, dataset.with_splits(kept), config)


def tried(dataset: Dataset, config: Config, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train some seeds, and tell what validation data says of them."""
    started, metric, seeds = perf_counter(), metric_of(dataset), range(args.seeds)
    try:
        settings = config.with_settings(CANDIDATES[name])
        first = make_model(dataset, settings, 0)
        models = [first, *(make_model(dataset, settings, seed, first) for seed in seeds[1:])]
        limit = Limit(seconds=args.max_seconds)
        runs = Runs(fit_models(models, dataset, settings, seeds, device=args.device, limit=limit))
        found: dict[str, Any] = {
            "valid": round(runs.mean(f"valid.{metric}"), 5),
            "std": round(runs.std(f"valid.{metric}"), 5),
            "valid_loss": round(runs.mean("valid.loss"), 5),
            "epochs": round(runs.mean("epochs"), 1),
            "best_epoch": round(runs.mean("best_epoch"), 1),
            "cut": any("cut" in run.metrics for run in runs),
        }
    except (GatasError, torch.OutOfMemoryError, RuntimeError) as error:
        found = {"failed": " ".join(str(error).split())[:300]}
    return {
        "data": dataset.name,
        "name": name,
        "settings": CANDIDATES[name],
        "seeds": args.seeds,
        **found,
        "seconds": round(perf_counter() - started, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(args.device)),
        "commit": commit(),
    }


def metric_of(dataset: Dataset) -> str:
    return "micro_f1" if dataset.task.startswith("multi-label") else "accuracy"


def table(lines: list[dict[str, Any]]) -> str:
    """Validation metrics in percent, a row for each set of settings."""
    data = list(dict.fromkeys(line["data"] for line in lines))
    cells = {(line["name"], line["data"]): line for line in lines}
    rows = ["| settings | " + " | ".join(data) + " |", "|---|" + "---|" * len(data)]
    for name in dict.fromkeys(line["name"] for line in lines):
        found = [cells.get((name, one), {}).get("valid") for one in data]
        rows.append(f"| {name} | " + " | ".join("" if one is None else f"{100 * one:.2f}" for one in found) + " |")
    return "\n".join(rows)


def read(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", default="split0,split1,split2,split20,split60")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="names of settings, with semicolons between")
    parser.add_argument("--max-seconds", type=float, help="for each seed")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    locks = args.log.parent / f"{args.log.stem}-locks"
    locks.mkdir(parents=True, exist_ok=True)
    for _, dataset, config in graphs(args):
        for name in args.only.split(";") if args.only else CANDIDATES:
            claim = f"{dataset.name}-{name}".replace(" ", "_")
            with FileLock(locks / claim) as lock:
                try:
                    lock.acquire()
                except BlockingIOError:
                    continue
                if any(line["data"] == dataset.name and line["name"] == name for line in read(args.log)):
                    continue
                line = tried(dataset, config or Config(data=NamedData(name=dataset.name)), name, args)
                with args.log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(line) + "\n")
                print(f"{dataset.name}, {name}: {line.get('valid', line.get('failed'))}, {line['seconds']} s", flush=True)
    print(table(read(args.log)))


if __name__ == "__main__":
    main()
