"""Nodes that a model has never seen: their transitions are computed over old and new edges, and nothing is retrained.

Features they bring along. Learned embeddings they do not have: these are by default the mean of their sampled neighbours',
weighted by probability, or zeros; `benchmarks/new_nodes.py` measures both. Models without embeddings need no such rule.
"""

from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import GraphError
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints, as_features, as_weights
from gatas.graph.tables import Table, ids_of, numbers_of
from gatas.inference.columns import encoded_rows, features_of, is_raw, read_links, read_people
from gatas.inference.embed import embed_nodes
from gatas.inference.ids import listed, names_of, nodes_of, types_of
from gatas.inference.view import NodeRows, View, part_of, parts_of
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.tasks import Model
from gatas.transitions import Nearby

Rule = Literal["mean", "zeros"]
INVERSE = "⁻¹"


def embed_new(model: Model, features: Any, edges: Any, **settings: Any) -> NDArray[np.float32]:
    """(n, K·F'') of nodes that the model has never seen; the arguments are those of `with_new_nodes`."""
    view = with_new_nodes(model, features, edges, **settings)
    return embed_nodes(view, new_nodes(view))


def with_new_nodes(
    model: Model,
    features: Any,
    edges: Any,
    *,
    ids: Any = None,
    weights: Any = None,
    embeddings: Rule = "mean",
    reverse: bool = True,
) -> View:
    """The model over its graph with new nodes and edges.

    `features` has a row for each new node, and is None for a model without. Of a model that was trained on tables of one's
    own, rows may be dicts of values by column, as these tables have them (or a table): they are encoded as in training.

    `edges` are ids: (sources, edge types, targets), or (sources, targets) where there is one type; they may join new and old
    nodes in any way. Where the graph has every edge in both directions, or inverse types, new edges get theirs too, unless
    `reverse` is False. `ids` name the new nodes; in a graph without names they are by default numbered from its last node on.

    >>> model.embed_new(features, (["zoe", "zoe"], ["knows", "likes"], ["ada", "bo"]), ids=["zoe"])
    """
    if embeddings not in ("mean", "zeros"):
        raise GraphError(f"embeddings is {embeddings!r}; expected 'mean', of the sampled neighbours', or 'zeros'.")
    sources, types, targets = _columns(model.graph, edges)
    rows = _features(model, features)
    graph = ExtendedGraph(model.graph, _new_names(model, rows, ids, (sources, targets)))
    _add_edges(graph, sources, types, targets, weights, reverse)
    sampler = NeighbourSampler(Nearby(graph, model.transitions.setting), model.config.sample_size, **model.ablation.sampler())
    sampler.load_state_dict(model.sampler.state_dict())
    view = View(model, graph, sampler.to(model.sampler.depth_logits.device))
    given = None if rows is None else torch.tensor(rows, device=view.device)
    view.new = NodeRows(given, _embeddings(view, embeddings))
    return view


def new_nodes(view: View) -> Ints:
    """Their numbers, which follow those of the model's own."""
    return np.arange(view.model.graph.num_nodes, view.graph.num_nodes)


def ids_of_new(view: View) -> list[Any]:
    """Their ids."""
    return list(names_of(view.graph, new_nodes(view)).to_pylist())


def read_new_nodes(model: Model, nodes: Path | None, edges: Path | None, *, embeddings: Rule = "mean") -> View:
    """The same from files: nodes `id` and features, edges `source, target[, type][, weight]`, or as the run's tables say."""
    people = None if nodes is None else read_people(model, nodes)
    links = None if edges is None else read_links(model, edges)
    return with_new_nodes(
        model,
        None if people is None else features_of(model, people),
        None if links is None else _listed_edges(links),
        ids=None if people is None else ids_of(people, "id").to_pylist(),
        weights=_weights(links),
        embeddings=embeddings,
    )


def _listed_edges(links: Table) -> tuple[list[Any], ...]:
    names = ("source", "edge_type", "target") if "edge_type" in links.columns else ("source", "target")
    return tuple(ids_of(links, name).to_pylist() for name in names)


def _weights(links: Table | None) -> NDArray[Any] | None:
    values = None if links is None else links.columns.get("weight")
    return None if links is None or values is None else numbers_of(links, "weight", values)


def _columns(graph: Graph, edges: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Sources, types and targets, as they were given."""
    columns = [] if edges is None else [listed(column) for column in edges]
    if len(columns) not in (0, 2, 3):
        raise GraphError(f"edges came as {len(columns)} columns; expected sources, edge types and targets.")
    if not columns:
        return [], [], []
    if len(columns) == 2:
        forward = [name for name in graph.edge_type_names if not name.endswith(INVERSE)]
        if len(forward) != 1:
            raise GraphError(f"edges came without types, but the graph has {', '.join(map(repr, forward))}. Give theirs.")
        columns.insert(1, forward)
    sources, types, targets = columns
    if len(sources) != len(targets):
        raise GraphError(f"{len(sources)} sources and {len(targets)} targets were given. Give one of each per edge.")
    return sources, types, targets


def _features(model: Model, features: Any) -> NDArray[np.float32] | None:
    if features is None and model.num_features:
        raise GraphError(f"the model was trained on {model.num_features} features, and new nodes came without. Give theirs.")
    if features is None:
        return None
    if is_raw(model, features):
        return encoded_rows(model, features)
    if not model.num_features:
        raise GraphError("the model was trained without features, so new nodes cannot have any. Leave them out.")
    shape = np.shape(features)
    if len(shape) != 2 or shape[1] != model.num_features:
        raise GraphError(f"features of new nodes have shape {shape}; the model was trained on {model.num_features} columns.")
    return as_features(features, shape[0], "new node {}".format)


def _new_names(model: Model, rows: Any, ids: Any, ends: tuple[list[Any], list[Any]]) -> list[Any]:
    """The ids of new nodes: as given; or numbers after the last; or, without features, what edges name and is not known."""
    graph = model.graph
    if ids is not None:
        names = listed(ids)
        if rows is not None and len(names) != len(rows):
            raise GraphError(f"{len(names)} ids and {len(rows)} rows of features were given for new nodes. Give one of each.")
        return names
    if rows is not None and graph.node_ids is not None:
        raise GraphError("new nodes came without ids, but the graph's nodes are known by theirs. Give each new node one.")
    if rows is not None:
        return list(range(graph.num_nodes, graph.num_nodes + len(rows)))
    found = {str(name): name for name in [*ends[0], *ends[1]]}  # 12 and "12" are one
    return [name for name in found.values() if graph.get_index(name) < 0]


def _add_edges(grown: ExtendedGraph, sources: Any, types: Any, targets: Any, weights: Any, reverse: bool) -> None:
    graph = grown.graph
    if weights is not None and graph.weight is None:
        raise GraphError("new edges came with weights, but those of the graph have none. Leave them out.")
    source, target = nodes_of(grown, sources), nodes_of(grown, targets)
    kind = types_of(graph.edge_type_names, types, len(source), "edge type") if len(source) else np.empty(0, np.int64)
    given = as_weights(np.ones(len(source)) if weights is None else weights, "new edge {}".format)
    if len(given) != len(source):
        raise GraphError(f"{len(given)} weights were given for {len(source)} new edges. Give one for each.")
    back = _backwards(graph)[kind] if reverse else np.full(len(kind), -1)
    both = back >= 0
    grown.add(
        np.concatenate([source, target[both]]),
        np.concatenate([kind, back[both]]),
        np.concatenate([target, source[both]]),
        None if graph.weight is None else np.concatenate([given, given[both]]),
    )


def _backwards(graph: Graph) -> Ints:
    """For each edge type the one that its edges have in the other direction; -1 where nothing says so. Found once a graph."""
    if graph not in _found_backwards:
        _found_backwards[graph] = _find_backwards(graph)
    return _found_backwards[graph]


_found_backwards: WeakKeyDictionary[Graph, Ints] = WeakKeyDictionary()


def _find_backwards(graph: Graph) -> Ints:
    names = graph.edge_type_names
    if any(name.endswith(INVERSE) for name in names):
        back = [name.removesuffix(INVERSE) if name.endswith(INVERSE) else name + INVERSE for name in names]
        return np.array([names.index(name) if name in names else -1 for name in back], np.int64)
    there = np.lexsort((graph.neighbour, graph.edge_type, graph.source))
    again = np.lexsort((graph.source, graph.edge_type, graph.neighbour))
    same = (graph.source[there] == graph.neighbour[again]) & (graph.neighbour[there] == graph.source[again])
    undirected = bool((same & (graph.edge_type[there] == graph.edge_type[again])).all())
    return np.arange(len(names)) if undirected else np.full(len(names), -1)


def _embeddings(view: View, rule: Rule) -> Tensor | None:
    """What stands in for the learned embeddings of new nodes."""
    learned = view.model.encoder.inputs.embeddings
    if learned is None:
        return None
    weight = learned.weight.detach()
    rows = weight.new_zeros(view.graph.num_nodes - len(weight), weight.shape[1])
    if rule == "zeros":
        return rows
    done = 0
    for batch in view.batches(new_nodes(view)):
        drawn = view.sampler(torch.from_numpy(batch).to(view.device), draw=-1, mode=view.model.answer_mode)
        for part in parts_of(drawn.mask):
            means = _mean_of_old(part_of(drawn, part), weight)
            rows[done : done + len(means)] = means
            done += len(means)
    return rows


def _mean_of_old(neighbourhood: Neighbourhood, learned: Tensor) -> Tensor:
    """(B, R): of the neighbours that the model knows, weighted by P; zeros where there are none."""
    share = neighbourhood.log_probability.detach().exp() * (neighbourhood.node < len(learned))  # (B, S)
    share = share / share.sum(1, keepdim=True).clamp_min(torch.finfo(share.dtype).tiny)
    return torch.einsum("bs,bsr->br", share, learned[neighbourhood.node.clamp_max(len(learned) - 1)])
