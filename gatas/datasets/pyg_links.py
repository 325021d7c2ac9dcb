"""IndexedPairs of PyTorch Geometric: edges held out of one graph, or the pairs that `RandomLinkSplit` returned."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.config import Direction, Ratios
from gatas.datasets.dataset import Dataset
from gatas.datasets.held_out import UNASKED, Given, IndexedPairs, hold_out_links, is_symmetric, joined
from gatas.datasets.node_table import NodeTable
from gatas.datasets.targets import SPLITS, LinkTargets
from gatas.errors import GraphError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.inputs import Ints, as_array
from gatas.graph.pyg import edge_ends, from_pyg, is_data, is_hetero, node_counts, num_nodes_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

PygData = Any
"""`Data` or `HeteroData`."""


def link_parts(data: PygData | Sequence[PygData]) -> list[PygData]:
    """Return one graph, or the training, validation and test data of `RandomLinkSplit`, as a list."""
    parts = list(data) if isinstance(data, list | tuple) else [data]
    if len(parts) not in (1, 2, 3) or not all(is_data(part) or is_hetero(part) for part in parts):
        raise GraphError("for links, expected Data or HeteroData, or training, validation and test data of RandomLinkSplit.")
    counts = [node_counts(part) if is_hetero(part) else {"": num_nodes_of(part)} for part in parts]
    if any(one != counts[0] for one in counts):
        raise GraphError(
            "training, validation and test data have different nodes; expected those that RandomLinkSplit returns."
        )
    for split, part in zip(SPLITS[1:], parts[1:], strict=False):
        stores = part.edge_stores if is_hetero(part) else [part]
        if not any("edge_label_index" in store for store in stores):
            raise GraphError(
                f"the {split} data has no edge_label_index, so it asks for no links. Split one graph with RandomLinkSplit, or "
                "give that graph alone, of which links are held out by ratios."
            )
    return parts


def links_from_pyg(
    parts: list[PygData],
    nodes: NodeTable,
    *,
    direction: Direction,
    link_types: Sequence[str] | None,
    ratios: Ratios,
    name: str,
    seed: int,
) -> Dataset:
    """Hold links out of one graph, or take the pairs of several parts; see `dataset_from_pyg`."""
    whole = from_pyg(parts[0])
    labelled = labelled_types(parts[0])
    mirrors = mirrored_types(whole, link_types or labelled)
    own = [kind for kind in range(whole.num_edge_types) if kind not in mirrors]
    names = tuple(whole.edge_type_names[kind] for kind in own)
    asked = tuple(link_types or labelled or names)
    if unknown := [one for one in asked if one not in names]:
        raise GraphError(f"{unknown[0]!r} is not an edge type of the data; it has {', '.join(map(repr, names))}.")
    graph = _with_types(whole, own)
    if direction == "auto":
        direction = "undirected" if is_symmetric(graph) else "inverse"
    kinds = np.array([asked.index(one) if one in asked else UNASKED for one in names])
    listed = IndexedPairs(
        graph.source.astype(np.int64), kinds[graph.edge_type], graph.neighbour.astype(np.int64), graph.num_nodes
    )
    given = {split: pairs for split, part in zip(SPLITS, parts, strict=False) if (pairs := _pairs(part, graph, asked))}
    alone = len(parts) == 1
    held = hold_out_links(
        listed,
        {} if alone else given,
        asked_pairs=given.get("train") if alone else None,
        split=None,
        ratios=ratios,
        seed=seed,
        undirected=direction == "undirected",
        node_type=None if nodes.node_type is None else nodes.node_type.astype(np.int64),
        where=name,
    )
    originals = {whole.edge_type_names[kind]: own.index(original) for kind, original in mirrors.items()}
    kept = _kept(graph, held.in_graph, direction, originals)
    return Dataset(name, kept, LinkTargets(asked, held.splits, held.ends, held.ranked), nodes)


def _with_types(graph: Graph, kinds: list[int]) -> Graph:
    """Return the graph with the edges of some types only."""
    if len(kinds) == graph.num_edge_types:
        return graph
    chosen = np.isin(graph.edge_type, kinds)
    return Graph.from_edges(
        graph.source[chosen],
        graph.neighbour[chosen],
        np.searchsorted(kinds, graph.edge_type[chosen]),
        num_nodes=graph.num_nodes,
        weight=None if graph.weight is None else graph.weight[chosen],
        node_ids=graph.node_ids,
        edge_type_names=[graph.edge_type_names[kind] for kind in kinds],
    )


def _kept(graph: Graph, kept: NDArray[np.bool_], direction: Direction, mirrors: dict[str, int]) -> Graph:
    """Return the graph without held-out links; where edges stay as given, mirrored types are made of what is left."""
    source, target, kind = (column[kept].astype(np.int64) for column in (graph.source, graph.neighbour, graph.edge_type))
    weight = None if graph.weight is None else graph.weight[kept]
    names, inverse_of = list(graph.edge_type_names), None
    if direction == "as given" and mirrors:
        inverse_of = [NO_INVERSE] * graph.num_edge_types
        for name, original in mirrors.items():
            inverse_of[original] = len(names)
            inverse_of.append(original)
            names.append(name)
        back = np.flatnonzero(np.isin(kind, list(mirrors.values())))
        source, target = np.concatenate([source, target[back]]), np.concatenate([target, source[back]])
        kind = np.concatenate([kind, np.array(inverse_of)[kind[back]]])
        weight = None if weight is None else np.concatenate([weight, weight[back]])
    return Graph.from_edges(
        source,
        target,
        kind,
        num_nodes=graph.num_nodes,
        weight=weight,
        node_ids=graph.node_ids,
        edge_type_names=names,
        inverse=direction == "inverse",
        undirected=direction == "undirected",
        inverse_of=inverse_of,
    )


def mirrored_types(graph: Graph, asked: Sequence[str] | None = None) -> dict[int, int]:
    """Find types that list every edge of another type the other way round, as PyG's `ToUndirected` adds them.

    They would give held-out links away. Returned is the original of each; a type that is asked for is an original.
    """
    order = np.argsort(graph.edge_type, kind="stable")
    counts = np.bincount(graph.edge_type, minlength=graph.num_edge_types)
    edges = np.split(order, np.cumsum(counts)[:-1])
    source, mirrors = graph.source, dict[int, int]()
    for one, other in combinations(range(graph.num_edge_types), 2):
        if counts[one] != counts[other] or {one, other} & {*mirrors, *mirrors.values()}:
            continue
        if _mirrored(graph, source, edges[one], edges[other]):
            wanted = [kind for kind in (one, other) if graph.edge_type_names[kind] in (asked or ())]
            if len(wanted) == 2:
                raise GraphError(
                    f"{graph.edge_type_names[one]!r} and {graph.edge_type_names[other]!r} list the same edges in opposite "
                    "directions, so one gives links of the other away. Ask for one of them in link_types."
                )
            mirrors |= {one: other} if wanted == [other] else {other: one}
    return mirrors


def _mirrored(graph: Graph, source: NDArray[np.int32], one: Ints, other: Ints) -> bool:
    """Whether some edges, turned around, are the others; symmetric ones are not meant. Both ascend by (source, neighbour)."""
    start, end = source[one], graph.neighbour[one]
    back = np.lexsort((start, end))
    if not len(one) or (np.array_equal(end[back], start) and np.array_equal(start[back], end)):
        return False
    turned = np.array_equal(end[back], source[other]) and np.array_equal(start[back], graph.neighbour[other])
    return turned and (graph.weight is None or np.array_equal(graph.weight[one][back], graph.weight[other]))


def labelled_types(data: PygData) -> list[str]:
    """Return the edge types that have an edge_label_index."""
    if is_data(data):
        return []
    return ["__".join(triple) for triple in data.edge_types if "edge_label_index" in data[triple]]


def _pairs(data: PygData, graph: Graph, asked: tuple[str, ...]) -> Given | None:
    """Return the pairs of edge_label_index with their labels; None where there are none."""
    found: list[tuple[IndexedPairs, NDArray[np.int8]]] = []
    if is_data(data):
        if "edge_label_index" in data:
            found.append(_pairs_of(data, _pair_types(data, graph, asked), (0, 0), (graph.num_nodes,) * 2, graph.num_nodes))
    else:
        counts = node_counts(data)
        starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        for triple in data.edge_types:
            one, _, other = triple
            if "__".join(triple) in asked and "edge_label_index" in data[triple]:
                kind = np.int64(asked.index("__".join(triple)))
                shifts, limits = (starts[one], starts[other]), (counts[one], counts[other])
                found.append(_pairs_of(data[triple], kind, shifts, limits, graph.num_nodes))
    links = joined([pairs for pairs, _ in found], graph.num_nodes)
    return (links, np.concatenate([label for _, label in found])) if len(links) else None


def _pairs_of(
    store: Any, kind: Any, shifts: tuple[int, int], limits: tuple[int, int], num_nodes: int
) -> tuple[IndexedPairs, NDArray[np.int8]]:
    """Return the pairs of one store; ends are checked before they are shifted to the range of their node type."""
    source, target = edge_ends({"edge_index": store.edge_label_index}, *limits, "edge_label_index, ")
    label = as_array(store.edge_label) if "edge_label" in store else np.ones(len(source))
    if label.shape != (len(source),):
        raise GraphError(
            f"edge_label has shape {label.shape}, but edge_label_index has {len(source)} pairs. Give one for each."
        )
    kinds = np.broadcast_to(kind, len(source)).astype(np.int64)
    return IndexedPairs(source + shifts[0], kinds, target + shifts[1], num_nodes), (label > 0).astype(np.int8)


def _pair_types(data: "Data", graph: Graph, asked: tuple[str, ...]) -> Any:
    """Return the type of each pair: of one type if the data has one, or else by edge_label_type, numbered as edge_type is."""
    count = data.edge_label_index.shape[1]
    if "edge_label_type" not in data:
        if len(asked) == 1:
            return np.int64(0)
        raise GraphError(
            "the data has several edge types, but its edge_label_index does not say of which type each pair is. Set "
            "edge_label_type, with a type for each pair."
        )
    numbers = as_array(data.edge_label_type)
    if numbers.shape != (count,):
        raise GraphError(f"edge_label_type has {numbers.size} values for {count} pairs. Give one for each.")
    names = [str(number) for number in numbers.tolist()]
    if unknown := [one for one in names if one not in asked]:
        raise GraphError(
            f"edge_label_type holds {unknown[0]}, which is not asked for; types of link are {', '.join(map(repr, asked))}."
        )
    return np.array([asked.index(one) for one in names], np.int64)
