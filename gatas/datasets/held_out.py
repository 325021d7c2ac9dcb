"""IndexedPairs held out of a graph: with them go their repeats and their reverses, which would give them away."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import Ratios
from gatas.datasets.negatives import Ends, Pools, draw_pairs, pair_keys
from gatas.datasets.permitted_ends import PermittedEnds
from gatas.datasets.splitting import drawn_splits
from gatas.datasets.targets import SPLITS, Pairs
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.inputs import Ints

TRAIN, VALID, TEST = range(len(SPLITS))
UNASKED = -1
SYMMETRIC = 0.98
"""Where so many of a type's links go both ways, a link and its reverse are one: both are held out together."""

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

    def link_key(self, directed: bool) -> Ints:
        """A key that repeats of a link share, and its reverse too unless links are `directed`."""
        return self.key if directed else self.undirected_key

    def distinct(self, undirected: bool) -> "IndexedPairs":
        """Keep each link once, where it is listed first."""
        return self.take(np.sort(np.unique(self.link_key(not undirected), return_index=True)[1]))


def joined(parts: list[IndexedPairs], num_nodes: int) -> IndexedPairs:
    columns = [[getattr(part, name) for part in parts] for name in ("source", "kind", "target")]
    source, kind, target = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
    return IndexedPairs(source, kind, target, num_nodes)


Given = tuple[IndexedPairs, Flags]
"""Pairs and their labels: 1 for a link, 0 for a negative."""


@dataclass(frozen=True)
class HeldOut:
    """Which listed edges stay in the graph, the pairs of each split, and the nodes that training negatives are drawn from."""

    in_graph: NDArray[np.bool_]
    splits: Mapping[str, Pairs]
    ends: Ends | None  # None: any nodes
    ranked: bool  # whether neither valid nor test came with negatives


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
    keep_reverse: bool = False,
    asked_pairs: Given | None = None,
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
        keep_reverse: Whether an edge that reverses a held-out link stays in the graph: (a, b) says nothing of (b, a) then.
        asked_pairs: Pairs that are asked for instead of the edges, to be shared out by the ratios.
    """
    assert not (keep_reverse and undirected), "the reverse of an undirected link is the link itself"
    if asked_pairs is not None:
        given = share_out(asked_pairs, ratios, seed)
    if given:
        number = split_by_pairs(listed, given, directed=keep_reverse, expected=asked_pairs is not None)
    elif split is None:
        number = split_by_ratios(listed, ratios, seed, directed=keep_reverse)
    else:
        number = split_as_listed(listed, split, directed=keep_reverse)
    proper = (listed.kind >= 0) & (listed.source != listed.target)
    found = {name: listed.take(proper & (number == place)).distinct(undirected) for place, name in enumerate(SPLITS)}
    pairs = {name: (links, np.ones(len(links), np.int8)) for name, links in found.items() if len(links)} | dict(given)
    if "train" not in pairs:
        raise GraphError(f"{where} has no edge to learn from of the types asked for. Give some, or other link_types.")
    every = joined([listed.take(proper), *(links.take(label == 1) for links, label in pairs.values())], listed.num_nodes)
    every = joined([every, every.reversed()], listed.num_nodes) if undirected else every
    known = np.sort(every.key if keep_reverse else np.concatenate([every.key, every.reversed().key]))
    ends, generator = ends_of(every, node_type), np.random.default_rng([seed, 1])
    splits = {name: _with_negatives(links, label, name, known, ends, generator) for name, (links, label) in pairs.items()}
    ranked = all(label.all() for name, (_, label) in pairs.items() if name != "train")
    return HeldOut(number <= TRAIN, splits, permitted_pools(every, node_type), ranked)


def split_by_ratios(listed: IndexedPairs, ratios: Ratios, seed: int, *, directed: bool = False) -> Ints:
    """Draw a split for each listed edge of a type asked for; a link and its repeats are of one split.

    Its reverse is so too, unless links are `directed`.
    """
    split = np.full(len(listed), UNASKED)
    asked = (listed.kind >= 0) & (listed.source != listed.target)
    number, row = np.unique(listed.take(asked).link_key(directed), return_inverse=True)
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


def split_as_listed(listed: IndexedPairs, split: Ints, *, directed: bool = False) -> Ints:
    """Take the splits that the edge table says; what repeats a held-out link is held out with it.

    What reverses it is so too, unless links are `directed`.
    """
    return _without_held(listed, split, listed.take((split > TRAIN) & (listed.kind >= 0)), directed)


def split_by_pairs(listed: IndexedPairs, given: Mapping[str, Given], *, directed: bool = False, expected: bool = False) -> Ints:
    """Make all edges of the types asked for training links, but for those that given pairs hold out.

    That edges repeat held-out pairs is worth a warning, unless it is `expected`, as of pairs that were just shared out.
    """
    links = [pairs.take(label == 1) for name, (pairs, label) in given.items() if name != "train"]
    split = np.where((listed.kind >= 0) & (listed.source != listed.target), TRAIN, UNASKED)
    return _without_held(listed, split, joined(links, listed.num_nodes), directed, expected=expected)


def _without_held(listed: IndexedPairs, split: Ints, held: IndexedPairs, directed: bool, *, expected: bool = False) -> Ints:
    """Take edges that repeat a held-out link, or reverse it unless links are `directed`, out of the graph, counted."""
    left = np.flatnonzero((split <= TRAIN) & (listed.kind >= 0))
    repeats = left[np.isin(listed.take(left).link_key(directed), np.unique(held.link_key(directed)))]
    if repeats.size and not expected:
        either = "" if directed else ", in either direction,"
        what, verb = ("edge repeats", "was") if repeats.size == 1 else ("edges repeat", "were")
        warnings.warn(
            f"{repeats.size:,} {what} links of valid or test{either} and {verb} taken out of the graph.",
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


def permitted_pools(links: IndexedPairs, node_type: Ints | None) -> Ends | None:
    """Find the nodes that links of a type are ranked among: all nodes of the types seen at that end, or any without types."""
    if node_type is None:
        return None
    num_kinds = int(links.kind.max(initial=-1)) + 1
    return PermittedEnds.seen(links.source, links.kind, links.target, num_kinds, node_type).ends


def ends_of(links: IndexedPairs, node_type: Ints | None) -> Ends:
    """Find the nodes that negatives of held-out links are drawn from.

    These are nodes at either end of links of a type or, where nodes have types, all nodes of these nodes' types.
    """
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


def shares_both_ways(pairs: Pairs, num_nodes: int) -> NDArray[np.float64]:
    """Return, for each type, the share of its links whose reverse is a link of the type too."""
    given = IndexedPairs(pairs.source, pairs.edge_type, pairs.target, num_nodes).take(pairs.label == 1)
    links = given.take(given.source != given.target).distinct(undirected=False)
    both_ways = np.bincount(links.kind, np.isin(links.key, links.reversed().key))
    shares: NDArray[np.float64] = both_ways / np.maximum(np.bincount(links.kind), 1)
    return shares


def some_go_both_ways(shares: NDArray[np.float64]) -> bool:
    """Whether some links, but of no type nearly all, go both ways: then a link's reverse speaks for it, and is not the same."""
    return bool(shares.any() and shares.max() < SYMMETRIC)
