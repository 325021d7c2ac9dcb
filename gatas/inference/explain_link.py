"""`explain_link`: the log-odds of a link as a sum over its type, the nodes' vectors, their neighbourhoods and typed paths."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gatas.datasets import LinkTargets
from gatas.graph.inputs import Ints
from gatas.inference.attention import evaluating, linear
from gatas.inference.exact import gathered
from gatas.inference.explain import AskedAnswer, AttendedRows, attended_rows, explanation_of, index_of_name
from gatas.inference.explanation import Answer, Explanation
from gatas.inference.link_explanation import (
    LinkContribution,
    LinkExplanation,
    NodeBetween,
    PathContribution,
    PathWalk,
    ScoredPart,
    chance,
)
from gatas.inference.path_contributions import PathTerms, path_terms
from gatas.inference.trained import TrainedModel
from gatas.inference.walks import AnyGraph, PathWalks, shared_neighbours
from gatas.nn.link_decoders import VectorDecoder
from gatas.nn.link_head import LinkHead
from gatas.sampling.sampler import Mode
from gatas.tasks import LinkPredictor
from gatas.transitions.paths import path_name, path_relations

WALKED_PATHS, SHOWN_WALKS, SHOWN_BETWEEN = 10, 5, 10
"""The strongest paths, whose walks are looked for; walks of each, and nodes between, that are named."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A link that is asked about, by index."""

    source: int
    edge_type: int
    target: int

    @property
    def columns(self) -> tuple[Ints, Ints, Ints]:
        return np.array([self.source]), np.array([self.edge_type]), np.array([self.target])


def scores_by_parts(trained: TrainedModel) -> bool:
    """Whether the log-odds of links are a sum of parts, which can be shown."""
    return isinstance(trained.model, LinkPredictor) and bool(trained.model.parts)


@torch.no_grad()
def explain_link(
    trained: TrainedModel, source: int | str, edge_type: str, target: int | str, *, mode: Mode, draw: int = -1
) -> LinkExplanation:
    """Explain a link of a model whose score is a sum of parts; arguments are `Predictor.explain_link`'s."""
    graph = trained.graph
    link = _Link(graph.index_of(source), index_of_name(edge_type, trained, "type of link"), graph.index_of(target))
    with evaluating(trained.model):
        return _explained(trained, link, mode, draw)


def _explained(trained: TrainedModel, link: _Link, mode: Mode, draw: int) -> LinkExplanation:
    head, name = _head(trained), trained.names[link.edge_type]
    bias = float(head.type_bias[link.edge_type])
    values = {("type", f"the type “{name}”"): bias, **_vector_terms(trained, link)}
    score = _neighbourhood_score(trained, link, mode, draw) if "neighbourhood" in head.parts else None
    if score is not None:
        values["neighbourhood", "the neighbourhoods of both"] = score.value
    found = path_terms(trained, *link.columns) if "paths" in head.parts else None
    steps = trained.model.transitions.setting.num_steps
    if found is not None and not len(found.pair) and not bool(found.itself):
        values["no path", f"no path within {steps} {'step' if steps == 1 else 'steps'}"] = float(found.unreached)
    log_odds = sum(values.values()) + (0.0 if found is None else float(found.contributions.sum()))
    return LinkExplanation(
        source=trained.graph.id_of(link.source),
        edge_type=name,
        target=trained.graph.id_of(link.target),
        answer=Answer(name, chance(log_odds), log_odds),
        known=_is_known(trained, link),
        num_steps=steps,
        terms=tuple(LinkContribution(*key, value, chance(log_odds - value)) for key, value in values.items()),  # type: ignore[arg-type]
        paths=() if found is None else _paths(trained, link, found, log_odds),
        parts=tuple(_parts(head, values, found, log_odds)),
        shared_neighbours=tuple(map(trained.graph.id_of, shared_neighbours(trained.graph, link.source, link.target).tolist())),
        neighbourhood=None if score is None else score.explanation(trained, name, log_odds, mode),
    )


def _head(trained: TrainedModel) -> LinkHead:
    assert isinstance(trained.model, LinkPredictor)
    return trained.model.link_head


def _weight(head: LinkHead, part: str) -> float:
    return float(head.part_weights[[*map(str, head.parts)].index(part)])


def _vector_terms(trained: TrainedModel, link: _Link) -> dict[tuple[str, str], float]:
    """What the nodes' own vectors say, and the popularity of each."""
    head, graph = _head(trained), trained.graph
    if "vectors" not in head.parts:
        return {}
    weight, new = _weight(head, "vectors"), trained.exact.new
    nodes = torch.tensor([link.source, link.target], device=trained.device)
    vectors = gathered(head.vectors.weight, new.vectors, nodes).double()
    popularity = gathered(head.popularity.weight, new.popularity, nodes).double()
    kind = torch.tensor([link.edge_type], device=trained.device)
    score = _decoded(head.vector_decoder, vectors[:1], vectors[1:], kind)
    return {
        ("vectors", "the vectors of both"): weight * float(score),
        ("source", f"{graph.id_of(link.source)} as a source"): weight * float(popularity[0, 0]),
        ("target", f"{graph.id_of(link.target)} as a target"): weight * float(popularity[1, 1]),
    }


def _decoded(decoder: VectorDecoder, source: Tensor, target: Tensor, kind: Tensor) -> Tensor:
    """Return (G,) scores in float64."""
    scores: Tensor = torch.func.functional_call(decoder, {"relations": decoder.relations.double()}, (source, target, kind))
    return scores


@dataclass(frozen=True, slots=True)
class _NeighbourhoodScore:
    """What two neighbourhoods say about a link, as a function of what the encoder's heads give to σ at each end."""

    weight: float
    log_odds: Callable[[Tensor, Tensor], Tensor]
    rows: list[AttendedRows]  # of both ends

    @property
    def value(self) -> float:
        return float(self.log_odds(self.rows[0].output[None], self.rows[1].output[None]))

    def explanation(self, trained: TrainedModel, name: str, log_odds: float, mode: Mode) -> Explanation:
        """Explain both ends: what each neighbour does to the log-odds of the link."""
        source, target = self.rows
        rest = log_odds - self.value
        of_target = AskedAnswer(name, lambda output: rest + self.log_odds(source.output[None], output))
        of_source = AskedAnswer(name, lambda output: rest + self.log_odds(output, target.output[None]))
        return explanation_of(trained, source, of_source, mode, explanation_of(trained, target, of_target, mode))


def _neighbourhood_score(trained: TrainedModel, link: _Link, mode: Mode, draw: int) -> _NeighbourhoodScore:
    head = _head(trained)
    weight = _weight(head, "neighbourhood")
    nodes = torch.tensor([link.source, link.target], device=trained.device)
    rows = attended_rows(trained, nodes, trained.sampler(nodes, draw=draw, mode=mode))

    def log_odds(source: Tensor, target: Tensor) -> Tensor:
        count = max(len(source), len(target))
        ends = zip((source, target), rows, strict=True)
        seen = (trained.exact.represent_output(output, own.inputs) for output, own in ends)
        one, other = (linear(head.projection, representations).expand(count, -1) for representations in seen)
        kinds = torch.full((count,), link.edge_type, device=trained.device)
        return weight * _decoded(head.neighbourhood_decoder, one, other, kinds)

    return _NeighbourhoodScore(weight, log_odds, rows)


def _paths(trained: TrainedModel, link: _Link, found: PathTerms, log_odds: float) -> tuple[PathContribution, ...]:
    """Return what each path adds, the strongest first; those have walks."""
    head, values = _head(trained), found.contributions
    only = len(values) == 1 and not bool(found.itself)
    instead = _weight(head, "paths") * float(head.paths.unreached[link.edge_type]) if only else 0.0
    order = np.lexsort([found.path.numpy(), -values.abs().numpy()])
    return tuple(
        _path(trained, link, found, int(entry), log_odds - float(values[entry]) + instead, with_walks=place < WALKED_PATHS)
        for place, entry in enumerate(order)
    )


def _path(
    trained: TrainedModel, link: _Link, found: PathTerms, entry: int, without: float, *, with_walks: bool
) -> PathContribution:
    graph, path = trained.graph, int(found.path[entry])
    relations = path_relations(path, len(graph.relation_names))
    walks = None
    if with_walks:
        walks = PathWalks(graph, trained.model.transitions.setting, link.source, link.target, relations)
    constant, forth, back = found.terms[entry].tolist()
    return PathContribution(
        kind="path",
        name=path_name(path, graph.relation_names),
        value=float(found.contributions[entry]),
        probability_without=chance(without),
        relations=tuple(graph.relation_names[relation] for relation in relations),
        probability=float(found.forth[entry].exp()),
        probability_back=float(found.back[entry].exp()),
        constant=constant,
        forth=forth,
        back=back,
        num_walks=None if walks is None else walks.count,
        walks=() if walks is None else tuple(_walk(graph, one.nodes, one.share) for one in walks.likeliest(SHOWN_WALKS)),
        num_between=None if walks is None else walks.num_between,
        between=()
        if walks is None
        else tuple(NodeBetween(graph.id_of(one.node), one.step, one.share) for one in walks.between(SHOWN_BETWEEN)),
    )


def _walk(graph: AnyGraph, nodes: tuple[int, ...], share: float) -> PathWalk:
    return PathWalk(tuple(graph.id_of(node) for node in nodes), share)


def _parts(head: LinkHead, values: dict[tuple[str, str], float], found: PathTerms | None, log_odds: float) -> list[ScoredPart]:
    """Add up the terms of each part."""
    kinds = {"vectors": ("vectors", "source", "target"), "neighbourhood": ("neighbourhood",), "paths": ("no path",)}
    parts = []
    for part in head.parts:
        value = sum(term for (kind, _), term in values.items() if kind in kinds[part])
        value += float(found.contributions.sum()) if part == "paths" and found is not None else 0.0
        weight = _weight(head, part)
        parts.append(ScoredPart(part, weight, value / weight if weight else 0.0, value, chance(log_odds - value)))
    return parts


def _is_known(trained: TrainedModel, link: _Link) -> bool:
    """Whether the link is an edge of the graph, or was trained on."""
    targets, graph = trained.dataset.targets, trained.graph
    assert isinstance(targets, LinkTargets)
    train, name = targets.splits.get("train"), trained.names[link.edge_type]
    if train is not None:
        own = (train.source == link.source) & (train.target == link.target) & (train.edge_type == link.edge_type)
        if bool((own & (train.label == 1)).any()):
            return True
    if name not in graph.edge_type_names:
        return False
    edges = graph.edges_from(np.array([link.source]))
    return bool(((edges.target == link.target) & (edges.edge_type == graph.edge_type_names.index(name))).any())
