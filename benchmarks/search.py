"""The search for `default` recipes, on validation data: the test split is taken away before anything is trained.

    python -m benchmarks.search cora --seeds 10 --trials 40 [--only NAME;…] [--seconds 300]

Every line of the log is one set of settings over the paper's recipe: first those with a name, then `trials` drawn at random
from a space. What the log has already is not run again.
"""

import argparse
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from gatas.datasets import load_dataset
from gatas.errors import GatasError
from gatas.experiments.recipes import recipe
from gatas.experiments.recording import commit, hardware
from gatas.inference import fit_many
from gatas.training.loop import chosen_device
from gatas.training.run import Runs

Settings = dict[str, Any]

AGREE: Settings = {"training.monitor": "loss", "training.consistency": 1.0, "training.epochs": 600, "training.patience": 60}
MILDER: Settings = {**AGREE, "model.input_noise": 0.8, "training.l2": 0.02}
FAR: Settings = {"model.num_steps": 5, "model.max_candidates": 500}
FOUR_STEPS: Settings = {
    **AGREE, "model.num_steps": 4, "model.sample_size": 50, "model.input_noise": 0.8, "model.dropout": 0.3,
    "training.learning_rate": 0.005, "training.consistency": 1.5, "training.consistency_draws": 3,
    "training.consistency_nodes": 1000,
}  # fmt: skip
BROAD: Settings = {
    "training.batch_size": 500, "training.learning_rate": 0.003, "training.schedule": "cosine", "training.epochs": 120,
    "training.patience": 120, "model.hidden_size": 128, "model.hidden_sizes": (512, 512),
}  # fmt: skip
BROADER: Settings = {**BROAD, "model.hidden_size": 256, "model.hidden_sizes": (1024, 1024)}

PLANETOID: dict[str, Settings] = {
    "milder": MILDER,
    "milder, far": {**MILDER, **FAR},
    "milder, noise 0.7, l2 0.01": {**MILDER, "model.input_noise": 0.7, "training.l2": 0.01},
    "milder, four draws": {**MILDER, "training.consistency_draws": 4},
    "milder, weight 3": {**MILDER, "training.consistency": 3.0},
    "milder, 1500 nodes": {**MILDER, "training.consistency_nodes": 1500},
    "milder, temperature 0.3": {**MILDER, "training.temperature": 0.3},
    "milder, no embeddings": {**MILDER, "model.node_embedding_size": 0},
    "milder, rate 0.003": {**MILDER, "training.learning_rate": 0.003},
    "agree": AGREE,
    "four steps": FOUR_STEPS,
    "four steps, no embeddings": {**FOUR_STEPS, "model.node_embedding_size": 0},
    "four steps, l2 0.03": {**FOUR_STEPS, "training.l2": 0.03},
    "without transitions": {"model.ablation": "without_transitions"},
    "without transitions, each node once": {"model.ablation": "without_transitions", "model.transition_kind": "count"},
}
CANDIDATES: dict[str, dict[str, Settings]] = {
    "cora": PLANETOID,
    "citeseer": PLANETOID,
    "pubmed": PLANETOID,
    "ppi": {
        "broad": BROAD,
        "broad, dropout 0.1": {**BROAD, "model.dropout": 0.1},
        "broad, l2 1e-5": {**BROAD, "training.l2": 1e-5},
        "broad, 1000 neighbours": {**BROAD, "model.sample_size": 1000},
        "broad, heads of 64": {**BROAD, "model.neighbour_size": 64, "model.head_size": 64},
        "broader": BROADER,
        "broader, l2 1e-5": {**BROADER, "training.l2": 1e-5},
        "broader, l2 1e-5, 16 heads": {**BROADER, "training.l2": 1e-5, "model.num_heads": 16},
        "broad, mlp": {**BROAD, "model.path_attention": "mlp"},
    },
}

FEW_LABELS: dict[str, list[Any]] = {
    "model.input_noise": [0.6, 0.7, 0.8, 0.9],
    "model.dropout": [0.3, 0.5, 0.6, 0.7],
    "model.node_embedding_size": [0, 10],
    "model.num_steps": [2, 3, 4],
    "model.sample_size": [50, 100, 200],
    "model.num_heads": [4, 8],
    "model.transition_kind": ["walk", "count"],
    "training.l2": [0.01, 0.02, 0.03, 0.05],
    "training.learning_rate": [0.001, 0.002, 0.005],
    "training.consistency": [0.5, 1.0, 1.5],
    "training.consistency_draws": [2, 3],
    "training.consistency_nodes": [500, 1000],
    "training.temperature": [0.2, 0.3, 0.5, 0.7],
}
MANY_LABELS: dict[str, list[Any]] = {
    "training.learning_rate": [0.002, 0.003, 0.005],
    "training.l2": [0.0, 3e-6, 1e-5, 3e-5],
    "training.batch_size": [250, 500],
    "model.hidden_size": [128, 256],
    "model.hidden_sizes": [(512, 512), (1024, 512), (1024, 1024)],
    "model.num_heads": [8, 10, 16],
    "model.num_steps": [2, 3],
    "model.dropout": [0.0, 0.03],
}
SPACES = {"cora": FEW_LABELS, "citeseer": FEW_LABELS, "pubmed": FEW_LABELS, "ppi": MANY_LABELS}


def candidates(data: str, trials: int) -> dict[str, Settings]:
    """Those with a name, and so many more; the n-th trial is the same however many there are."""
    start = BROAD if data == "ppi" else AGREE
    drawn: dict[str, Settings] = {}
    for number in range(trials):
        chance = random.Random(f"{data} {number}")
        drawn[f"trial {number}"] = {**start, **{name: chance.choice(values) for name, values in SPACES[data].items()}}
    return {**CANDIDATES[data], **drawn}


def tried(data: str, name: str, settings: Settings, seeds: range, device: str, data_dir: str | None) -> dict[str, Any]:
    """Train some seeds, and tell what validation data says of them."""
    dataset = load_dataset(data, data_dir)
    dataset = dataset.with_splits({split: rows for split, rows in dataset.splits.items() if split != "test"})
    started = perf_counter()
    try:
        runs = fit_many(recipe(data).with_settings(settings), seeds, dataset=dataset, device=device)
        found = measured(runs, "micro_f1" if dataset.task.startswith("multi-label") else "accuracy")
    except (GatasError, torch.OutOfMemoryError) as error:
        found = {"failed": str(error)}
    return {
        "data": data,
        "name": name,
        "settings": settings,
        "seeds": len(seeds),
        **found,
        "seconds": round(perf_counter() - started, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(device)),
        "commit": commit(),
    }


def measured(runs: Runs[Any], metric: str) -> dict[str, Any]:
    return {
        f"valid_{metric}": round(runs.mean(f"valid.{metric}"), 5),
        "std": round(runs.std(f"valid.{metric}"), 5),
        "valid_loss": round(runs.mean("valid.loss"), 5),
        "epochs": round(runs.mean("epochs"), 1),
        "depth": [round(q, 3) for q in runs[0].history[-1]["depth"]],
    }


def main(given: list[str] | None = None) -> None:
    arguments = parse(given)
    log = Path(arguments.log)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    known = {(line["data"], line["name"], line["seeds"]) for line in map(json.loads, lines)}
    for data in arguments.data.split(","):
        started = perf_counter()
        for name, settings in candidates(data, arguments.trials).items():
            wanted = not arguments.only or name in arguments.only.split(";")
            if not wanted or (data, name, arguments.seeds) in known or perf_counter() - started > arguments.seconds:
                continue
            line = tried(data, name, settings, range(arguments.seeds), arguments.device, arguments.data_dir)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def parse(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help=f"one or more of {', '.join(CANDIDATES)}, with commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=0, help="how many settings are drawn from the space")
    parser.add_argument("--only", help="names of settings, with semicolons")
    parser.add_argument("--log", default="results/search-default.jsonl")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin nothing new after so long, for each data set"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-dir")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
