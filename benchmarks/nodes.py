"""Every contender on every graph and split: each tuned by as many trials, on validation data alone; then tables with ranks.

    python -m benchmarks.nodes GRAPH… [--splits 'split*'] [--models gatas,gcn,…] [--trials 20] [--seeds 1] --out results/nodes
    python -m benchmarks.nodes GRAPH… --out results/nodes --table

A graph is a YAML file, the name of a data set, or a folder with edges.parquet and nodes.parquet. There is one JSON for each
graph, split and contender, with all its seeds, and one with its trials; what is there is not run again. Several of these
processes may be started on one folder, to fill a GPU: each takes what no other is at, and `--table` shows what there is.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import yaml

from gatas.experiments.compare import FOLDER, chosen, render, run_model
from gatas.experiments.compare_ranks import Measured, over_graphs
from gatas.experiments.comparison_data import Loaded, loaded
from gatas.experiments.contenders import OURS, check_models
from gatas.experiments.results import ResultRecord, file_name, read_result
from gatas.files import FileLock
from gatas.training.limit import Limit

MODELS = (
    OURS, "label-propagation", "mlp", "mlp-norm", "gcn", "gcn-norm", "gat", "gat-norm", "sage", "sage-norm", "gcnii", "appnp",
    "grand", "nagphormer", "rgcn", "hgt",
)  # fmt: skip


def named(graph: str, out: Path) -> str:
    """What `loaded` takes: for a folder of tables a YAML file with the settings that there are by default."""
    folder = Path(graph)
    if not (folder / "edges.parquet").is_file():
        return graph
    path = out / "configs" / f"{folder.name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = {name: str((folder / f"{name}.parquet").absolute()) for name in ("edges", "nodes")}
    path.write_text(yaml.safe_dump({"data": {"label": "label", **tables}}), encoding="utf-8")
    return str(path)


def graphs(args: argparse.Namespace) -> Iterator[Loaded]:
    """Splits of graphs, one after another: not all of them need fit into memory."""
    for graph in args.graphs:
        yield from loaded(named(graph, args.out), args.data_dir, args.splits.split(",") if args.splits else ())


def run(args: argparse.Namespace) -> None:
    """Train what is missing and what no other process is at."""
    settings = {"trials": args.trials, "limit": Limit(args.epochs, args.max_seconds), "device": args.device}
    locks = args.out / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    for _, dataset, config in graphs(args):
        for model in chosen(args.models, dataset):
            with FileLock(locks / file_name(dataset.name, model)) as lock:
                try:
                    lock.acquire()
                except BlockingIOError:
                    continue
                found = run_model(model, dataset, range(args.seeds), args.out / FOLDER, config=config, **settings)
                print(f"{dataset.name} {model}: {found.error or f'{len(found.runs)} seeds'}", flush=True)


def tables(args: argparse.Namespace) -> str:
    """The table of each split, and the one over all graphs, of what there is."""
    results = [read_result(path) for path in sorted((args.out / FOLDER).glob("*.json"))]
    measured, found = Measured(), []
    for graph, dataset, _ in graphs(args):
        own: dict[str, ResultRecord] = {one.model: one for one in results if one.data == dataset.name}
        own = {model: own[model] for model in args.models if model in own}
        found.append(render(dataset, own))
        measured.add(graph, dataset, own)
    return "\n".join([over_graphs(measured), *found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--splits", default="")
    parser.add_argument("--models", type=lambda text: text.split(","), help="by commas; by default all that are for a graph")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--max-seconds", type=float)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--table", action="store_true", help="run nothing, show what there is")
    args = parser.parse_args()
    if args.models and not args.table:
        check_models(args.models, [one.dataset for one in graphs(args)])
    args.models = args.models or list(MODELS)
    if not args.table:
        run(args)
    print(tables(args))


if __name__ == "__main__":
    main()
