"""`check_leaks`: held-out links that the graph gives away, and negatives that are links."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from gatas.datasets.targets import Pairs
from gatas.errors import GatasWarning, GraphError
from gatas.graph.counts import counted
from gatas.graph.inputs import Ints

if TYPE_CHECKING:
    from gatas.datasets.dataset import Dataset


def check_leaks(dataset: "Dataset", *, strict: bool = False, directed: bool = False) -> None:
    """Warn of held-out links that are edges of the graph and of negatives that are links, or refuse them (`strict`).

    A link's reverse gives it away too, unless (a, b) says nothing of (b, a) because links are `directed`.
    """
    found = []
    for name, pairs in dataset.link_targets.splits.items():
        counts = np.zeros(3, np.int64)
        for kind in np.unique(pairs.edge_type):
            counts += _leaks_of_type(dataset, name, kind, directed)
        leaked, reversed_links, wrong = counts.tolist()
        if leaked:
            what = "is an edge of the graph or a training link" if leaked == 1 else "are edges of the graph or training links"
            found.append(f"{counted(leaked, 'link')} of {name!r} {what}: this gives {'it' if leaked == 1 else 'them'} away")
        if reversed_links:
            what = "is" if reversed_links == 1 else "are"
            found.append(f"{counted(reversed_links, 'link')} of {name!r} {what} so in the other direction")
        if wrong:
            found.append(f"{counted(wrong, 'negative')} of {name!r} {'is a link' if wrong == 1 else 'are links'}")
    if found and strict:
        raise GraphError(f"{dataset.name}: {'; '.join(found)}. Remove them, or accept them by strict=False.")
    if found:
        warnings.warn(f"{dataset.name}: {'; '.join(found)}.", GatasWarning, stacklevel=3)


def _leaks_of_type(dataset: "Dataset", split: str, kind: int, directed: bool) -> Ints:
    """Count links of a type that are known, those known the other way round, and negatives that are links."""
    splits, num_nodes = dataset.link_targets.splits, dataset.graph.num_nodes
    links, negatives = (_numbered(splits[split], kind, label, num_nodes) for label in (1, 0))
    edges = _edges_of_type(dataset, kind)
    asked = [_numbered(pairs, kind, 1, num_nodes) for pairs in splits.values()]
    every = np.concatenate([edges, *asked])
    if edges.size and np.isin(_reversed(edges, num_nodes), edges).all():  # of a symmetric type, the reverse is the same link
        every = np.concatenate([every, _reversed(every, num_nodes)])
    leaked = turned = np.zeros(len(links), np.bool_)
    if split != "train":
        training = [_numbered(splits["train"], kind, 1, num_nodes)] if "train" in splits else []
        known = np.concatenate([edges, *training])
        leaked = np.isin(links, known)
        turned = np.isin(_reversed(links, num_nodes), known) & ~leaked & (not directed)
    return np.array([leaked.sum(), turned.sum(), np.isin(negatives, every).sum()])


def _reversed(numbers: Ints, num_nodes: int) -> Ints:
    """Turn numbered pairs around."""
    source, target = np.divmod(numbers, num_nodes)
    turned: Ints = target * num_nodes + source
    return turned


def _numbered(pairs: Pairs, kind: int, label: int, num_nodes: int) -> Ints:
    """Number the pairs of one type and label."""
    chosen = (pairs.edge_type == kind) & (pairs.label == label)
    numbers: Ints = pairs.source[chosen] * num_nodes + pairs.target[chosen]
    return numbers


def _edges_of_type(dataset: "Dataset", kind: int) -> Ints:
    """Number the graph's edges of a type that is asked for; there are none if the graph does not have the type."""
    graph, name = dataset.graph, dataset.names[kind]
    if name not in graph.edge_type_names:
        return np.empty(0, np.int64)
    chosen = graph.edge_type == graph.edge_type_names.index(name)
    numbers: Ints = graph.source[chosen].astype(np.int64) * graph.num_nodes + graph.neighbour[chosen]
    return numbers
