"""What a run's report shows beyond its metrics: answers on held-out data, worst errors, and floors beside the model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import LinkTargets
from gatas.graph.inputs import Ints
from gatas.inference.explanation import Explanation
from gatas.inference.floors import SharedNeighbourScores, neighbours_mean, neighbours_vote
from gatas.inference.link_explanation import LinkExplanation
from gatas.inference.predictor import Predictor
from gatas.inference.ranking import ranking_scorer
from gatas.inference.report_plots import MOST_CURVES, Scored, calibration_plot, curves_plot, ranks_plot
from gatas.tasks.ranking import LinkRanking, Ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ANSWERS, MOST_RANKED = 5000, 300
"""Nodes or pairs that are answered for the report, and links that are ranked; of more, so many are drawn."""
WORST, REASONS = 5, 4
"""Errors that are shown, and reasons for each."""
VOTE, SHARED = "neighbours' vote", "Adamic–Adar"


@dataclass(frozen=True)
class Floor:
    """A metric of the model, and of something that takes no training."""

    metric: str
    model: float
    name: str
    floor: float


@dataclass(frozen=True)
class WorstError:
    """An answer that is far from the truth, in words, and what spoke most for or against it."""

    words: str
    reasons: list[tuple[str, float]]  # in words, and the effect


@dataclass
class Answers:
    """Answers of a model on the nodes or links of a split."""

    split: str
    count: int
    floors: list[Floor] = field(default_factory=list)
    figures: dict[str, "Figure"] = field(default_factory=dict)
    errors: list[WorstError] = field(default_factory=list)


def answers_of(predictor: Predictor, split: str) -> Answers:
    """Answer the nodes or links of a split, or some of them that are drawn, always the same ones."""
    if isinstance(predictor.dataset.targets, LinkTargets):
        return _links(predictor, split)
    nodes = _drawn(np.asarray(predictor.dataset.splits[split]))
    return _numbers(predictor, split, nodes) if predictor.predicts_numbers else _classes(predictor, split, nodes)


def _drawn(rows: Ints) -> Ints:
    return rows if len(rows) <= MOST_ANSWERS else np.sort(np.random.default_rng(0).choice(rows, MOST_ANSWERS, replace=False))


def _classes(predictor: Predictor, split: str, nodes: Ints) -> Answers:
    targets = predictor.dataset.node_targets
    chances, votes = predictor.predict_classes(nodes).probabilities, neighbours_vote(predictor.dataset, nodes)
    labels = targets.labels[nodes]
    truth = labels > 0 if targets.multi_label else labels[:, None] == np.arange(len(targets.names))
    metric, measure = ("micro-F1", _micro_f1) if targets.multi_label else ("accuracy", _accuracy)
    found = Answers(split, len(nodes), [Floor(metric, measure(chances, truth), VOTE, measure(votes, truth))])
    frequent = np.argsort(-truth.sum(0), kind="stable")[:MOST_CURVES]
    curves = [Scored("all classes", chances.ravel(), truth.ravel())]
    curves += [Scored(targets.names[k], chances[:, k], truth[:, k]) for k in frequent.tolist()]
    found.figures["ROC and PR curves"] = curves_plot(curves, Scored(VOTE, votes.ravel(), truth.ravel()))
    wrong = np.where(truth, 0.0, chances)  # how sure it is of what is not so
    for place in _worst(wrong.max(1) * _missed(chances, truth, targets.multi_label)):
        said = targets.names[int(wrong[place].argmax())]
        true = ", ".join(targets.names[k] for k in np.flatnonzero(truth[place])) or "none"
        node = predictor.graph.id_of(int(nodes[place]))
        words = f"{node} is {true}; the model says {said} ({wrong[place].max():.1%})"
        found.errors.append(WorstError(words, _reasons(predictor.explain(node, answer=said))))
    return found


def _missed(chances: NDArray[Any], truth: NDArray[np.bool_], multi_label: bool) -> NDArray[np.bool_]:
    """Return which nodes have a wrong answer."""
    if multi_label:
        return np.asarray(((chances > 0.5) & ~truth).any(1))
    return np.asarray(~truth[np.arange(len(truth)), chances.argmax(1)])


def _accuracy(scores: NDArray[Any], truth: NDArray[np.bool_]) -> float:
    return float(truth[np.arange(len(truth)), scores.argmax(1)].mean())


def _micro_f1(scores: NDArray[Any], truth: NDArray[np.bool_]) -> float:
    said = scores > 0.5
    return float(2 * (said & truth).sum() / max(1, said.sum() + truth.sum()))


def _numbers(predictor: Predictor, split: str, nodes: Ints) -> Answers:
    targets = predictor.dataset.number_targets
    values, truth = predictor.predict_numbers(nodes).values, targets.values[nodes]
    means = neighbours_mean(predictor.dataset, nodes)
    found = Answers(split, len(nodes))
    for place, name in enumerate(targets.names):
        distances = [float(np.nanmean(np.abs(of[:, place] - truth[:, place]))) for of in (values, means)]
        found.floors.append(Floor(f"MAE of {name}", distances[0], "neighbours' mean", distances[1]))
    for place in _worst(np.nan_to_num(np.abs(values[:, 0] - truth[:, 0]))):
        node = predictor.graph.id_of(int(nodes[place]))
        words = f"{node}: {targets.names[0]} is {truth[place, 0]:.6g}; the model says {values[place, 0]:.6g}"
        found.errors.append(WorstError(words, _reasons(predictor.explain(node))))
    return found


def _links(predictor: Predictor, split: str) -> Answers:
    dataset = predictor.dataset
    pairs, names = dataset.link_targets.splits[split], dataset.names
    rows = _drawn(np.arange(len(pairs)))
    source, kind, target, truth = (getattr(pairs, name)[rows] for name in ("source", "edge_type", "target", "label"))
    chances = np.asarray(predictor.score_indices(source, kind, target).probabilities)
    found, shared = Answers(split, len(rows)), SharedNeighbourScores(dataset.graph)
    curve, floor = Scored("all links", chances, truth == 1), Scored(SHARED, shared.score(source, target), truth == 1)
    if curve.usable:
        frequent = np.argsort(-np.bincount(kind, minlength=len(names)), kind="stable")[:MOST_CURVES].tolist()
        curves = [Scored(names[k], chances[kind == k], truth[kind == k] == 1) for k in frequent]
        found.figures["ROC and PR curves"] = curves_plot([curve, *(curves if len(names) > 1 else [])], floor)
        found.figures["Calibration"] = calibration_plot(curve)
        found.floors.append(Floor("ROC-AUC of all links together", _area(curve), SHARED, _area(floor)))
    ranking = LinkRanking.of_split(dataset, split, MOST_RANKED)
    ranks = [_both(ranking.ranks(scorer, device=predictor.device)) for scorer in (ranking_scorer(predictor.all_nodes), shared)]
    found.floors.append(Floor("MRR", float((1 / ranks[0]).mean()), SHARED, float((1 / ranks[1]).mean())))
    found.figures["Ranks of true links"] = ranks_plot(ranks[0], ranks[1], SHARED, dataset.graph.num_nodes)
    for place in _worst(np.where(truth == 1, 1 - chances, chances)):
        ends = predictor.graph.id_of(int(source[place])), predictor.graph.id_of(int(target[place]))
        what = "a link" if truth[place] == 1 else "no link"
        words = f"{ends[0]} – {names[kind[place]]} → {ends[1]} is {what}; the model says {chances[place]:.1%}"
        found.errors.append(WorstError(words, _reasons(predictor.explain((ends[0], names[kind[place]], ends[1])))))
    return found


def _area(scored: Scored) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(scored.truth, scored.score))


def _both(ranks: Ranks) -> NDArray[np.float64]:
    return np.concatenate([ranks.target, ranks.source])


def _worst(wrong: Sequence[float] | NDArray[Any]) -> list[int]:
    """Return where the largest errors are, of those that are any."""
    order = np.argsort(-np.asarray(wrong), kind="stable")[:WORST]
    return [int(place) for place in order if wrong[place] > 0]


def _reasons(explanation: Explanation | LinkExplanation) -> list[tuple[str, float]]:
    """Return what does most to the answer, for it or against it."""
    if isinstance(explanation, LinkExplanation):
        return [(one.name, one.value) for one in explanation.strongest[:REASONS]]
    found = []
    for end in explanation.ends:
        effects = np.zeros(len(end)) if end.effect is None else end.effect
        for row in range(len(end)):
            over = "itself" if end.step[row] == 0 else f"{end.neighbour[row]} over {end.path[row]}"
            whose = f"{end.target}: " if len(explanation.ends) > 1 else ""
            found.append((f"{whose}{over}", float(effects[row])))
    if explanation.label_spreading is not None:
        found.append(("labels spread over the graph", explanation.label_spreading.effect))
    return sorted(found, key=lambda one: -abs(one[1]))[:REASONS]
