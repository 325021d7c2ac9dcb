"""Nodes that a model has never seen: their transitions are computed over old and new edges, and nothing is retrained.

Features they bring along. Learned embeddings they do not have: these are by default the mean of their sampled neighbours',
weighted by probability, or zeros; `benchmarks/new_nodes.py` measures both. Models without embeddings need no such rule.
"""

from typing import Any, Literal, TypedDict

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from gatas.datasets.node_table import Features, check_features
from gatas.errors import GraphError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import as_features, as_weights
from gatas.inference.columns import encoded_rows, is_raw
from gatas.inference.exact import ExactEncoder, NodeRows, part_of, parts_of
from gatas.inference.ids import indices_of, listed, types_of
from gatas.inference.trained import TrainedModel
from gatas.nn.sparse_rows import is_sparse
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.tasks import LinkPredictor, Model
from gatas.tasks.model import as_sparse_tensor
from gatas.transitions import Nearby

EmbeddingRule = Literal["mean", "zeros"]


class NewNodeSettings(TypedDict, total=False):
    """Optional arguments of `Predictor.with_new_nodes`, which says what they mean."""

    ids: Any
    weights: Any
    embeddings: EmbeddingRule
    reverse: bool


def extended(
    trained: TrainedModel, features: Any, edges: Any, ids: Any, weights: Any, rule: EmbeddingRule, reverse: bool
) -> tuple[ExtendedGraph, ExactEncoder]:
    """Return the graph with new nodes and edges, and the encoder over it; arguments are `Predictor.with_new_nodes`'s."""
    if rule not in ("mean", "zeros"):
        raise GraphError(f"embeddings is {rule!r}; expected 'mean', of the sampled neighbours', or 'zeros'.")
    model, old = trained.model, trained.dataset.graph
    sources, types, targets = _columns(old, edges)
    rows = _features(trained, features)
    graph = ExtendedGraph(old, _new_ids(old, rows, ids, (sources, targets)))
    _add_edges(graph, sources, types, targets, weights, reverse)
    sampler = NeighbourSampler(Nearby(graph, model.transitions.setting), model.config.sample_size, **model.ablation.sampler())
    sampler.load_state_dict(model.sampler.state_dict())
    exact = ExactEncoder(model, sampler.to(trained.device))
    given = None if rows is None else _as_tensor(rows, model.features).to(trained.device)
    exact.new = NodeRows(given, *_stand_ins(trained, exact, graph.num_nodes, rule))
    exact.log_degree = _log_degrees(exact.log_degree, graph)
    return graph, exact


def _columns(graph: Graph, edges: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return sources, types and targets as they were given."""
    columns = [] if edges is None else [listed(column) for column in edges]
    if len(columns) not in (0, 2, 3):
        raise GraphError(f"edges came as {len(columns)} columns; expected sources, edge types and targets.")
    if not columns:
        return [], [], []
    if len(columns) == 2:
        forward = [graph.edge_type_names[kind] for kind in graph.original_edge_types]
        if len(forward) != 1:
            raise GraphError(f"edges came without types, but the graph has {', '.join(map(repr, forward))}. Give theirs.")
        columns.insert(1, forward)
    sources, types, targets = columns
    if len(sources) != len(targets):
        raise GraphError(f"{len(sources)} sources and {len(targets)} targets were given. Give one of each per edge.")
    return sources, types, targets


def _features(trained: TrainedModel, features: Any) -> Features | None:
    width = trained.num_features
    if features is None and width:
        raise GraphError(f"the model was trained on {width} features, and new nodes came without. Give theirs.")
    if features is None:
        return None
    if is_raw(trained.dataset, features):
        return encoded_rows(trained.dataset, features)
    if not width:
        raise GraphError("the model was trained without features, so new nodes cannot have any. Leave them out.")
    shape = np.shape(features)
    if len(shape) != 2 or shape[1] != width:
        raise GraphError(f"features of new nodes have shape {shape}; the model was trained on {width} columns.")
    if sparse.issparse(features):
        return check_features(features, shape[0])
    return as_features(features, shape[0], "new node {}".format)


def _as_tensor(rows: Features, known: Tensor | None) -> Tensor:
    """Return features of new nodes in the layout, dense or sparse, of those that the model knows."""
    if known is not None and is_sparse(known):
        return as_sparse_tensor(sparse.csr_array(rows))
    return torch.tensor(rows if isinstance(rows, np.ndarray) else rows.toarray())


def _new_ids(graph: Graph, rows: Features | None, ids: Any, ends: tuple[list[Any], list[Any]]) -> list[Any]:
    """Return the ids of new nodes: as given; or numbers after the last; or, without features, unknown ids that edges name."""
    if ids is not None:
        given = listed(ids)
        if rows is not None and len(given) != rows.shape[0]:
            raise GraphError(
                f"{len(given)} ids and {rows.shape[0]} rows of features were given for new nodes. Give one of each."
            )
        return given
    if rows is not None and graph.node_ids is not None:
        raise GraphError("new nodes came without ids, but the graph's nodes are known by theirs. Give each new node one.")
    if rows is not None:
        return list(range(graph.num_nodes, graph.num_nodes + rows.shape[0]))
    found = {str(one): one for one in [*ends[0], *ends[1]]}  # 12 and "12" are one
    return [one for one in found.values() if graph.get_index(one) < 0]


def _add_edges(graph: ExtendedGraph, sources: Any, types: Any, targets: Any, weights: Any, reverse: bool) -> None:
    old = graph.graph
    if weights is not None and old.weight is None:
        raise GraphError("new edges came with weights, but those of the graph have none. Leave them out.")
    source, target = indices_of(graph, sources), indices_of(graph, targets)
    kind = types_of(old.edge_type_names, types, len(source), "edge type") if len(source) else np.empty(0, np.int64)
    given = as_weights(np.ones(len(source)) if weights is None else weights, "new edge {}".format)
    if len(given) != len(source):
        raise GraphError(f"{len(given)} weights were given for {len(source)} new edges. Give one for each.")
    back = np.array(old.inverse_of, np.int64)[kind] if reverse else np.full(len(kind), NO_INVERSE)
    both = back != NO_INVERSE
    graph.add(
        np.concatenate([source, target[both]]),
        np.concatenate([kind, back[both]]),
        np.concatenate([target, source[both]]),
        None if old.weight is None else np.concatenate([given, given[both]]),
    )


def _stand_ins(trained: TrainedModel, exact: ExactEncoder, num_nodes: int, rule: EmbeddingRule) -> list[Tensor | None]:
    """Return what stands in for the embeddings, vectors and popularity of new nodes; None for what the model does not learn."""
    learned = _learned(trained.model)
    old = trained.dataset.graph.num_nodes
    rows = [None if weight is None else weight.new_zeros(num_nodes - old, weight.shape[1]) for weight in learned]
    if rule == "zeros" or not any(weight is not None for weight in learned):
        return rows
    done = 0
    for batch in trained.batches(np.arange(old, num_nodes)):
        drawn = exact.sampler(torch.from_numpy(batch).to(exact.device), draw=-1, mode=trained.mode)
        for part in parts_of(drawn.mask):
            neighbourhood = part_of(drawn, part)
            for own, weight in zip(rows, learned, strict=True):
                if own is not None and weight is not None:
                    own[done : done + len(neighbourhood.node)] = _mean_of_old(neighbourhood, weight)
            done += len(neighbourhood.node)
    return rows


def _learned(model: Model) -> list[Tensor | None]:
    """Return what is learned of each node: embeddings, and the vectors and popularity that links are scored by."""
    embeddings = model.encoder.inputs.embeddings
    links = isinstance(model, LinkPredictor) and "vectors" in model.parts
    vectors = [model.head.vectors, model.head.popularity] if links else [None, None]
    return [None if module is None else module.weight.detach() for module in (embeddings, *vectors)]


def _log_degrees(before: Tensor, graph: ExtendedGraph) -> Tensor:
    """Return (N,) ln of the total weight of each node's edges, over old and new ones; nothing for a model without links."""
    if not len(before):
        return before
    source, changed = np.searchsorted(graph.changed, graph.own.source), torch.from_numpy(graph.changed)
    weight = (graph.own.source != graph.own.target).astype(np.float64)  # self-edges count in no degree
    weight *= 1.0 if graph.own.weight is None else graph.own.weight
    degree = np.bincount(source, weight, minlength=len(changed))
    inverse = np.divide(1.0, degree, out=np.ones(len(degree)), where=degree > 0)
    found = torch.cat([before, before.new_zeros(graph.num_nodes - len(before))])
    found[changed.to(found.device)] = torch.from_numpy(-np.log(inverse)).float().to(found.device)
    return found


def _mean_of_old(neighbourhood: Neighbourhood, learned: Tensor) -> Tensor:
    """Return (B, R) means over the neighbours that the model knows, weighted by P; zeros where there are none."""
    share = neighbourhood.log_probability.detach().exp() * (neighbourhood.node < len(learned))  # (B, S)
    share = share / share.sum(1, keepdim=True).clamp_min(torch.finfo(share.dtype).tiny)
    return torch.einsum("bs,bsr->br", share, learned[neighbourhood.node.clamp_max(len(learned) - 1)])
