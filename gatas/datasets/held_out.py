"""Links to ask for, held out of the graph: with them go their repeats and their reverses, which would give them away."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import DataConfig
from gatas.datasets.dataset import Pairs
from gatas.datasets.negatives import Ends, Pools, draw_pairs, numbered
from gatas.datasets.splitting import drawn_splits
from gatas.errors import GatasWarning, GraphError
from gatas.graph import SPLITS
from gatas.graph.inputs import Ints
from gatas.graph.node_columns import splits_of
from gatas.graph.tables import Table

TRAIN, VALID, TEST = range(len(SPLITS))
UNASKED = -1

Flags = NDArray[np.int8]


@dataclass(frozen=True)
class Links:
    """Typed pairs of nodes as numbers, of N nodes; of a type that is not asked for, `kind` is -1."""

    source: Ints
    kind: Ints
    target: Ints
    num_nodes: int

    def __len__(self) -> int:
        return len(self.source)

    def take(self, chosen: NDArray[Any]) -> "Links":
        return Links(self.source[chosen], self.kind[chosen], self.target[chosen], self.num_nodes)

    def reversed(self) -> "Links":
        return Links(self.target, self.kind, self.source, self.num_nodes)

    @property
    def number(self) -> Ints:
        return numbered(self.source, self.kind, self.target, self.num_nodes)

    @property
    def number_either_way(self) -> Ints:
        """The same for a link and its reverse."""
        return np.minimum(self.number, self.reversed().number)

    def distinct(self, undirected: bool) -> "Links":
        """Each once, as it is listed first."""
        return self.take(np.sort(np.unique(self.number_either_way if undirected else self.number, return_index=True)[1]))


def joined(parts: list[Links], num_nodes: int) -> Links:
    columns = [[getattr(part, name) for part in parts] for name in ("source", "kind", "target")]
    source, kind, target = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
    return Links(source, kind, target, num_nodes)


@dataclass(frozen=True)
class HeldOut:
    """Which listed edges stay in the graph, and the pairs that are asked for."""

    in_graph: NDArray[np.bool_]
    splits: Mapping[str, Pairs]
    ends: Ends


def split_by_ratios(listed: Links, config: DataConfig) -> Ints:
    """A split for each listed edge of a type asked for; a link, its repeats and its reverse are of one split."""
    split = np.full(len(listed), UNASKED)
    asked = (listed.kind >= 0) & (listed.source != listed.target)
    number, row = np.unique(listed.take(asked).number_either_way, return_inverse=True)
    kinds = number // listed.num_nodes**2
    split[asked] = drawn_splits(kinds, config.ratios, np.random.default_rng([config.seed, 0]), "links")[row]
    return split


def split_by_column(listed: Links, edges: Table) -> Ints:
    """The splits that the edge table says; what repeats or reverses a held-out link is held out with it."""
    split = np.full(len(listed), UNASKED)
    for number, name in enumerate(SPLITS):
        split[splits_of(edges).get(name, np.empty(0, np.int64))] = number
    held = np.unique(listed.take((split > TRAIN) & (listed.kind >= 0)).number_either_way)
    return _without_held(listed, split, held)


def split_by_files(listed: Links, given: Mapping[str, tuple[Links, Flags]]) -> Ints:
    """All edges of the types asked for are training links, but for those that the files hold out."""
    links = [pairs.take(label == 1) for name, (pairs, label) in given.items() if name != "train"]
    held = np.unique(joined(links, listed.num_nodes).number_either_way)
    split = np.where((listed.kind >= 0) & (listed.source != listed.target), TRAIN, UNASKED)
    return _without_held(listed, split, held)


def _without_held(listed: Links, split: Ints, held: Ints) -> Ints:
    """Edges that repeat or reverse a held-out link leave the graph, counted; they are asked for where that says so."""
    left = np.flatnonzero((split <= TRAIN) & (listed.kind >= 0))
    repeats = left[np.isin(listed.take(left).number_either_way, held)]
    if repeats.size:
        warnings.warn(
            f"{repeats.size} edges repeat links of valid or test, in either direction, and were taken out of the graph.",
            GatasWarning,
            stacklevel=6,
        )
    return np.where(np.isin(np.arange(len(split)), repeats), len(SPLITS), split)  # in no split, and not in the graph


def held_out(
    config: DataConfig,
    edges: Table,
    listed: Links,
    given: Mapping[str, tuple[Links, Flags]],
    node_type: Ints | None,
) -> HeldOut:
    """Pairs for each split; where none of them are no links, as many are drawn, none of them a link of any split."""
    undirected = config.direction == "undirected"
    if given:
        split = split_by_files(listed, given)
    else:
        split = split_by_column(listed, edges) if "split" in edges.columns else split_by_ratios(listed, config)
    proper = (listed.kind >= 0) & (listed.source != listed.target)
    found = {name: listed.take(proper & (split == number)).distinct(undirected) for number, name in enumerate(SPLITS)}
    pairs = {name: (links, np.ones(len(links), np.int8)) for name, links in found.items() if len(links)} | dict(given)
    if "train" not in pairs:
        raise GraphError(f"{edges.path} has no edge to learn from of the types asked for. Give some, or other link_types.")
    every = joined([listed.take(proper), *(links.take(label == 1) for links, label in pairs.values())], listed.num_nodes)
    ends = ends_of(every, node_type, undirected)
    known = np.sort(np.concatenate([every.number, every.reversed().number]))
    generator = np.random.default_rng([config.seed, 1])
    splits = {name: _with_others(links, label, name, known, ends, generator) for name, (links, label) in pairs.items()}
    return HeldOut(split <= TRAIN, splits, ends)


def _with_others(links: Links, label: Flags, name: str, known: Ints, ends: Ends, generator: np.random.Generator) -> Pairs:
    """Training pairs get others anew in every epoch."""
    if name == "train" or not label.all():
        return Pairs(links.source, links.kind, links.target, label)
    source, target = draw_pairs(links.kind, known, links.num_nodes, generator, ends)
    return Pairs(
        np.concatenate([links.source, source]),
        np.concatenate([links.kind, links.kind]),
        np.concatenate([links.target, target]),
        np.concatenate([label, np.zeros(len(label), np.int8)]),
    )


def ends_of(links: Links, node_type: Ints | None, undirected: bool) -> Ends:
    """Nodes that stand at either end of links of a type, or all that are of such a node's type, where nodes have types."""
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
