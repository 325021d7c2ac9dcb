"""How long does training take: an epoch of PPI, 100 seeds of Cora, to a given micro-F1; PyG's GAT beside it?

    python -m benchmarks.training [--data-dir FOLDER] [--device cuda] [--only epochs,seeds,race]

On a CPU: one seed of Cora to its early stop, beside PyG's GAT.
"""

import argparse
import statistics
from time import perf_counter
from typing import Any

from benchmarks.gat import train_cora, train_ppi
from benchmarks.report import Report
from gatas import Config, Dataset, fit_many, load_dataset
from gatas.experiments.recipes import recipe

GOALS = (0.95, 0.97, 0.98, 0.985, 0.99)


def epochs(report: Report, dataset: Dataset) -> None:
    """PPI at the paper's settings, and with larger batches."""
    rows = []
    for batch_size in (100, 500):
        config = recipe("ppi").with_settings({"training.batch_size": batch_size, "training.epochs": 8})
        entries = trained(config, dataset, [0])
        seconds = [entry["seconds"] for entry in entries[1:]]
        training = [entry["training_seconds"] for entry in entries[1:]]
        rows.append([batch_size, f"{statistics.median(training):.3f}", f"{statistics.median(seconds):.3f}"])
    report.table(["batch size", "an epoch of training, s", "with evaluation, s"], rows)
    report.add("PPI (rebuilt labels), S=500, the paper's sizes; medians of seven epochs after the first.")


def seeds(report: Report, dataset: Dataset) -> None:
    started = perf_counter()
    runs = fit_many(recipe("cora"), range(100), dataset=dataset, device="cuda")
    accuracy = f"{100 * runs.mean('test.accuracy'):.2f} ± {100 * runs.std('test.accuracy'):.2f}"
    report.add(
        f"\n100 seeds of Cora, the paper's settings, in one program: **{perf_counter() - started:.1f} s** in all ({accuracy})."
    )


def race(report: Report, dataset: Dataset) -> None:
    """Seconds to validation micro-F1, evaluation after every epoch included, for ours and PyG's GAT."""
    reached: dict[str, dict[float, float]] = {"ours": {}, "PyG's GAT": {}}
    best = {"ours": 0.0, "PyG's GAT": 0.0}
    clock = {"ours": 0.0}

    def note(who: str, seconds: float, score: float) -> bool:
        best[who] = max(best[who], score)
        for goal in GOALS:
            if score >= goal:
                reached[who].setdefault(goal, seconds)
        return GOALS[-1] in reached[who]

    def ours(entry: dict[str, Any]) -> None:
        clock["ours"] += entry["seconds"]
        note("ours", clock["ours"], entry["valid_micro_f1"][0])

    config = recipe("ppi-default")
    for timed in (False, True):  # once to compile
        fit_many(
            config if timed else config.with_settings({"training.epochs": 1}), [0], dataset=dataset, device="cuda",
            report=ours if timed else None,
        )  # fmt: skip
    train_ppi(dataset, "cuda", lambda epoch, seconds, score: epoch > 0)  # warm
    train_ppi(dataset, "cuda", lambda epoch, seconds, score: note("PyG's GAT", seconds, score) or epoch >= 299)
    rows = [
        [who, *(f"{times[g]:.1f}" if g in times else "–" for g in GOALS), f"{best[who]:.4f}"] for who, times in reached.items()
    ]
    report.table(["seconds to validation micro-F1", *map(str, GOALS), "best"], rows)
    report.add("PPI (rebuilt labels), compiled before. Ours: the recipe ppi-default.")
    report.add("PyG's GAT: its example, two graphs a batch, 300 epochs at most.")


def trained(config: Config, dataset: Dataset, seeds: list[int]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    fit_many(config, seeds, dataset=dataset, device="cuda", report=entries.append)
    return entries


def on_cpu(report: Report, dataset: Dataset) -> None:
    rows = []
    for _ in range(2):  # the first compiles
        started, entries = perf_counter(), list[dict[str, Any]]()
        runs = fit_many(recipe("cora"), [0], dataset=dataset, device="cpu", report=entries.append)
        ours = [perf_counter() - started, len(entries), runs[0].metrics["test"]["accuracy"]]
    train_cora(dataset)
    for name, (seconds, count, accuracy) in (("ours", ours), ("PyG's GAT", train_cora(dataset))):
        rows.append([name, f"{seconds:.1f}", count, f"{1e3 * seconds / count:.0f}", f"{100 * accuracy:.1f} %"])
    report.table(["Cora, seed 0", "seconds to early stop", "epochs", "ms per epoch", "test accuracy"], rows)
    report.add("Both stop on validation accuracy with patience 100, and evaluate after every epoch.")


def main() -> None:
    arguments = parse()
    if arguments.device == "cpu":
        report = Report("training", "Training on the CPU, beside PyG's GAT", ("torch", "numba", "torch-geometric"))
        on_cpu(report, load_dataset("cora", arguments.data_dir))
    else:
        report = Report("training-gpu", "Training on a GPU, beside PyG's GAT", ("torch", "triton", "torch-geometric"))
        chosen = arguments.only.split(",")
        if "seeds" in chosen:
            seeds(report, load_dataset("cora", arguments.data_dir))
        dataset = load_dataset("ppi", arguments.data_dir)
        if "epochs" in chosen:
            epochs(report, dataset)
        if "race" in chosen:
            race(report, dataset)
    report.write()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="seeds,epochs,race")
    return parser.parse_args()


if __name__ == "__main__":
    main()
