"""IndexedPairs held out of a graph: with them go their repeats and their reverses, which would give them away."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import Ratios
from gatas.datasets.negatives import Ends, Pools, draw_pairs, pair_keys
from gatas.datasets.splitting import drawn_splits
from gatas.datasets.targets import SPLITS, Pairs
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.inputs import Ints

TRAIN, VALID, TEST = range(len(SPLITS))
UNASKED = -1

Flags = NDArray[np.int8]


@dataclass(frozen=True)
class IndexedPairs:
    """Typed pairs of N nodes by index; `kind` is -1 for a type that is not asked for."""

    source: Ints
    kind: Ints
    target: Ints
    num_nodes: int

    def __len__(self) -> int:
        return len(self.source)

    def take(self, chosen: NDArray[Any]) -> "IndexedPairs":
        return IndexedPairs(self.source[chosen], self.kind[chosen], self.target[chosen], self.num_nodes)

    def reversed(self) -> "IndexedPairs":
        return IndexedPairs(self.target, self.kind, self.source, self.num_nodes)

    @property
    def key(self) -> Ints:
        return pair_keys(self.source, self.kind, self.target, self.num_nodes)

    @property
    def undirected_key(self) -> Ints:
        """A key that a link and its reverse share."""
        return np.minimum(self.key, self.reversed().key)

    def distinct(self, undirected: bool) -> "IndexedPairs":
        """Keep each link once, where it is listed first."""
        return self.take(np.sort(np.unique(self.undirected_key if undirected else self.key, return_index=True)[1]))


def joined(parts: list[IndexedPairs], num_nodes: int) -> IndexedPairs:
    columns = [[getattr(part, name) for part in parts] for name in ("source", "kind", "target")]
    source, kind, target = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
    return IndexedPairs(source, kind, target, num_nodes)


Given = tuple[IndexedPairs, Flags]
"""Pairs and their labels: 1 for a link, 0 for a negative."""


@dataclass(frozen=True)
class HeldOut:
    """Which listed edges stay in the graph, the pairs of each split, and the nodes that negatives are drawn from."""

    in_graph: NDArray[np.bool_]
    splits: Mapping[str, Pairs]
    ends: Ends


def hold_out_links(
    listed: IndexedPairs,
    given: Mapping[str, Given],
    *,
    split: Ints | None,
    ratios: Ratios,
    seed: int,
    undirected: bool,
    node_type: Ints | None,
    where: str,
    asked_pairs: Given | None = None,
    keep_reverses: bool = False,
) -> HeldOut:
    """Choose the links of each split and take those of valid and test out of the graph.

    Where a split has no negatives, as many are drawn as it has links, none of them a link of any split; for training they are
    drawn anew in every epoch.

    Args:
        listed: The edges of the data.
        given: Pairs by split, where these are given; all other edges of their types are training links.
        split: 0, 1, 2 for train, valid, test and -1 for none, for each listed edge, where the data says so.
        ratios: Shares of the links, drawn by the seed, where neither is given.
        seed: Splits and negatives are a function of it.
        undirected: Whether a link and its reverse are one.
        node_type: (N,) types of nodes, within which negatives are drawn.
        where: Names the data in error messages.
        asked_pairs: Pairs that are asked for instead of the edges, to be shared out by the ratios.
        keep_reverses: Whether edges that reverse a held-out link, but do not repeat it, stay in the graph.
    """
    if asked_pairs is not None:
        given = share_out(asked_pairs, ratios, seed)
    if given:
        number = split_by_pairs(listed, given, expected=asked_pairs is not None, keep_reverses=keep_reverses)
    else:
        number = split_by_ratios(listed, ratios, seed) if split is None else split_as_listed(listed, split)
    proper = (listed.kind >= 0) & (listed.source != listed.target)
    found = {name: listed.take(proper & (number == place)).distinct(undirected) for place, name in enumerate(SPLITS)}
    pairs = {name: (links, np.ones(len(links), np.int8)) for name, links in found.items() if len(links)} | dict(given)
    if "train" not in pairs:
        raise GraphError(f"{where} has no edge to learn from of the types asked for. Give some, or other link_types.")
    every = joined([listed.take(proper), *(links.take(label == 1) for links, label in pairs.values())], listed.num_nodes)
    ends = ends_of(every, node_type, undirected)
    known = np.sort(np.concatenate([every.key, every.reversed().key]))
    generator = np.random.default_rng([seed, 1])
    splits = {name: _with_negatives(links, label, name, known, ends, generator) for name, (links, label) in pairs.items()}
    return HeldOut(number <= TRAIN, splits, ends)


def split_by_ratios(listed: IndexedPairs, ratios: Ratios, seed: int) -> Ints:
    """Draw a split for each listed edge of a type asked for; a link, its repeats and its reverse are of one split."""
    split = np.full(len(listed), UNASKED)
    asked = (listed.kind >= 0) & (listed.source != listed.target)
    number, row = np.unique(listed.take(asked).undirected_key, return_inverse=True)
    kinds = number // listed.num_nodes**2
    split[asked] = drawn_splits(kinds, ratios, np.random.default_rng([seed, 0]), "links")[row]
    return split


def share_out(asked: Given, ratios: Ratios, seed: int) -> dict[str, Given]:
    """Draw a split for each pair; a pair and its reverse are of one split."""
    pairs, label = asked
    number, row = np.unique(pairs.undirected_key, return_inverse=True)
    kinds = number // pairs.num_nodes**2
    split = drawn_splits(kinds, ratios, np.random.default_rng([seed, 0]), "links")[row]
    shares = {name: split == place for place, name in enumerate(SPLITS)}
    return {name: (pairs.take(chosen), label[chosen]) for name, chosen in shares.items() if chosen.any()}


def split_as_listed(listed: IndexedPairs, split: Ints) -> Ints:
    """Take the splits that the edge table says; what repeats or reverses a held-out link is held out with it."""
    held = np.unique(listed.take((split > TRAIN) & (listed.kind >= 0)).undirected_key)
    return _without_held(listed, split, held)


def split_by_pairs(
    listed: IndexedPairs, given: Mapping[str, Given], *, expected: bool = False, keep_reverses: bool = False
) -> Ints:
    """Make all edges of the types asked for training links, but for those that given pairs hold out.

    That edges repeat held-out pairs is worth a warning, unless it is `expected`, as of pairs that were just shared out.
    """
    links = [pairs.take(label == 1) for name, (pairs, label) in given.items() if name != "train"]
    every = joined(links, listed.num_nodes)
    split = np.where((listed.kind >= 0) & (listed.source != listed.target), TRAIN, UNASKED)
    held = np.unique(every.key if keep_reverses else every.undirected_key)
    return _without_held(listed, split, held, expected=expected, keep_reverses=keep_reverses)


def _without_held(
    listed: IndexedPairs, split: Ints, held: Ints, *, expected: bool = False, keep_reverses: bool = False
) -> Ints:
    """Take edges that repeat or reverse a held-out link out of the graph, counted."""
    left = np.flatnonzero((split <= TRAIN) & (listed.kind >= 0))
    candidates = listed.take(left)
    repeats = left[np.isin(candidates.key if keep_reverses else candidates.undirected_key, held)]
    if repeats.size and not expected:
        either = "" if keep_reverses else ", in either direction,"
        warnings.warn(
            f"{repeats.size} edges repeat links of valid or test{either} and were taken out of the graph.",
            GatasWarning,
            stacklevel=6,
        )
    return np.where(np.isin(np.arange(len(split)), repeats), len(SPLITS), split)  # in no split, and not in the graph


def _with_negatives(
    links: IndexedPairs, label: Flags, name: str, known: Ints, ends: Ends, generator: np.random.Generator
) -> Pairs:
    """Add as many negatives as there are links, unless there are some; those of training are drawn in every epoch."""
    if name == "train" or not label.all():
        return Pairs(links.source, links.kind, links.target, label)
    source, target = draw_pairs(links.kind, known, links.num_nodes, generator, ends)
    return Pairs(
        np.concatenate([links.source, source]),
        np.concatenate([links.kind, links.kind]),
        np.concatenate([links.target, target]),
        np.concatenate([label, np.zeros(len(label), np.int8)]),
    )


def ends_of(links: IndexedPairs, node_type: Ints | None, undirected: bool) -> Ends:
    """Find the nodes at either end of links of a type, or all nodes of these nodes' types, where nodes have types."""
    if undirected:
        links = joined([links, links.reversed()], links.num_nodes)
    num_kinds = int(links.kind.max(initial=-1)) + 1
    ends = []
    for column in (links.source, links.target):
        pools = [np.unique(column[links.kind == kind]) for kind in range(num_kinds)]
        if node_type is not None:
            pools = [np.flatnonzero(np.isin(node_type, node_type[pool])) for pool in pools]
        ends.append(Pools.of(pools))
    return ends[0], ends[1]


def is_symmetric(graph: Graph) -> bool:
    """Whether every edge is listed in both directions under the same type."""
    source, target, kind = graph.source.astype(np.int64), graph.neighbour.astype(np.int64), graph.edge_type.astype(np.int64)
    there = pair_keys(source, kind, target, graph.num_nodes)
    back = pair_keys(target, kind, source, graph.num_nodes)
    return bool(graph.num_edges) and bool(np.array_equal(np.sort(there), np.sort(back)))
