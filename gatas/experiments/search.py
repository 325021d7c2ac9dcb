"""The search for `default` recipes, on validation data: the test split is taken away before anything is trained.

    python -m gatas.experiments.search cora --seeds 10 [--only NAME,…] [--seconds 300]

Every line of the log is one set of settings over the paper's recipe. What the log has already is not run again.
"""

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from gatas.datasets import load_dataset
from gatas.experiments.recipes import recipe
from gatas.experiments.results import commit, hardware
from gatas.training.loop import chosen_device, fit_many

Settings = dict[str, Any]

AGREE: Settings = {"training.monitor": "loss", "training.consistency": 1.0, "training.epochs": 600, "training.patience": 60}
MILDER: Settings = {**AGREE, "model.input_noise": 0.8, "training.l2": 0.02}
FAR: Settings = {"model.num_steps": 5, "model.max_candidates": 500}
BROAD: Settings = {
    "training.batch_size": 500, "training.learning_rate": 0.003, "training.schedule": "cosine", "training.epochs": 120,
    "training.patience": 120, "model.hidden_size": 128, "model.hidden_sizes": (512, 512),
}  # fmt: skip

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
        "broader": {**BROAD, "model.hidden_size": 256, "model.hidden_sizes": (1024, 1024)},
        "broad, mlp": {**BROAD, "model.path_attention": "mlp"},
    },
}


def tried(data: str, name: str, settings: Settings, seeds: range, device: str, data_dir: str | None) -> dict[str, Any]:
    """Train some seeds, and tell what validation data says of them."""
    dataset = load_dataset(data, data_dir)
    dataset = replace(dataset, splits={split: rows for split, rows in dataset.splits.items() if split != "test"})
    started = perf_counter()
    runs = fit_many(recipe(data).with_settings(settings), seeds, dataset=dataset, device=device)
    metric = "micro_f1" if data == "ppi" else "accuracy"
    return {
        "data": data,
        "name": name,
        "settings": settings,
        "seeds": len(seeds),
        f"valid_{metric}": round(runs.mean(f"valid.{metric}"), 5),
        "std": round(runs.std(f"valid.{metric}"), 5),
        "valid_loss": round(runs.mean("valid.loss"), 5),
        "epochs": round(runs.mean("epochs"), 1),
        "depth": [round(q, 3) for q in runs[0].history[-1]["depth"]],
        "seconds": round(perf_counter() - started, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(device)),
        "commit": commit(),
    }


def main() -> None:
    arguments = parse()
    log, started = Path(arguments.log), perf_counter()
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    known = {(line["data"], line["name"], line["seeds"]) for line in map(json.loads, lines)}
    for data in arguments.data.split(","):
        for name, settings in CANDIDATES[data].items():
            wanted = not arguments.only or name in arguments.only.split(";")
            if not wanted or (data, name, arguments.seeds) in known or perf_counter() - started > arguments.seconds:
                continue
            line = tried(data, name, settings, range(arguments.seeds), arguments.device, arguments.data_dir)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help=f"one or more of {', '.join(CANDIDATES)}, with commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", help="names of settings, with semicolons")
    parser.add_argument("--log", default="results/search-default.jsonl")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-dir")
    return parser.parse_args()


if __name__ == "__main__":
    main()
