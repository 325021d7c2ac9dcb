"""From requests to responses: requests of a kind that wait together are answered by one call of the model."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from pydantic_core import to_json

from gatas.graph.inputs import Ints
from gatas.inference import LinkExplanation, NumberPrediction, Prediction
from gatas.inference.walks import PathWalks, shared_neighbours
from gatas.serving.errors import ApiError, unprocessable
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.requests import (
    BetweenRequest,
    EmbedRequest,
    ExplainRequest,
    LinksRequest,
    ModelRequest,
    NeighboursRequest,
    NodeDataRequest,
    PredictRequest,
    RankLinksRequest,
    SearchRequest,
)
from gatas.serving.resolving import ResolvedRequest, link_type_index, resolve

LONG_REQUESTS = (RankLinksRequest,)
"""Requests during which others are answered."""
HandlerOutcome = bytes | Exception
IsWanted = Callable[[], bool]
Body = dict[str, Any]
MAX_CANDIDATES = 100_000
"""Candidates that one explanation looks at."""


class RequestCancelled(Exception):  # noqa: N818
    """No client waits for the response any more."""


def handle_batch(
    model: LoadedModel,
    requests: Sequence[ModelRequest],
    wanted: Sequence[IsWanted],
    meanwhile: Callable[[], None] = lambda: None,
) -> list[HandlerOutcome]:
    """Return a response or an error for each request; one that fails leaves the others as they are.

    Args:
        model: The model that answers all of them.
        requests: What is asked for.
        wanted: Whether a client still waits for each response.
        meanwhile: Called now and then while a long request is being answered.
    """
    outcomes: list[HandlerOutcome] = [RequestCancelled()] * len(requests)
    groups: dict[Any, list[int]] = {}
    resolved: dict[int, ResolvedRequest] = {}
    for number, request in enumerate(requests):
        try:
            resolved[number] = resolve(model, request)
        except Exception as error:
            outcomes[number] = error
        else:
            groups.setdefault(_group_key(resolved[number], number), []).append(number)
    for numbers in groups.values():
        group = [resolved[number] for number in numbers]
        found = _handle_group(model, group, _any_wanted([wanted[number] for number in numbers], meanwhile))
        for number, outcome in zip(numbers, found, strict=True):
            outcomes[number] = outcome
    return outcomes


def _any_wanted(wanted: list[IsWanted], meanwhile: Callable[[], None]) -> IsWanted:
    """Let others be answered, then say whether a client still waits for any of these."""

    def is_wanted() -> bool:
        meanwhile()
        return any(one() for one in wanted)

    return is_wanted


def _handle_group(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[HandlerOutcome]:
    """Answer requests together; if that fails, answer them one by one, so that only those fail which would fail alone."""
    try:
        bodies = HANDLERS[type(group[0].request)](model, group, wanted)
        return [to_json({"model": model.fingerprint, **body}) for body in bodies]
    except Exception as error:
        if len(group) == 1:
            return [error]
        return [_handle_group(model, [one], wanted)[0] for one in group]


def _group_key(resolved: ResolvedRequest, number: int) -> Any:
    """Return what requests that are answered together have in common."""
    request = resolved.request
    if isinstance(request, PredictRequest):
        return type(request), id(resolved.predictor), request.draws
    if isinstance(request, EmbedRequest | LinksRequest):
        return type(request), id(resolved.predictor)
    if isinstance(request, RankLinksRequest) and request.new is None:
        assert resolved.link_types is not None
        return RankLinksRequest, int(resolved.link_types[0]), request.top, request.source is None
    return number


def _embed(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    nodes, places = _distinct_nodes(group)
    rows = group[0].predictor.embed_indices(nodes)
    return [{"ids": one.ids, "embeddings": rows[own].tolist()} for one, own in zip(group, places, strict=True)]


def _predict(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    nodes, places = _distinct_nodes(group)
    found = group[0].predictor.predict_indices(nodes, draws=group[0].request.draws)
    about: Body = {"numbers": list(found.names)}
    if isinstance(found, Prediction):
        about = {"classes": list(found.names), "multi_label": found.multi_label}
    answers, bodies = _node_answers(found), []
    for one, own in zip(group, places, strict=True):
        rows = zip(one.ids, own.tolist(), strict=True)
        bodies.append({**about, "predictions": [{"id": node_id, **answers[row]} for node_id, row in rows]})
    return bodies


def _node_answers(found: Prediction | NumberPrediction) -> list[Body]:
    """Return the classes or the numbers of each node, with deviations where these were asked for."""
    bodies: list[Body]
    if isinstance(found, Prediction):
        labels = [label if isinstance(label, list) else [label] for label in found.labels]
        rows = zip(labels, found.probabilities.tolist(), strict=True)
        bodies = [{"labels": own, "probabilities": probabilities} for own, probabilities in rows]
    else:
        bodies = [{"values": values} for values in found.values.tolist()]
    deviations = [None] * len(bodies) if found.deviations is None else found.deviations.tolist()
    return [{**body, "deviations": own} for body, own in zip(bodies, deviations, strict=True)]


def _links(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    ends = [np.split(one.nodes, 2) for one in group]
    source, target = (np.concatenate([end[side] for end in ends]) for side in (0, 1))
    types = np.concatenate([one.link_types for one in group if one.link_types is not None])
    rows = group[0].predictor.score_indices(source, types, target).table().to_pylist()
    cuts = np.cumsum([0, *(len(end[0]) for end in ends)]).tolist()
    return [{"links": rows[cuts[number] : cuts[number + 1]]} for number in range(len(group))]


def _rank_links(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    """Rank all nodes as other ends. That takes a while: meanwhile others are answered, and it is given up when nobody waits."""

    def progress(share: float) -> None:
        if not wanted():
            raise RequestCancelled

    types, ids, request = group[0].link_types, [one.ids[0] for one in group], group[0].request
    assert types is not None
    end, link_type = "source" if request.target is None else "target", model.predictor.names[int(types[0])]
    asked: Any = {end: list(dict.fromkeys(ids)), "edge_type": link_type, "top": request.top}
    rows = group[0].predictor.rank_links(**asked, progress=progress).table().to_pylist()
    return [{"links": [row for row in rows if row[end] == one]} for one in ids]


def _explain(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    (one,) = group
    request, predictor, ids = one.request, one.predictor, one.ids
    if predictor.exact.encodes:
        _check_explainable(one)
    link = None if request.id is not None else (ids[0], predictor.names[link_type_index(model, request.type)], ids[1])
    found = predictor.explain(ids[0] if link is None else link, mode=request.mode, answer=request.answer)
    if isinstance(found, LinkExplanation):
        return [{"classes": list(predictor.names), **found.to_dict(request.top)}]
    prediction = None
    if not predictor.predicts_links:
        prediction = {"id": ids[0], **_node_answers(predictor.predict_indices(one.nodes))[0]}
    return [{"classes": list(predictor.names), "prediction": prediction, "other": None, **found.to_dict(request.top)}]


def _check_explainable(resolved: ResolvedRequest) -> None:
    """Refuse to explain a node by all of very many candidates."""
    predictor = resolved.predictor
    most = int(predictor.sampler.num_candidates(torch.from_numpy(resolved.nodes).to(predictor.device)).max())
    if (resolved.request.mode or predictor.mode) == "all" and most > MAX_CANDIDATES:
        raise unprocessable(
            "too_many_candidates",
            f"the node has {most:,} candidates; mode `all` takes at most {MAX_CANDIDATES:,}. Use mode `sample`.",
        )


def _neighbours(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    (one,) = group
    if model.nearest is None:
        text = "this server was started with --neighbours off, so it cannot find nearest nodes. Start it without that option."
        raise ApiError(404, "neighbours_off", text)
    (node_id,), top = one.ids, one.request.top
    if one.predictor is model.predictor:
        found = model.nearest.nearest(node_id, top)
    else:
        found = model.nearest.nearest_to(one.predictor.embed_indices(one.nodes)[0], top)
    return [{"id": node_id, "method": model.neighbours, "neighbours": found.table().to_pylist()}]


def _node_data(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    (one,) = group
    return [{"nodes": [asdict(model.node_data.read(node, one.request.top)) for node in one.nodes.tolist()]}]


def _between(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    (one,) = group
    graph, top, relations = one.predictor.graph, one.request.top, one.request.relations
    source, target = one.nodes.tolist()
    shared = shared_neighbours(graph, source, target)
    body = {
        "source": one.ids[0],
        "target": one.ids[1],
        "num_shared_neighbours": len(shared),
        "shared_neighbours": [graph.id_of(node) for node in shared[:top].tolist()],
        "num_walks": None,
        "walks": [],
        "num_between": None,
        "between": [],
    }
    if not relations:
        return [body]
    path = [graph.relation_names.index(name) for name in relations]
    walks = PathWalks(graph, one.predictor.model.transitions.setting, source, target, path)
    likeliest, between = walks.likeliest(top), walks.between(top)
    found = {
        "num_walks": walks.count,
        "walks": [{"nodes": [graph.id_of(node) for node in walk.nodes], "share": walk.share} for walk in likeliest],
        "num_between": walks.num_between,
        "between": [{"node": graph.id_of(passed.node), "step": passed.step, "share": passed.share} for passed in between],
    }
    return [{**body, **found}]


def _search(model: LoadedModel, group: list[ResolvedRequest], wanted: IsWanted) -> list[Body]:
    ids, more = model.ids.search(group[0].request.query, group[0].request.limit)
    return [{"ids": ids, "more": more}]


def _distinct_nodes(group: list[ResolvedRequest]) -> tuple[Ints, list[Ints]]:
    """Return the distinct nodes of several requests, and for each request where its own nodes are among them."""
    nodes, place = np.unique(np.concatenate([one.nodes for one in group]), return_inverse=True)
    return nodes, np.split(place, np.cumsum([len(one.nodes) for one in group])[:-1])


HANDLERS: dict[type, Callable[[LoadedModel, list[ResolvedRequest], IsWanted], list[Body]]] = {
    EmbedRequest: _embed,
    PredictRequest: _predict,
    LinksRequest: _links,
    RankLinksRequest: _rank_links,
    ExplainRequest: _explain,
    NeighboursRequest: _neighbours,
    NodeDataRequest: _node_data,
    BetweenRequest: _between,
    SearchRequest: _search,
}
