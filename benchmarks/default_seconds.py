"""How long do settings that follow from the data train, beside the same for all data? On validation data.

    python -m benchmarks.default_seconds GRAPH… [--splits split0] [--seeds 3] [--data-dir FOLDER]

A graph is a YAML file, the name of a data set, or a folder with edges.parquet and nodes.parquet. Both learn until they stop
early, seed after seed in turn; seconds are of the epochs alone. Test splits are taken away before anything is trained.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.nodes import named
from benchmarks.report import Report
from gatas.datasets import Dataset
from gatas.experiments.comparison_data import loaded
from gatas.tasks.config import checked
from gatas.training.config import Config, NamedData
from gatas.training.loop import fit_models, make_model
from gatas.training.run import TrainedRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", default="split0")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--to", type=Path, help="the report; else a dated file beside this one")
    args = parser.parse_args()
    report, rows = (
        Report("default-seconds", "How long do settings that follow from the data train?", ("torch", "numba", "numpy")),
        [],
    )
    with tempfile.TemporaryDirectory() as folder:
        for graph in args.graphs:
            splits = args.splits.split(",") if (Path(graph) / "edges.parquet").is_file() else ()
            for name, dataset, _ in loaded(named(graph, Path(folder)), args.data_dir, splits):
                kept = dataset.with_splits({split: nodes for split, nodes in dataset.splits.items() if split != "test"})
                rows.append(compared(name, kept, args))
                print(rows[-1], flush=True)
    columns = ["data", "nodes", "fixed, s", "from the data, s", "ratio"]
    columns += [f"{what}, {whose}" for what in ("epochs", "valid, %") for whose in ("fixed", "from the data")]
    report.table(columns, rows)
    report.write(args.to)


def compared(name: str, dataset: Dataset, args: argparse.Namespace) -> list[str]:
    """A row: medians of seconds over the seeds, means of epochs and of validation metrics."""
    data = NamedData(name=dataset.name)
    plain = checked(Config, {"data": data}).complete()  # all settings count as given: none is chosen for the data
    configs = (plain, checked(Config, {"data": data}).for_data(dataset))
    found: tuple[list[TrainedRun], list[TrainedRun]] = ([], [])
    for seed in range(args.seeds):
        for config, own in zip(configs, found, strict=True):
            own += fit_models([make_model(dataset, config, seed)], dataset, config, [seed], device=args.device)
    metric = "micro_f1" if dataset.task.startswith("multi-label") else "accuracy"
    medians = [statistics.median(sum(entry["seconds"] for entry in run.history) for run in own) for own in found]
    return [
        name,
        f"{dataset.graph.num_nodes:,}",
        *(f"{median:.1f}" for median in medians),
        f"{medians[1] / medians[0]:.2f}",
        *(f"{statistics.mean(run.metrics['epochs'] for run in own):.0f}" for own in found),
        *(f"{100 * statistics.mean(run.metrics['valid'][metric] for run in own):.1f}" for own in found),
    ]


if __name__ == "__main__":
    main()
