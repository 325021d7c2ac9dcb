"""From requests to nodes: ids become indices, new nodes become a predictor over the graph with them, or an `ApiError`."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gatas.errors import GatasError, GatasWarning
from gatas.graph.inputs import Ints
from gatas.inference import Predictor
from gatas.inference.columns import encoded_rows
from gatas.inference.ids import ids_of, indices_of
from gatas.serving.errors import unprocessable
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.requests import (
    BetweenRequest,
    EmbedRequest,
    ExplainRequest,
    LinksRequest,
    ModelRequest,
    NeighboursRequest,
    NewNodes,
    NodeDataRequest,
    PredictRequest,
    RankLinksRequest,
    SearchRequest,
)

MOST_STEPS = 8
"""Steps of a path whose walks are asked for."""
LISTED_NAMES = 20
"""Names that a message lists."""


@dataclass(frozen=True, eq=False)
class ResolvedRequest:
    """A request whose nodes and types are known by index."""

    request: Any
    predictor: Predictor
    nodes: Ints  # for links: all sources, then all targets
    link_types: Ints | None = None

    @property
    def ids(self) -> list[Any]:
        """Ids of the nodes, as the graph has them."""
        return list(ids_of(self.predictor.graph, self.nodes).to_pylist())


def resolve(model: LoadedModel, request: ModelRequest) -> ResolvedRequest:
    """Look up what a request names, and check that the model can answer it."""
    if isinstance(request, SearchRequest):
        return ResolvedRequest(request, model.predictor, np.empty(0, np.int64))
    if isinstance(request, NodeDataRequest):
        return ResolvedRequest(request, model.predictor, model.ids.find(request.ids))
    if isinstance(request, BetweenRequest):
        _check_relations(model, request.relations or [])
        return ResolvedRequest(request, model.predictor, model.ids.find([request.source, request.target]))
    predictor = model.predictor if request.new is None else _with_new_nodes(model, request.new)
    if isinstance(request, EmbedRequest | PredictRequest):
        if isinstance(request, PredictRequest):
            _check_predicts_nodes(model)
            _check_draws(predictor, request.draws)
        nodes = predictor.new_indices if request.ids is None else _find(model, predictor, request.ids)
        return ResolvedRequest(request, predictor, nodes)
    if isinstance(request, LinksRequest):
        _check_predicts_links(model)
        ends = [pair.source for pair in request.pairs] + [pair.target for pair in request.pairs]
        types = np.array([link_type_index(model, pair.type) for pair in request.pairs], np.int64)
        return ResolvedRequest(request, predictor, _find(model, predictor, ends), types)
    if isinstance(request, RankLinksRequest):
        _check_predicts_links(model)
        return _resolved_ranking(model, predictor, request)
    if isinstance(request, ExplainRequest):
        return ResolvedRequest(request, predictor, _explained_nodes(model, predictor, request))
    assert isinstance(request, NeighboursRequest)
    return ResolvedRequest(request, predictor, _find(model, predictor, [request.id]))


def _resolved_ranking(model: LoadedModel, predictor: Predictor, request: RankLinksRequest) -> ResolvedRequest:
    """Find the node whose links are wanted; one that no such link has at that end is refused."""
    asked = [one for one in (request.source, request.target) if one is not None]
    if len(asked) != 1:
        raise unprocessable("invalid", "give `source` or `target`, one of them: the other end is looked for.")
    kind, nodes = link_type_index(model, request.type), _find(model, predictor, asked)
    try:
        predictor.link_ends.refuse_wrong_end(nodes, kind, backward=request.source is None)
    except GatasError as error:
        raise unprocessable("wrong_node_type", str(error)) from None
    return ResolvedRequest(request, predictor, nodes, np.array([kind]))


def _check_relations(model: LoadedModel, relations: Sequence[str]) -> None:
    known = model.predictor.dataset.graph.edge_type_names
    if unknown := [name for name in relations if name not in known]:
        raise unprocessable("unknown_type", f"there is no edge type {unknown[0]!r}; the graph has {_listed(known)}.")
    if len(relations) > MOST_STEPS:
        text = f"the path has {len(relations):,} steps; at most {MOST_STEPS} are walked. Ask for a shorter one."
        raise unprocessable("too_many", text)


def link_type_index(model: LoadedModel, name: str | None) -> int:
    """Return the index of a link type, or of the only one if no name is given."""
    names = model.predictor.names
    if name is None and len(names) > 1:
        raise unprocessable("unknown_type", f"the type of link is missing; the model knows {_listed(names)}. Name one.")
    if name is not None and name not in names:
        raise unprocessable("unknown_type", f"there is no type of link {name!r}; the model knows {_listed(names)}.")
    return 0 if name is None else names.index(name)


def _find(model: LoadedModel, predictor: Predictor, ids: Sequence[int | str]) -> Ints:
    if predictor is model.predictor:
        return model.ids.find(ids)
    try:
        return indices_of(predictor.graph, list(ids))
    except GatasError as error:
        raise unprocessable("unknown_id", str(error)) from None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:LISTED_NAMES])) + (" …" if len(names) > LISTED_NAMES else "")


def _check_draws(predictor: Predictor, draws: int | None) -> None:
    if draws is not None and predictor.mode != "sample":
        text = f"`draws` was given, but this model looks at {predictor.mode} neighbours: nothing is drawn. Leave it out."
        raise unprocessable("invalid", text)


def _check_predicts_nodes(model: LoadedModel) -> None:
    if model.predictor.predicts_links:
        raise unprocessable("wrong_task", "the model predicts links, not classes of nodes. Use /v1/links.")


def _check_predicts_links(model: LoadedModel) -> None:
    if not model.predictor.predicts_links:
        what = "numbers" if model.predictor.predicts_numbers else "classes"
        raise unprocessable("wrong_task", f"the model predicts {what} of nodes, not links. Use /v1/predict.")


def _explained_nodes(model: LoadedModel, predictor: Predictor, request: ExplainRequest) -> Ints:
    """Return the node to explain, or both ends of the link."""
    ends, names = (request.source, request.target), model.predictor.names
    if (request.id is None) == (None in ends) or (request.id is not None and (request.type, *ends) != (None, None, None)):
        raise unprocessable("invalid", "give the id of a node, or source, type and target of a link.")
    if request.id is None:
        _check_predicts_links(model)
        link_type_index(model, request.type)
    if request.answer is not None and (request.id is None or model.predictor.predicts_links):
        raise unprocessable("invalid", "`answer` is only for classes of nodes; a link is explained by its type. Leave it out.")
    if request.answer is not None and request.answer not in names:
        raise unprocessable("unknown_class", f"there is no class {request.answer!r}; the model knows {_listed(names)}.")
    return _find(model, predictor, [one for one in (request.id, *ends) if one is not None])


def _with_new_nodes(model: LoadedModel, new: NewNodes) -> Predictor:
    """Return a predictor over the graph with the new nodes and edges of one request."""
    predictor = model.predictor
    _check_new_nodes(predictor, new)
    weights = [edge.weight for edge in new.edges]
    features = new.features if new.values is None else _encoded(predictor, new.values)
    try:
        return predictor.with_new_nodes(
            features,
            _edge_columns(new),
            ids=new.ids,
            weights=None if None in weights or not weights else weights,
            embeddings=new.embeddings,
            reverse=new.reverse,
        )
    except GatasError as error:
        raise unprocessable("unusable_new_nodes", str(error)) from None


def _check_new_nodes(predictor: Predictor, new: NewNodes) -> None:
    if new.features is not None and new.values is not None:
        raise unprocessable("invalid", "new nodes have both features and values. Give one of them.")
    widths = {len(row) for row in new.features or []} - {predictor.num_features}
    if widths and predictor.num_features:
        raise unprocessable(
            "wrong_features",
            f"a new node has {min(widths)} features; the model was trained on {predictor.num_features}. Give as many.",
        )
    types, weights = {edge.type for edge in new.edges}, {edge.weight for edge in new.edges}
    for name in types - {None}:
        if name not in predictor.graph.edge_type_names:
            known = _listed(predictor.graph.edge_type_names)
            raise unprocessable("unknown_type", f"there is no edge type {name!r}; the graph has {known}.")
    for what, values in (("type", types), ("weight", weights)):
        if None in values and len(values) > 1:
            raise unprocessable("unusable_new_nodes", f"only some of the new edges have a {what}. Give all of them one.")


def _encoded(predictor: Predictor, values: list[dict[str, Any]]) -> Any:
    """Encode values by column. Warnings about missing values are dropped: they would bring values into the log."""
    try:
        with warnings.catch_warnings(action="ignore", category=GatasWarning):
            return encoded_rows(predictor.dataset, values)
    except GatasError as error:
        raise unprocessable("wrong_features", str(error)) from None


def _edge_columns(new: NewNodes) -> list[list[Any]]:
    """Return sources, types if there are any, and targets; nothing where there are no edges."""
    sources, targets = [edge.source for edge in new.edges], [edge.target for edge in new.edges]
    types = [edge.type for edge in new.edges]
    return [] if not new.edges else [sources, targets] if None in types else [sources, types, targets]
