"""From questions to answers: those of a kind that wait together are answered in one call of the model."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic_core import to_json

from gatas.errors import GatasError, GatasWarning
from gatas.graph.inputs import Ints
from gatas.inference import Predictor
from gatas.inference.columns import encoded_rows
from gatas.inference.ids import ids_of, indices_of
from gatas.serving.questions import Embed, Explain, LikeliestLinks, Links, Neighbours, NewNodes, Predict, Question, Search
from gatas.serving.refusal import Refusal, unusable
from gatas.serving.served import Served

Outcome = bytes | Exception
Alive = Callable[[], bool]
MAX_CANDIDATES = 100_000
"""That one explanation looks at."""


class Dropped(Exception):  # noqa: N818
    """Nobody waits for the answer any more."""


@dataclass(frozen=True, eq=False)
class Ready:
    """A question whose ids are found."""

    question: Any
    predictor: Predictor
    nodes: Ints  # of links: all sources, then all targets
    kinds: Ints | None = None  # the types of links asked for


def answer_all(served: Served, questions: Sequence[Question], alive: Sequence[Alive]) -> list[Outcome]:
    """An answer or what went wrong, for each; one that cannot be answered leaves the others as they are."""
    outcomes: list[Outcome] = [Dropped()] * len(questions)
    groups: dict[Any, list[int]] = {}
    ready: dict[int, Ready] = {}
    for place, question in enumerate(questions):
        try:
            ready[place] = _ready(served, question)
        except Exception as error:
            outcomes[place] = error
        else:
            groups.setdefault(_group(ready[place], place), []).append(place)
    for places in groups.values():
        asked = [ready[place] for place in places]
        found = _outcomes(served, asked, _any([alive[place] for place in places]))
        for place, outcome in zip(places, found, strict=True):
            outcomes[place] = outcome
    return outcomes


def _any(alive: list[Alive]) -> Alive:
    return lambda: any(one() for one in alive)


def _outcomes(served: Served, asked: list[Ready], alive: Alive) -> list[Outcome]:
    """Together; and if that fails one by one, so that only those fail which would alone."""
    try:
        replies = REPLIES[type(asked[0].question)](served, asked, alive)
        return [to_json({"model": served.fingerprint, **reply}) for reply in replies]
    except Exception as error:
        if len(asked) == 1:
            return [error]
        return [_outcomes(served, [one], alive)[0] for one in asked]


def _group(ready: Ready, place: int) -> Any:
    """What questions that are answered together have in common."""
    question = ready.question
    if isinstance(question, Embed | Predict | Links):
        return type(question), id(ready.predictor)
    if isinstance(question, LikeliestLinks) and question.new is None:
        assert ready.kinds is not None
        return LikeliestLinks, int(ready.kinds[0]), question.top
    return place


def _ready(served: Served, question: Question) -> Ready:
    predictor = served.predictor if isinstance(question, Search) or question.new is None else _with_new(served, question.new)
    if isinstance(question, Embed | Predict):
        if isinstance(question, Predict):
            _check_task(served, links=False)
        nodes = predictor.new_indices if question.ids is None else _found(served, predictor, question.ids)
        return Ready(question, predictor, nodes)
    if isinstance(question, Links):
        _check_task(served, links=True)
        ends = [pair.source for pair in question.pairs] + [pair.target for pair in question.pairs]
        kinds = np.array([_kind(served, pair.type) for pair in question.pairs], np.int64)
        return Ready(question, predictor, _found(served, predictor, ends), kinds)
    if isinstance(question, LikeliestLinks):
        _check_task(served, links=True)
        return Ready(
            question, predictor, _found(served, predictor, [question.source]), np.array([_kind(served, question.type)])
        )
    if isinstance(question, Explain):
        return Ready(question, predictor, _explained_nodes(served, predictor, question))
    return Ready(question, predictor, _found(served, predictor, [question.id] if isinstance(question, Neighbours) else []))


def _found(served: Served, predictor: Predictor, ids: Sequence[int | str]) -> Ints:
    if predictor is served.predictor:
        return served.ids.find(ids)
    try:
        return indices_of(predictor.graph, list(ids))
    except GatasError as error:
        raise unusable("unknown_id", str(error)) from None


def _kind(served: Served, name: str | None) -> int:
    """The number of a type of link; the only one where none is named."""
    names = served.predictor.names
    if name is None and len(names) > 1:
        raise unusable("unknown_type", f"the type of link is missing; the model knows {_listed(names)}.")
    if name is not None and name not in names:
        raise unusable("unknown_type", f"there is no type of link {name!r}; the model knows {_listed(names)}.")
    return 0 if name is None else names.index(name)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (" …" if len(names) > 20 else "")


def _check_task(served: Served, links: bool) -> None:
    if links and not served.predictor.predicts_links:
        raise unusable("wrong_task", "the model predicts classes of nodes, not links. Ask /v1/predict.")
    if not links and served.predictor.predicts_links:
        raise unusable("wrong_task", "the model predicts links, not classes of nodes. Ask /v1/links.")


def _with_new(served: Served, new: NewNodes) -> Predictor:
    """Return a predictor over the graph with the nodes and edges of one request."""
    predictor, types = served.predictor, {edge.type for edge in new.edges}
    if new.features is not None and new.values is not None:
        raise unusable("invalid", "new nodes came with features and with values. Give one of them.")
    widths = {len(row) for row in new.features or []} - {predictor.num_features}
    if widths and predictor.num_features:
        raise unusable(
            "wrong_features", f"a new node has {min(widths)} features; the model was trained on {predictor.num_features}."
        )
    for name in types - {None}:
        if name not in predictor.graph.edge_type_names:
            known = _listed(predictor.graph.edge_type_names)
            raise unusable("unknown_type", f"there is no edge type {name!r}; the graph has {known}.")
    weights = [edge.weight for edge in new.edges]
    if (None in types and len(types) > 1) or (None in weights and set(weights) != {None}):
        raise unusable("unusable_new_nodes", "some new edges have a type or a weight, and others none. Give all of them one.")
    features = new.features if new.values is None else _encoded(predictor, new.values)
    try:
        return predictor.with_new_nodes(
            features,
            _columns(new),
            ids=new.ids,
            weights=None if None in weights or not weights else weights,
            embeddings=new.embeddings,
            reverse=new.reverse,
        )
    except GatasError as error:
        raise unusable("unusable_new_nodes", str(error)) from None


def _encoded(predictor: Predictor, values: list[dict[str, Any]]) -> Any:
    """Warnings of what was filled in would bring values into the log."""
    try:
        with warnings.catch_warnings(action="ignore", category=GatasWarning):
            return encoded_rows(predictor.dataset, values)
    except GatasError as error:
        raise unusable("wrong_features", str(error)) from None


def _columns(new: NewNodes) -> list[list[Any]]:
    """Sources, types if there are any, and targets."""
    sources, targets = [edge.source for edge in new.edges], [edge.target for edge in new.edges]
    types = [edge.type for edge in new.edges]
    return [] if not new.edges else [sources, targets] if None in types else [sources, types, targets]


def _embed(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    nodes, parts = _joined(asked)
    rows = asked[0].predictor.embed_indices(nodes)
    return [{"ids": _names(one), "embeddings": rows[part].tolist()} for one, part in zip(asked, parts, strict=True)]


def _predict(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    nodes, parts = _joined(asked)
    found = asked[0].predictor.predict_indices(nodes)
    labels, chances = found.labels, found.probabilities
    about = {"classes": list(found.names), "multi_label": found.multi_label}
    replies = []
    for one, part in zip(asked, parts, strict=True):
        rows = zip(_names(one), part.tolist(), strict=True)
        classes = [_class(name, labels[row], chances[row].tolist()) for name, row in rows]
        replies.append({**about, "predictions": classes})
    return replies


def _class(name: Any, label: Any, probabilities: list[float]) -> dict[str, Any]:
    return {"id": name, "labels": label if isinstance(label, list) else [label], "probabilities": probabilities}


def _links(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    ends = [np.split(one.nodes, 2) for one in asked]
    source, target = (np.concatenate([end[side] for end in ends]) for side in (0, 1))
    kinds = np.concatenate([one.kinds for one in asked if one.kinds is not None])
    rows = asked[0].predictor.score_indices(source, kinds, target).table().to_pylist()
    cuts = np.cumsum([0, *(len(end[0]) for end in ends)]).tolist()
    return [{"links": rows[cuts[place] : cuts[place + 1]]} for place in range(len(asked))]


def _likeliest(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    """All nodes are looked at, which takes a while: given up when nobody waits any more."""

    def progress(share: float) -> None:
        if not alive():
            raise Dropped

    kinds, names = asked[0].kinds, [_names(one)[0] for one in asked]
    assert kinds is not None
    sources, kind = list(dict.fromkeys(names)), served.predictor.names[int(kinds[0])]
    found = asked[0].predictor.rank_links(sources, kind, asked[0].question.top, progress=progress)
    rows = found.table().to_pylist()
    return [{"links": [row for row in rows if row["source"] == name]} for name in names]


def _explained_nodes(served: Served, predictor: Predictor, asked: Explain) -> Ints:
    """The node that is asked about, or the ends of the link."""
    link = (asked.source, asked.target)
    if (asked.id is None) == (None in link) or (asked.id is not None and (asked.type, *link) != (None, None, None)):
        raise unusable("invalid", "give the id of a node, or source, type and target of a link.")
    if asked.id is None:
        _check_task(served, links=True)
        _kind(served, asked.type)
    if asked.answer is not None and (asked.id is None or served.predictor.predicts_links):
        raise unusable("invalid", "`answer` is a class of a node; of a link its type is the answer. Leave it out.")
    if asked.answer is not None and asked.answer not in served.predictor.names:
        raise unusable(
            "unknown_class", f"there is no class {asked.answer!r}; the model knows {_listed(served.predictor.names)}."
        )
    return _found(served, predictor, [name for name in (asked.id, *link) if name is not None])


def _explain(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    (one,) = asked
    question, predictor, names = one.question, one.predictor, _names(one)
    _check_explainable(one)
    link = None if question.id is not None else (names[0], predictor.names[_kind(served, question.type)], names[1])
    found = predictor.explain(names[0] if link is None else link, mode=question.mode, answer=question.answer)
    content = found.to_dict(question.top)
    prediction = None
    if not predictor.predicts_links:
        chances = predictor.predict_indices(one.nodes)
        prediction = _class(names[0], chances.labels[0], chances.probabilities[0].tolist())
    return [{"classes": list(predictor.names), "prediction": prediction, "other": None, **content}]


def _check_explainable(asked: Ready) -> None:
    """A node with very many candidates is explained by a sample of them."""
    predictor = asked.predictor
    most = int(predictor.sampler.num_candidates(torch.from_numpy(asked.nodes).to(predictor.device)).max())
    if (asked.question.mode or predictor.mode) == "all" and most > MAX_CANDIDATES:
        raise unusable(
            "too_many_candidates", f"the node has {most:,} candidates, more than {MAX_CANDIDATES:,}. Use mode sample."
        )


def _neighbours(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    (one,) = asked
    if served.nearest is None:
        raise Refusal(404, "neighbours_off", "this server finds no nearest nodes. Start it without --neighbours off.")
    (name,), top = _names(one), one.question.top
    if one.predictor is served.predictor:
        found = served.nearest.nearest(name, top)
    else:
        found = served.nearest.nearest_to(one.predictor.embed_indices(one.nodes)[0], top)
    return [{"id": name, "method": served.method, "neighbours": found.table().to_pylist()}]


def _search(served: Served, asked: list[Ready], alive: Alive) -> list[dict[str, Any]]:
    ids, more = served.ids.search(asked[0].question.query, asked[0].question.limit)
    return [{"ids": ids, "more": more}]


def _joined(asked: list[Ready]) -> tuple[Ints, list[Ints]]:
    """The distinct nodes of several questions, and for each question which of them are its own."""
    nodes, place = np.unique(np.concatenate([one.nodes for one in asked]), return_inverse=True)
    return nodes, np.split(place, np.cumsum([len(one.nodes) for one in asked])[:-1])


def _names(asked: Ready) -> list[Any]:
    return list(ids_of(asked.predictor.graph, asked.nodes).to_pylist())


REPLIES: dict[type, Callable[[Served, list[Ready], Alive], list[dict[str, Any]]]] = {
    Embed: _embed,
    Predict: _predict,
    Links: _links,
    LikeliestLinks: _likeliest,
    Explain: _explain,
    Neighbours: _neighbours,
    Search: _search,
}
