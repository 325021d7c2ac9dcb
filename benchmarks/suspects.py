"""What could make our figures differ from another program's: the paper's recipe with one thing changed, on validation data.

    python -m benchmarks.suspects citeseer --seeds 40 [--only NAME;…] --log results/suspects.jsonl
    python -m benchmarks.suspects --log results/suspects.jsonl --table

Every line of the log is one change, with the validation accuracy of each seed; seeds are the same for every change, so that
differences from the recipe are paired. The test split is taken away before anything is trained. What the log has already is not
run again.
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import nn

from gatas.datasets import load_dataset
from gatas.experiments.recipes import recipe
from gatas.experiments.recording import commit, hardware, versions
from gatas.nn.dropout import Dropout
from gatas.tasks import Model
from gatas.training.loop import chosen_device, fit_models, make_model

Line = dict[str, Any]
BASE = "the recipe"
KERAS_EPSILON = 1e-3


def silenced(*places: str) -> Callable[[Model], None]:
    """Nothing is dropped there."""

    def change(model: Model) -> None:
        for place in places:
            dropout = model.get_submodule(f"encoder.{place}")
            assert isinstance(dropout, Dropout)
            dropout.probability = 0.0

    return change


def keras_epsilon(model: Model) -> None:
    norm = model.get_submodule("encoder.inputs.norm")
    assert isinstance(norm, nn.LayerNorm)
    norm.eps = KERAS_EPSILON


def started_by_glorot(model: Model) -> None:
    """All dense layers start by Glorot's rule, with biases of 0; attention does so already."""
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and not name.startswith("encoder.neighbours"):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def attention_started(*, scores_small: bool, values_small: bool) -> Callable[[Model], None]:
    """Glorot's rule for three-dimensional weights, (in, out, heads): head by head, or as TensorFlow reads it, much smaller."""

    def limit(fan_in: int, width: int, heads: int, small: bool) -> float:
        return math.sqrt(6 / (fan_in * (width + heads) if small else fan_in + width))

    @torch.no_grad()
    def change(model: Model) -> None:
        attention: Any = model.get_submodule("encoder.neighbours")
        hidden = (attention.hidden_of_target, attention.hidden_of_neighbour)
        fan_in = sum(layer.in_features for layer in hidden)
        for layer in hidden:
            end = limit(fan_in, attention.hidden_size, attention.num_heads, scores_small)
            nn.init.uniform_(layer.weight, -end, end)
        end = limit(attention.value.in_features, attention.head_size, attention.num_heads, values_small)
        nn.init.uniform_(attention.value.weight, -end, end)

    return change


def without_output_bias(model: Model) -> None:
    output = model.get_submodule("head.output")
    assert isinstance(output, nn.Linear)
    output.register_parameter("bias", None)


CHANGES: dict[str, tuple[dict[str, Any], Callable[[Model], None]]] = {
    BASE: ({}, lambda model: None),
    "dropout of h′ too": ({"model.output_dropout": 0.5}, lambda model: None),
    "dropout of n and α alone": ({}, silenced("inputs.feature_dropout", "inputs.embedding_dropout")),
    "dropout of b, l and α alone": ({}, silenced("pair_dropout")),
    "dropout of β's scores too": ({"model.path_score_dropout": True}, lambda model: None),
    "LayerNorm with ε = 0.001": ({}, keras_epsilon),
    "Glorot, biases of 0": ({}, started_by_glorot),
    "g starts as large as Glorot": ({}, attention_started(scores_small=False, values_small=False)),
    "d starts small": ({}, attention_started(scores_small=True, values_small=True)),
    "Nadam, momentum held at 0.9": ({"training.momentum_decay": 1e6}, lambda model: None),
    "stopped on the loss": ({"training.monitor": "loss"}, lambda model: None),
    "stopped on either": ({"training.monitor": "either"}, lambda model: None),
    "two hidden layers of 256": ({"model.hidden_sizes": (256, 256)}, lambda model: None),
    "no bias of the output": ({}, without_output_bias),
    "q̃ under λ too": ({"model.l2_on_depth": True}, lambda model: None),
    "walks counted": ({"model.transition_kind": "count"}, lambda model: None),
}
"""Settings over the recipe, and what is done to a model before it is trained."""


def tried(data: str, name: str, args: argparse.Namespace) -> Line:
    """Train all seeds with one change, and tell what validation data says of each."""
    dataset = load_dataset(data, args.data_dir)
    dataset = dataset.with_splits({split: rows for split, rows in dataset.splits.items() if split != "test"})
    settings, change = CHANGES[name]
    config, seeds, models = recipe(data).with_settings(settings).for_data(dataset), range(args.seeds), list[Model]()
    for seed in seeds:
        models.append(make_model(dataset, config, seed, models[0] if models else None))
        torch.manual_seed(seed)
        change(models[-1])
    started = perf_counter()
    runs = fit_models(models, dataset, config, seeds, device=args.device)
    return {
        "data": data, "name": name, "settings": settings,
        "valid_accuracy": [round(run.metrics["valid"]["accuracy"], 5) for run in runs],
        "epochs": [run.metrics["epochs"] for run in runs],
        "seconds": round(perf_counter() - started, 1), "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(args.device)), "versions": versions(), "commit": commit(),
    }  # fmt: skip


def table(lines: Iterable[Line]) -> str:
    """Each change beside the recipe: the mean of its differences, seed by seed, with their standard error."""
    found = {(line["data"], line["name"]): line for line in lines}
    rows = ["| data | change | seeds | validation accuracy | difference ± its standard error |", "|---|---|---|---|---|"]
    for (data, name), line in found.items():
        scores, base = line["valid_accuracy"], found.get((data, BASE), line)["valid_accuracy"]
        pairs = [100 * (own - other) for own, other in zip(scores, base, strict=False)]
        spread = f"{100 * statistics.mean(scores):.2f} ± {100 * statistics.stdev(scores):.2f}"
        error = statistics.stdev(pairs) / math.sqrt(len(pairs))
        difference = "–" if name == BASE else f"{statistics.mean(pairs):+.2f} ± {error:.2f}"
        rows.append(f"| {data} | {name} | {len(scores)} | {spread} | {difference} |")
    return "\n".join(rows)


def logged(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="cora, citeseer or pubmed")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--only", type=lambda text: text.split(";"), default=list(CHANGES))
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", action="store_true", help="run nothing, show what there is")
    args = parser.parse_args()
    done = {(line["data"], line["name"]) for line in logged(args.log)}
    for data in () if args.table else args.data:
        for name in args.only:
            if (data, name) not in done:
                line = json.dumps(tried(data, name, args), ensure_ascii=False)
                with args.log.open("a", encoding="utf-8") as log:
                    log.write(line + "\n")
    print(table(logged(args.log)))


if __name__ == "__main__":
    main()
