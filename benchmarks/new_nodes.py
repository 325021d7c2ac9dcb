"""What stands in for the embeddings that new nodes could not learn: the neighbours' mean, or zeros?

Some nodes are taken out of the graph before training and brought back as new ones. Asked for are the classes of these nodes, or
links that they are part of, of validation data. Beside it: a model that was trained with them in its graph.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score

from benchmarks.report import Report
from gatas import Dataset, Graph, NodeTargets, Pairs, Predictor, fit_many, load_dataset
from gatas.experiments.recipes import recipe

RULES = ("mean", "zeros")
SHARE = 0.1
"""Of the people of kinship; of Cora half the validation nodes."""

NOTES = """Mean ± standard deviation of {seeds} seeds, validation data only. Taken out of Cora: half the validation nodes; of
kinship: {share:.0%} of the people, with every pair that they are in. `trained on them`: the same nodes or pairs asked of a
model whose graph had them in training. Where learned embeddings are near zero, as λ makes them, the rules cannot differ, and
the data says nothing about which is better; where the differences have both signs, so few seeds do not tell either."""


@dataclass(frozen=True)
class Held:
    """A data set without some nodes, and what brings these back."""

    dataset: Dataset
    features: Any
    edges: list[Any]
    ids: list[Any]


def hold_out(dataset: Dataset, out: Any, splits: dict[str, Any]) -> Held:
    """Take nodes out; they keep their ids, and the others have other indices."""
    graph, ids = dataset.graph, [str(dataset.graph.id_of(node)) for node in range(dataset.graph.num_nodes)]
    kept = np.setdiff1d(np.arange(graph.num_nodes), out)
    place = np.full(graph.num_nodes, -1)
    place[kept] = np.arange(len(kept))
    source, target, kind = graph.source, graph.neighbour, graph.edge_type
    inside = (place[source] >= 0) & (place[target] >= 0)
    rest = Graph.from_edges(
        place[source[inside]],
        place[target[inside]],
        kind[inside],
        num_nodes=len(kept),
        node_ids=[ids[node] for node in kept],
        edge_type_names=graph.edge_type_names,
        inverse_of=graph.inverse_of,
    )
    edges = [
        [ids[node] for node in source[~inside]],
        [graph.edge_type_names[number] for number in kind[~inside]],
        [ids[node] for node in target[~inside]],
    ]
    features = None if dataset.features is None else sparse.csr_array(dataset.features).toarray()
    own = None if features is None else features[kept]
    renumbered = {name: renumber(split, place) for name, split in splits.items()}
    if isinstance(dataset.targets, NodeTargets):
        labels = dataset.targets.labels[kept]
        small = Dataset.for_nodes(rest, labels, renumbered, class_names=dataset.names, features=own, name=dataset.name)
    else:
        small = Dataset.for_links(rest, renumbered, dataset.names, features=own, name=dataset.name)
    return Held(small, None if features is None else features[out], edges, [ids[node] for node in out])


def renumber(split: Any, place: Any) -> Any:
    """Nodes, or pairs of nodes, that are still there."""
    if not isinstance(split, Pairs):
        return place[split][place[split] >= 0]
    there = (place[split.source] >= 0) & (place[split.target] >= 0)
    return Pairs(place[split.source[there]], split.edge_type[there], place[split.target[there]], split.label[there])


def train(dataset: Dataset, epochs: int | None, seed: int) -> Predictor:
    config = recipe(dataset.name)
    if epochs is not None:
        config = config.with_settings({"training.epochs": min(epochs, config.training.epochs)})
    return fit_many(config, [seed], dataset=dataset, device="cpu")[0].predictor


def classes(dataset: Dataset, seed: int, epochs: int | None) -> dict[str, float]:
    """Accuracy on half the validation nodes; the others say when to stop."""
    valid = np.random.default_rng(seed).permutation(dataset.splits["valid"])
    out, others = np.sort(valid[: len(valid) // 2]), valid[len(valid) // 2 :]
    splits = {"train": dataset.splits["train"], "valid": others}
    truth = [dataset.names[label] for label in dataset.node_targets.labels[out]]

    def accuracy(asked: Predictor, ids: Any) -> float:
        return float(np.mean([found == own for found, own in zip(asked.predict(ids).labels, truth, strict=True)]))

    held = hold_out(dataset, out, splits)
    trained = train(held.dataset, epochs, seed)
    found = {rule: accuracy(brought_back(trained, held, rule), held.ids) for rule in RULES}
    whole = dataset.with_splits(splits)
    return {**found, "trained on": accuracy(train(whole, epochs, seed), out), "rms": size_of_embeddings(trained)}


def links(dataset: Dataset, seed: int, epochs: int | None) -> dict[str, float]:
    """ROC-AUC, mean over types, on validation pairs with a person that was taken out; the other pairs say when to stop."""
    count = dataset.graph.num_nodes
    out = np.sort(np.random.default_rng(seed).choice(count, int(SHARE * count), replace=False))
    valid = dataset.splits["valid"]
    concerned = np.isin(valid.source, out) | np.isin(valid.target, out)
    splits = {"train": dataset.splits["train"], "valid": taken(valid, ~concerned)}
    pairs = taken(valid, concerned)
    ends = [[str(dataset.graph.id_of(node)) for node in column] for column in (pairs.source, pairs.target)]
    types = [dataset.names[kind] for kind in pairs.edge_type]

    def roc_auc(asked: Predictor) -> float:
        chances = asked.predict_links(ends[0], types, ends[1])
        kinds = [pairs.edge_type == kind for kind in np.unique(pairs.edge_type)]
        return float(np.mean([roc_auc_score(pairs.label[kind], chances[kind]) for kind in kinds]))

    held = hold_out(dataset, out, splits)
    trained = train(held.dataset, epochs, seed)
    found = {rule: roc_auc(brought_back(trained, held, rule)) for rule in RULES}
    whole = dataset.with_splits(splits)
    return {**found, "trained on": roc_auc(train(whole, epochs, seed)), "rms": size_of_embeddings(trained)}


def size_of_embeddings(trained: Predictor) -> float:
    """Root mean square: where it is near zero, it makes no difference what stands in for them."""
    embeddings = trained.model.encoder.inputs.embeddings
    return 0.0 if embeddings is None else float(embeddings.weight.detach().square().mean().sqrt())


def brought_back(trained: Predictor, held: Held, rule: Any) -> Predictor:
    return trained.with_new_nodes(held.features, held.edges, ids=held.ids, embeddings=rule)


def taken(pairs: Pairs, chosen: Any) -> Pairs:
    return Pairs(pairs.source[chosen], pairs.edge_type[chosen], pairs.target[chosen], pairs.label[chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="at most, in place of the recipes'")
    parser.add_argument("--data", nargs="+", default=["cora", "kinship"])
    arguments = parser.parse_args()
    report = Report("new-nodes", "What stands in for the embeddings that new nodes could not learn?", ["torch", "numpy"])
    rows = []
    for name in arguments.data:
        dataset = load_dataset(name)
        measure = links if dataset.task == "link prediction" else classes
        found = [measure(dataset, seed, arguments.epochs) for seed in range(arguments.seeds)]
        metric = "ROC-AUC" if measure is links else "accuracy"
        columns = {key: [one[key] for one in found] for key in found[0]}
        cells = [f"{np.mean(columns[key]):.4f} ± {np.std(columns[key], ddof=1):.4f}" for key in (*RULES, "trained on")]
        apart = ", ".join(f"{mean - zeros:+.4f}" for mean, zeros in zip(columns["mean"], columns["zeros"], strict=True))
        rows.append([name, metric, *cells, apart, f"{np.mean(columns['rms']):.1e}"])
    header = ["data", "metric", "neighbours' mean", "zeros", "trained on them", "mean − zeros, each seed", "embeddings, rms"]
    report.table(header, rows)
    for line in NOTES.format(seeds=arguments.seeds, share=SHARE).splitlines():
        report.add(line)
    report.write()


if __name__ == "__main__":
    main()
