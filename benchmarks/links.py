"""What the parts of a link's score and exact hiding are worth, on validation data, and what they cost.

    python -m benchmarks.links ablation DATA… [--only NAME;…] [--seeds 2] --log results/links-ablation.jsonl
    python -m benchmarks.links cost DATA… [--only NAME;…] [--epochs 3] [--device cuda]
    python -m benchmarks.links ranking DATA… [--device cuda]

DATA is a YAML file or the name of a data set. For the ablation test splits are taken away before anything is trained; what the
log has is not run again, and several of these processes may be started. Costs are seconds of an epoch once everything is
compiled, and seconds to rank the links of the test split, whose ranks are not looked at; `ranking` measures these alone, with
the weights that a training begins with.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.report import Report
from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.experiments.comparison_data import loaded
from gatas.experiments.ranked import with_ranking
from gatas.experiments.recipes import paper_settings
from gatas.experiments.recording import commit, hardware
from gatas.files import FileLock
from gatas.inference.run import Run
from gatas.tasks.config import checked
from gatas.training.config import Config, NamedData
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, fit_models, make_model
from gatas.training.run import TrainedRun

Settings = dict[str, Any]

VARIANTS: dict[str, Settings] = {
    "default": {},
    "vectors alone": {"model": {"link_score": ("vectors",)}},
    "neighbourhood alone": {"model": {"link_score": ("neighbourhood",)}},
    "paths alone": {"model": {"link_score": ("paths",)}},
    "vectors and paths": {"model": {"link_score": ("vectors", "paths")}},
    "all three": {"model": {"link_score": ("vectors", "neighbourhood", "paths")}},
    "neighbourhood alone, one slot hidden": {"model": {"link_score": ("neighbourhood",)}, "training": {"hidden_folds": 0}},
    "no walk comes back": {"model": {"revisits": False}},
    "DistMult": {"model": {"decoder": "distmult"}},
    "a matrix for each type": {"model": {"decoder": "bilinear"}},
    "the paper's head, one slot hidden": {"model": {"link_score": ("pair",)}},
    "the paper's head, hidden exactly": {"model": {"link_score": ("pair",)}, "training": {"hidden_folds": 10}},
}
"""Settings over the default of any links; the paper's head has defaults of its own. Typed paths need links hidden exactly."""
COSTED = ("default", "vectors alone", "all three", "the paper's head, one slot hidden", "the paper's head, hidden exactly")


def trained(dataset: Dataset, config: Config, seeds: range, device: str, limit: Limit) -> list[TrainedRun]:
    """One seed after another."""
    models = [make_model(dataset, config, seed) for seed in seeds]
    settings: Any = {"device": device, "limit": limit}
    return [fit_models([model], dataset, config, [seed], **settings)[0] for seed, model in zip(seeds, models, strict=True)]


def tried(dataset: Dataset, config: Config, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train some seeds, and tell what validation data says of them."""
    started, metric = perf_counter(), "ranking.mrr" if dataset.ranked else "roc_auc"
    try:
        limit = Limit(seconds=args.max_seconds)
        runs = trained(dataset, variant(config, name), range(args.seeds), args.device, limit)
        runs = with_ranking(runs, dataset, chosen_device(args.device))
        found = {
            "metric": metric,
            "valid": [round(read_metric(run.metrics["valid"], metric), 5) for run in runs],
            "epochs": [run.metrics["epochs"] for run in runs],
            "cut": [bool(run.metrics.get("cut")) for run in runs],
        }
    except (GatasError, torch.OutOfMemoryError) as error:
        found = {"failed": " ".join(str(error).split())[:300]}
    return {
        "data": dataset.name,
        "name": name,
        "settings": VARIANTS[name],
        **found,
        "seconds": round(perf_counter() - started, 1),
        "limit": args.max_seconds,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(args.device)),
        "commit": commit(),
    }


def read_metric(measured: dict[str, Any], name: str) -> float:
    for key in name.split("."):
        measured = measured[key]
    return float(measured)  # type: ignore[arg-type]


def ablation(args: argparse.Namespace) -> None:
    locks = args.log.parent / f"{args.log.stem}-locks"
    locks.mkdir(parents=True, exist_ok=True)
    for named in args.data:
        for _, dataset, config in loaded(named, args.data_dir):
            kept = dataset.with_splits({split: pairs for split, pairs in dataset.splits.items() if split != "test"})
            for name in args.only.split(";") if args.only else VARIANTS:
                with FileLock(locks / f"{dataset.name}-{name}".replace(" ", "_")) as lock:
                    try:
                        lock.acquire()
                    except BlockingIOError:
                        continue
                    lines = [json.loads(line) for line in args.log.read_text().splitlines()] if args.log.exists() else []
                    if any((line["data"], line["name"]) == (dataset.name, name) for line in lines):
                        continue
                    line = tried(kept, default_of(kept, config), name, args)
                    with args.log.open("a", encoding="utf-8") as log:
                        log.write(json.dumps(line) + "\n")
                    print(f"{dataset.name}, {name}: {line.get('valid', line.get('failed'))}, {line['seconds']} s", flush=True)


def variant(config: Config, name: str) -> Config:
    return checked(Config, {"data": config.data, **VARIANTS[name]})


def default_of(dataset: Dataset, config: Config | None) -> Config:
    return config or Config(data=NamedData(name=dataset.name))


def cost(args: argparse.Namespace) -> None:
    """Write a report of seconds by epoch, and of seconds to rank."""
    where = chosen_device(args.device)
    on_gpu = where.type == "cuda"
    report = Report("links-gpu" if on_gpu else "links", "What do exact hiding and evidence cost?", ("torch", "numba", "numpy"))
    for named in args.data:
        for _, dataset, config in loaded(named, args.data_dir):
            default, rows = default_of(dataset, config), []
            paper = checked(Config, {"data": default.data, **paper_settings(dataset.task)})
            configs = {"the paper's recipe": paper, **{name: variant(default, name) for name in COSTED}}
            for name in args.only.split(";") if args.only else configs:
                settings = configs[name]
                model = make_model(dataset, settings, 0)
                short = settings.with_settings({"training.epochs": args.epochs})
                (run,) = fit_models([model], dataset, short, [0], device=args.device)
                epoch, whole = (run.history[-1][column] for column in ("training_seconds", "seconds"))
                rows.append([name, f"{epoch:.2f}", f"{whole:.2f}"])
                if dataset.ranked and name == "default":
                    started = perf_counter()
                    Run.of(run).predictor.prepare().evaluate_ranking("test")
                    rows[-1].append(f"{len(dataset.splits['test'].source):,} pairs, {perf_counter() - started:.2f} s")
            report.add(f"\n## {dataset.name}: {dataset.graph}\n")
            report.table(
                ["settings", "s to train an epoch", "with validation", "test split ranked"], [[*r, ""][:4] for r in rows]
            )
    report.write(args.to)


def ranking(args: argparse.Namespace) -> None:
    """Write a report of seconds to rank the test split by the default, untrained, three times."""
    where = chosen_device(args.device)
    name = "ranking-gpu" if where.type == "cuda" else "ranking"
    report, rows = Report(name, "How long does it take to rank a test split?", ("torch", "numba", "numpy")), []
    for named in args.data:
        for _, dataset, config in loaded(named, args.data_dir):
            settings = default_of(dataset, config).for_data(dataset)
            run = Run(settings, 0, {}, [], make_model(dataset, settings, 0).to(where), dataset)
            times = []
            for _ in range(3):
                predictor, started = run.predictor.prepare(), perf_counter()
                predictor.evaluate_ranking("test")
                times.append(f"{perf_counter() - started:.2f}")
            links = int((dataset.splits["test"].label == 1).sum())
            rows.append([dataset.name, f"{dataset.graph.num_nodes:,}", f"{links:,}", torch.get_num_threads(), *times])
    report.table(["data", "nodes", "test links, each at both ends", "threads", "first, s", "again, s", "again, s"], rows)
    report.write(args.to)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ablation", "cost", "ranking"))
    parser.add_argument("data", nargs="+")
    parser.add_argument("--only", help="names of settings, with semicolons between")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3, help="of which the last is the cost")
    parser.add_argument("--max-seconds", type=float, help="for each seed")
    parser.add_argument("--log", type=Path, default=Path("results/links-ablation.jsonl"))
    parser.add_argument("--to", type=Path, help="the report of costs; else a dated file beside this one")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    {"ablation": ablation, "cost": cost, "ranking": ranking}[args.what](args)


if __name__ == "__main__":
    main()
