"""Is a second layer of attention, over representations of the first, worth its seconds? On validation data.

    python -m benchmarks.two_layers GRAPH… [--splits split0] [--seeds 2] [--max-seconds 240] --log results/two-layers.jsonl

A graph is the name of a data set, or a folder with edges.parquet and nodes.parquet. One layer over three or two steps, and two
layers over one step each, or two and one, are trained by the same loop, which is a plain one of PyTorch: `gatas.Encoder` and
`gatas.NeighbourSampler` are its layers. The first of two represents all nodes in every step. Test splits are taken away before
anything is trained.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.nodes import named
from gatas import Encoder, NeighbourSampler, Transitions
from gatas.datasets import Dataset
from gatas.experiments.comparison_data import loaded
from gatas.experiments.recording import commit, hardware
from gatas.tasks.recommended import FEW_LABELS

LAYERS = ((3,), (2,), (1, 1), (2, 1))
"""Steps of each layer, the last one last."""
WIDTH, HEADS, SAMPLE_SIZE = 64, 4, 50
PATIENCE, EPOCHS, BATCH_SIZE = 40, 400, 1000
SETTINGS: dict[bool, dict[str, Any]] = {
    True: {"input_noise": 0.8, "dropout": 0.3},
    False: {"input_noise": 0.5, "dropout": 0.1, "skip_connection": True, "output_norm": True},
}
"""Where labels are few, and where they are many; λ is 0.01 where they are few."""


class Layers(nn.Module):
    """One encoder over another, and a linear head."""

    def __init__(
        self, tables: Sequence[tuple[int, Transitions]], dataset: Dataset, settings: dict[str, Any], seed: int
    ) -> None:
        super().__init__()
        size, self.num_nodes = dataset.nodes.num_features, dataset.graph.num_nodes
        self.encoders, self.samplers = nn.ModuleList(), nn.ModuleList()
        for number, (steps, table) in enumerate(tables):
            own = settings if not number else {**settings, "input_noise": 0.0}
            sizes: dict[str, Any] = {"hidden_size": WIDTH, "head_size": WIDTH // HEADS, "num_heads": HEADS, "num_steps": steps}
            self.encoders.append(Encoder(size, dataset.graph.num_relations, **sizes, **own, seed=2 * seed + number))
            self.samplers.append(NeighbourSampler(table, sample_size=SAMPLE_SIZE))
            size = WIDTH * (2 if settings.get("skip_connection") else 1)
        self.head = nn.Linear(size, len(dataset.names))

    def forward(self, target: Tensor, features: Tensor) -> Tensor:
        for number, (encoder, sampler) in enumerate(zip(self.encoders, self.samplers, strict=True)):
            asked = target if number == len(self.encoders) - 1 else torch.arange(self.num_nodes)
            features = encoder(asked, sampler(asked), features)
        logits: Tensor = self.head(features)
        return logits


def trained(model: Layers, dataset: Dataset, l2: float, seconds: float) -> tuple[float, int, bool]:
    """The accuracy on validation nodes of the best epoch, how many epochs there were, and whether the limit ended them."""
    raw = dataset.features
    features = torch.from_numpy(np.asarray(raw if isinstance(raw, np.ndarray) else raw.toarray())).float()  # type: ignore[union-attr]
    labels = torch.from_numpy(np.asarray(dataset.node_targets.labels)).long()
    train, valid = (torch.from_numpy(np.asarray(dataset.splits[split])).long() for split in ("train", "valid"))
    optimiser, started = torch.optim.NAdam(model.parameters(), lr=0.005), perf_counter()
    weights = [weight for name, weight in model.named_parameters() if "depth" not in name]
    best, best_score, since, epoch = 0.0, (-1.0,), 0, 0
    while since < PATIENCE and epoch < EPOCHS and perf_counter() - started < seconds:
        model.train()
        for part in torch.randperm(len(train)).split(BATCH_SIZE):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(train[part], features), labels[train[part]])
            (loss + l2 / 2 * torch.stack([weight.square().sum() for weight in weights]).sum()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimiser.step()
        model.eval()
        with torch.no_grad():
            logits = model(valid, features)
        accuracy = float((logits.argmax(1) == labels[valid]).float().mean())
        score = (-float(F.cross_entropy(logits, labels[valid])),) if l2 else (accuracy,)  # few labels: by the loss
        since, epoch = since + 1, epoch + 1
        if epoch == 1 or score > best_score:
            best, best_score, since = accuracy, score, 0
    return best, epoch, since < PATIENCE and epoch < EPOCHS


def lines(dataset: Dataset, name: str, args: argparse.Namespace) -> None:
    """Train what the log does not have, and write it there."""
    few = len(dataset.splits["train"]) < FEW_LABELS * dataset.graph.num_nodes
    for steps in LAYERS:
        known = [json.loads(line) for line in args.log.read_text().splitlines()] if args.log.exists() else []
        if any((line["data"], tuple(line["steps"])) == (name, steps) for line in known):
            continue
        tables, started, found = [(one, Transitions.build(dataset.graph, num_steps=one)) for one in steps], perf_counter(), []
        for seed in range(args.seeds):
            torch.manual_seed(seed)
            found.append(trained(Layers(tables, dataset, SETTINGS[few], seed), dataset, 0.01 * few, args.max_seconds))
        line = {
            "data": name,
            "steps": steps,
            "valid": [round(accuracy, 5) for accuracy, _, _ in found],
            "epochs": [epochs for _, epochs, _ in found],
            "cut": [cut for _, _, cut in found],
            "seconds": round(perf_counter() - started, 1),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "hardware": hardware(torch.device("cpu")),
            "commit": commit(),
        }
        with args.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        print(f"{name}, layers of {' and '.join(map(str, steps))} steps: {line['valid']}, {line['seconds']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", default="split0")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--max-seconds", type=float, default=240, help="for each seed")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for graph in args.graphs:
            splits = args.splits.split(",") if (Path(graph) / "edges.parquet").is_file() else ()
            for _, dataset, _ in loaded(named(graph, Path(folder)), args.data_dir, splits):
                kept = {split: rows for split, rows in dataset.splits.items() if split != "test"}
                lines(dataset.with_splits(kept), dataset.name, args)


if __name__ == "__main__":
    main()
