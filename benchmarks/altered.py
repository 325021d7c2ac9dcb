"""Do settings that follow from the data suit graphs that are altered in one respect? On validation data.

    python -m benchmarks.altered GRAPH… --change 'few 8' [--splits split0] [--seeds 2] [--settings '' 'model.input_noise=0.8' …]
        [--peers mlp] --log results/choose-altered.jsonl

A graph is a YAML file, the name of a data set, or a folder with edges.parquet and nodes.parquet. Test splits are taken away
before anything else. What may be changed, with a number:

- `few N`: only N training nodes of each class keep their label. The others are a held-out split: nothing is chosen by them.
- `dense N`: features are projected to N numbers (truncated SVD) and standardised, as embeddings of texts or images are.
- `nearest N`: each node has edges of a further type to the N nodes whose features are the most similar.
- `rewired 0`: both ends of every edge are other nodes, at random, so that neighbours say nothing.
- `partly N`: so it is with N percent of the edges.
- `weak N`: rewired, four edges a node, five classes (by the rest of the number), and of at most 932 features N a node, each 1.
- `as it is 0`: nothing.

Every line of the log is one set of settings, over those that follow from the altered data, or one peer. What the log has is not
run again.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors

from benchmarks.choose import metric_of, read
from benchmarks.nodes import named
from gatas import Graph
from gatas.datasets import Dataset
from gatas.experiments.comparison_data import loaded
from gatas.experiments.contenders import contender
from gatas.experiments.recording import commit, hardware
from gatas.tasks.config import checked
from gatas.training.config import Config, NamedData
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, fit_models, make_model
from gatas.training.run import Runs, TrainedRun


def sparse_features(dataset: Dataset) -> Any:
    return sparse.csr_array(dataset.features) if isinstance(dataset.features, np.ndarray) else dataset.features


def few(dataset: Dataset, count: int) -> Dataset:
    labels = np.asarray(dataset.node_targets.labels)
    train = np.random.default_rng(0).permutation(np.asarray(dataset.splits["train"]))
    kept = np.concatenate([train[labels[train] == label][:count] for label in range(len(dataset.names))])
    return dataset.with_splits({**dataset.splits, "train": np.sort(kept), "test": np.setdiff1d(train, kept)})


def dense(dataset: Dataset, size: int) -> Dataset:
    found = TruncatedSVD(size, random_state=0).fit_transform(sparse_features(dataset))
    found = ((found - found.mean(0)) / (found.std(0) + 1e-6)).astype(np.float32)
    return replace(dataset, nodes=replace(dataset.nodes, features=found))


def nearest(dataset: Dataset, count: int) -> Dataset:
    graph, features = dataset.graph, sparse_features(dataset)
    near = NearestNeighbors(n_neighbors=count + 1, metric="cosine").fit(features).kneighbors(return_distance=False)[:, :count]
    node, near = np.repeat(np.arange(graph.num_nodes), count), near.ravel()
    further = np.full(2 * len(node), graph.num_edge_types)
    linked = Graph.from_edges(
        np.concatenate([graph.source, node, near]),
        np.concatenate([graph.neighbour, near, node]),
        np.concatenate([graph.edge_type.astype(np.int64), further]),
        num_nodes=graph.num_nodes,
        num_edge_types=graph.num_edge_types + 1,
    )
    return replace(dataset, graph=linked)


def rewired(dataset: Dataset, _: int) -> Dataset:
    return partly(dataset, 100)


def partly(dataset: Dataset, percent: int) -> Dataset:
    graph, generator = dataset.graph, np.random.default_rng(0)
    other = generator.permutation(graph.num_nodes)
    moved = by_pair(graph, generator.random) < percent / 100
    source, neighbour = (np.where(moved, other[end], end) for end in (graph.source, graph.neighbour))
    return replace(dataset, graph=like(graph, source, neighbour, graph.edge_type))


def by_pair(graph: Graph, draw: Callable[[int], Any]) -> Any:
    """What is drawn for every edge, alike for those between the same two nodes."""
    low, high = np.minimum(graph.source, graph.neighbour), np.maximum(graph.source, graph.neighbour)
    pairs, which = np.unique(low.astype(np.int64) * graph.num_nodes + high, return_inverse=True)
    return draw(len(pairs))[which]


def like(graph: Graph, source: Any, neighbour: Any, kind: Any) -> Graph:
    """Other edges of the same types."""
    return Graph.from_edges(
        source,
        neighbour,
        kind,
        num_nodes=graph.num_nodes,
        num_edge_types=graph.num_edge_types,
        inverse_of=graph.inverse_of,
    )


def weak(dataset: Dataset, count: int) -> Dataset:
    graph, generator = rewired(dataset, 0).graph, np.random.default_rng(1)
    order = by_pair(graph, generator.permutation)
    kept = order < np.sort(order)[min(8 * graph.num_nodes, len(order)) - 1] + 1
    features = sparse.coo_array(sparse_features(dataset)).tocsc()
    columns = np.sort(generator.permutation(features.shape[1])[:932])
    filled = features[:, columns].tocoo()
    place = generator.permutation(len(filled.row))  # of a node's filled features, the first `count` in this order
    rows, cols = filled.row[place], filled.col[place]
    by_node = np.argsort(rows, kind="stable")
    rows, cols = rows[by_node], cols[by_node]
    first = np.arange(len(rows)) - np.searchsorted(rows, rows) < count
    values = np.zeros((graph.num_nodes, len(columns)), np.float32)
    values[rows[first], cols[first]] = 1
    targets, labels = dataset.node_targets, np.asarray(dataset.node_targets.labels)
    return replace(
        dataset,
        graph=like(graph, graph.source[kept], graph.neighbour[kept], graph.edge_type[kept]),
        nodes=replace(dataset.nodes, features=values),
        targets=replace(targets, labels=np.where(labels < 0, labels, labels % 5), class_names=targets.names[:5]),
    )


CHANGES: dict[str, Callable[[Dataset, int], Dataset]] = {
    "few": few, "dense": dense, "nearest": nearest, "rewired": rewired, "partly": partly, "weak": weak,
    "as it is": lambda dataset, _: dataset,
}  # fmt: skip


def altered(dataset: Dataset, change: str) -> Dataset:
    """A data set without its test split, changed."""
    kept = dataset.with_splits({split: rows for split, rows in dataset.splits.items() if split != "test"})
    what, _, number = change.rpartition(" ")
    return CHANGES[what](kept, int(number))


def parsed(settings: str) -> dict[str, Any]:
    return {name: json.loads(value) for name, value in (part.split("=") for part in settings.split(",") if part)}


def trained(dataset: Dataset, asked: str, args: argparse.Namespace) -> Runs[TrainedRun]:
    """The runs of a peer, or of settings over those that follow from the data."""
    limit, device, runs = Limit(seconds=args.max_seconds), str(chosen_device(args.device)), list[TrainedRun]()
    config = checked(Config, {"data": NamedData(name=dataset.name)}).for_data(dataset)
    for seed in range(args.seeds):
        if asked in args.peers:
            torch.manual_seed(seed)  # peers draw dropout by torch's own generator
            runs += contender(asked, dataset).fit([seed], device, limit)
        else:
            given = config.with_settings(parsed(asked))
            runs += fit_models([make_model(dataset, given, seed)], dataset, given, [seed], device=device, limit=limit)
    return Runs(runs)


def named_in_log(asked: str, args: argparse.Namespace) -> dict[str, Any]:
    """What tells one line of a data set's from another."""
    peer = asked if asked in args.peers else ""
    return {"change": args.change, "peer": peer, "settings": {} if peer else parsed(asked)}


def line_of(dataset: Dataset, asked: str, args: argparse.Namespace) -> dict[str, Any]:
    started, metric = perf_counter(), metric_of(dataset)
    runs = trained(dataset, asked, args)
    held = {"held_out": round(runs.mean(f"test.{metric}"), 5)} if "test" in dataset.splits else {}
    return {
        **named_in_log(asked, args),
        "seeds": args.seeds,
        "valid": round(runs.mean(f"valid.{metric}"), 5),
        **held,
        "epochs": round(runs.mean("epochs"), 1),
        "cut": any("cut" in run.metrics for run in runs),
        "seconds": round(perf_counter() - started, 1),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "hardware": hardware(chosen_device(args.device)),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--change", required=True)
    parser.add_argument("--splits", default="split0")
    parser.add_argument("--settings", nargs="*", default=[""], help="each as section.key=value, with commas between")
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--max-seconds", type=float, help="for each seed")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for graph in args.graphs:
            splits = args.splits.split(",") if (Path(graph) / "edges.parquet").is_file() else ()
            for _, whole, _ in loaded(named(graph, Path(folder)), args.data_dir, splits):
                run(whole, args)


def run(whole: Dataset, args: argparse.Namespace) -> None:
    """Try all settings and peers on one split of a graph."""
    dataset = altered(whole, args.change)
    for asked in [*args.settings, *args.peers]:
        wanted = {"data": whole.name, **named_in_log(asked, args)}
        if any(wanted.items() <= line.items() for line in read(args.log)):
            continue
        line = {"data": whole.name, **line_of(dataset, asked, args)}
        with args.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        print(f"{whole.name}, {args.change}, {asked or 'as chosen'}: {line['valid']}, {line['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
