"""`explain`: what every neighbour, over every typed path, does to an answer (eqs. 3, 4).

Before σ each head's output is a sum over rows, Σ α d, so that this is bookkeeping; what a row does to the answer after σ is
found by leaving it out. S rows, K heads, F'' head size, G groups of rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.inference.attention import evaluating, scores
from gatas.inference.explanation import (
    Answer,
    Explanation,
    ExplanationPart,
    Float64s,
    NumberAnswer,
    SpreadLabels,
    shares_of,
)
from gatas.inference.trained import TrainedModel
from gatas.sampling import Neighbourhood
from gatas.sampling.sampler import Mode
from gatas.tasks import NodeRegressor
from gatas.transitions.paths import path_length, path_name, path_relations

CERTAIN = 100.0
"""Log-odds where there is but one answer to give."""


@torch.no_grad()
def explain(trained: TrainedModel, asked: Any, *, mode: Mode | None, draw: int, answer: str | None) -> Explanation:
    """Explain the class or number of a node, or a link (source, type, target); arguments are `Predictor.explain`'s."""
    chosen = checked_mode(trained, mode)
    with evaluating(trained.model):
        if isinstance(asked, tuple | list):
            return _explain_link(trained, asked, chosen, draw, answer)
        return _explain_node(trained, asked, chosen, draw, answer)


def checked_mode(trained: TrainedModel, mode: Mode | None) -> Mode:
    """Return which neighbours are looked at: those asked for, or those that answers look at."""
    chosen: Mode = trained.mode if mode is None else mode
    if chosen not in get_args(Mode):
        raise GatasError(f"mode is {mode!r}; expected 'sample', 'top' or 'all'.")
    return chosen


def _explain_node(trained: TrainedModel, asked: Any, mode: Mode, draw: int, answer: str | None) -> Explanation:
    if trained.predicts_links and answer is not None:
        raise GatasError("this model predicts links: ask for (source, type, target), where the type is the answer.")
    if not trained.exact.encodes:
        return _without_rows(trained, trained.graph.index_of(asked), mode)
    (found,) = _looked_at(trained, [asked], mode, draw)
    if trained.predicts_links:
        return explanation_of(trained, found, None, mode)

    added = trained.exact.spread_labels(torch.tensor([found.target], device=trained.device))

    def encoded(output: Tensor) -> Tensor:
        return trained.exact.apply_head(trained.exact.represent_output(output, found.inputs))

    def outputs_of(output: Tensor) -> Tensor:
        return encoded(output) if added is None else encoded(output) + added

    if trained.predicts_numbers:
        return explanation_of(trained, found, _asked_number(trained, outputs_of, answer), mode)
    number = int(outputs_of(found.output[None]).argmax()) if answer is None else index_of_name(answer, trained, "class")
    of_answer = AskedAnswer(trained.names[number], lambda output: _log_odds(trained, outputs_of(output), number))
    explanation = explanation_of(trained, found, of_answer, mode)
    if added is None:
        return explanation
    own = _log_odds(trained, encoded(found.output[None]), number).item()
    assert isinstance(explanation.answer, Answer)
    return replace(explanation, label_spreading=SpreadLabels(own, explanation.answer.log_odds - own))


def _asked_number(trained: TrainedModel, outputs_of: Callable[[Tensor], Tensor], answer: str | None) -> "AskedAnswer":
    """Return the number that is asked for, the first where none is named, as a function of what the heads give."""
    model, number = trained.model, 0 if answer is None else index_of_name(answer, trained, "number")
    assert isinstance(model, NodeRegressor)
    return AskedAnswer(trained.names[number], lambda output: model.in_units(outputs_of(output))[:, number], is_number=True)


def _explain_link(trained: TrainedModel, asked: Any, mode: Mode, draw: int, answer: str | None) -> Explanation:
    if not trained.predicts_links:
        what = "which number a node has" if trained.predicts_numbers else "of what class a node is"
        raise GatasError(f"this model says {what}: ask for the id of one, not for the link {asked!r}.")
    if len(asked) != 3 or answer is not None:
        raise GatasError(f"{asked!r} came; a link is (source, type, target), and its type is the answer.")
    name, number = asked[1], index_of_name(asked[1], trained, "type of link")
    source, target = _looked_at(trained, [asked[0], asked[2]], mode, draw)

    def log_odds(of_source: Tensor, of_target: Tensor) -> Tensor:
        count = max(len(of_source), len(of_target))
        ends = ((of_source, source.inputs), (of_target, target.inputs))
        both = (trained.exact.represent_output(*end).expand(count, -1) for end in ends)
        return trained.exact.apply_head(*both)[:, number]

    of_target = AskedAnswer(name, lambda output: log_odds(source.output[None], output))
    of_source = AskedAnswer(name, lambda output: log_odds(output, target.output[None]))
    return explanation_of(trained, source, of_source, mode, explanation_of(trained, target, of_target, mode))


def _without_rows(trained: TrainedModel, node: int, mode: Mode) -> Explanation:
    """Say why a node has no rows where links are scored without neighbourhoods: the encoder's attention is untrained there."""
    none, by_head, size = np.zeros(0), (0, trained.model.config.num_heads), trained.model.config.head_size
    return Explanation(
        target=trained.graph.id_of(node),
        neighbour=(),
        path=(),
        relations=(),
        step=np.zeros(0, np.int64),
        probability=none,
        weights=np.zeros(by_head),
        contributions=np.zeros((*by_head, size)),
        answer=None,
        effect=None,
        paths=(),
        depths=(),
        depth_coefficients=none,
        mode=mode,
        num_candidates=0,
        coverage=0.0,
        note=f"Links of this model are scored by {' and '.join(trained.exact.parts)}: no neighbourhoods are looked at.",
    )


@dataclass(frozen=True, slots=True)
class AttendedRows:
    """The rows of one target, the most attended to first."""

    target: int
    node: Tensor  # (S,)
    path: Tensor  # (S,)
    probability: Tensor  # (S,)   P
    odds: Tensor  # (S, K)        α but for a factor
    values: Tensor  # (S, K, F'') d
    inputs: Tensor  # (R + F,)    h of the target
    means: Tensor  # (S, D)       what each row puts into the mean of its path
    num_candidates: int
    coverage: float

    @property
    def weights(self) -> Tensor:
        """Return α, (S, K)."""
        return self.odds / self.odds.sum(0)

    @property
    def output(self) -> Tensor:
        """Return (K·F'' + D,), what heads and means give to σ."""
        heads = torch.einsum("sk,skf->kf", self.weights, self.values).flatten()
        return torch.cat([heads, self._sum_of_means(torch.zeros_like(self.path), 1)[0][0]])

    def output_without(self, group: Tensor, num_groups: int) -> Tensor:
        """Return (G, K·F'' + D), the output with each group of rows left out; zeros where no row is left, as in the encoder."""
        parts = torch.cat([self.values, torch.ones_like(self.values[..., :1])], -1) * self.odds[..., None]
        sums = parts.new_zeros(num_groups, *parts.shape[1:]).index_add_(0, group, parts)  # (G, K, F'' + 1)
        nothing = torch.zeros_like(sums[:1])
        before = torch.cat([nothing, sums[:-1]]).cumsum(0)  # all but one by sums, as a difference would lose digits
        after = torch.cat([sums[1:], nothing]).flip(0).cumsum(0).flip(0)
        others = before + after
        heads = others[..., :-1] / others[..., -1:].clamp_min(torch.finfo(others.dtype).tiny)
        total, changes = self._sum_of_means(group, num_groups)
        return torch.cat([heads.flatten(1), total + changes], dim=1)

    def _sum_of_means(self, group: Tensor, num_groups: int) -> tuple[Tensor, Tensor]:
        """Return (1, D) the sum over paths of their means, and (G, D) what it changes by without each group of rows."""
        paths, of_path = torch.unique(self.path, return_inverse=True)
        pairs, of_pair = torch.unique(of_path * num_groups + group, return_inverse=True)
        rows = torch.cat([self.means, torch.ones_like(self.means[:, :1])], -1) if self.means.shape[1] else self.means
        weighted = rows * self.probability[:, None].to(rows)
        by_path = weighted.new_zeros(len(paths), weighted.shape[1]).index_add_(0, of_path, weighted)
        by_pair = weighted.new_zeros(len(pairs), weighted.shape[1]).index_add_(0, of_pair, weighted)
        if not self.means.shape[1]:
            return by_path.sum(0, keepdim=True), by_path.new_zeros(num_groups, 0)
        path = torch.div(pairs, num_groups, rounding_mode="floor")
        counts = [torch.bincount(place, minlength=len(sums)) for place, sums in ((of_path, by_path), (of_pair, by_pair))]
        left, before = by_path[path] - by_pair, by_path[:, :-1] / by_path[:, -1:]
        some = (counts[0][path] > counts[1])[:, None]
        after = torch.where(some, left[:, :-1] / torch.where(some, left[:, -1:], 1), 0)
        changes = by_path.new_zeros(num_groups, after.shape[1]).index_add_(0, pairs % num_groups, after - before[path])
        return before.sum(0, keepdim=True), changes


def attended_rows(trained: TrainedModel, targets: Tensor, neighbourhood: Neighbourhood) -> list[AttendedRows]:
    """Return the rows of each target."""
    logits, values, index, inputs, means = scores(trained.exact, targets, neighbourhood)
    counts = trained.sampler.num_candidates(targets).tolist()
    coverage = trained.sampler.coverage(targets, neighbourhood).clamp_max(1).tolist()
    found = []
    for k, target in enumerate(targets.tolist()):
        used = neighbourhood.mask[k]
        node, path, own = neighbourhood.node[k][used], neighbourhood.path[k][used], logits[k][used]
        odds = (own - own.amax(0)).exp() if len(own) else own
        probability = neighbourhood.log_probability[k][used].double().exp() / (counts[k] if trained.sampler.uniform else 1)
        order, own_values = _order(node, path, (odds / odds.sum(0)).mean(1)), values[index[k][used]]
        rows = (node[order], path[order], probability[order], odds[order], own_values[order], inputs[k], means[k][used][order])
        found.append(AttendedRows(target, *rows, counts[k], coverage[k]))
    return found


def _looked_at(trained: TrainedModel, asked: list[Any], mode: Mode, draw: int) -> list[AttendedRows]:
    targets = torch.tensor([trained.graph.index_of(one) for one in asked], device=trained.device)
    return attended_rows(trained, targets, trained.sampler(targets, draw=draw, mode=mode))


def _order(node: Tensor, path: Tensor, attention: Tensor) -> Tensor:
    """Order rows by attention, and where that is the same by path and node."""
    order = np.lexsort([column.cpu().numpy() for column in (node, path, -attention)])
    return torch.from_numpy(order).to(node.device)


@dataclass(frozen=True, slots=True)
class AskedAnswer:
    """An answer, and its log-odds or number as a function of what the heads give to σ: (G, K, F'') to (G,)."""

    name: str
    log_odds: Callable[[Tensor], Tensor]
    is_number: bool = False

    def effect(self, seen: AttendedRows, group: Tensor, num_groups: int) -> Float64s:
        """Return (G,) log-odds, or the number, less what they are without each group of rows."""
        effect = self.log_odds(seen.output[None]) - self.log_odds(seen.output_without(group, num_groups))
        return np.asarray(effect.cpu().numpy())

    def answer(self, seen: AttendedRows) -> Answer | NumberAnswer:
        log_odds = self.log_odds(seen.output[None])
        if self.is_number:
            return NumberAnswer(self.name, log_odds.item())
        return Answer(self.name, log_odds.sigmoid().item(), log_odds.item())


def _log_odds(trained: TrainedModel, logits: Tensor, number: int) -> Tensor:
    """Return ln p / (1 - p) of one class, whether nodes have one each or any number, at the model's temperature."""
    logits = logits / trained.temperature
    if trained.dataset.node_targets.multi_label:
        return logits[:, number]
    others = logits.clone()
    others[:, number] = -torch.inf
    return (logits[:, number] - others.logsumexp(1)).nan_to_num(posinf=CERTAIN)


def index_of_name(name: object, trained: TrainedModel, what: str) -> int:
    """Return the number of a class or of a type of link; `what` it is called in the message if there is none."""
    if name in trained.names:
        return trained.names.index(str(name))
    near = get_close_matches(str(name), trained.names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(trained.names)}."
    raise GatasError(f"there is no {what} {name!r}.{hint}")


def explanation_of(
    trained: TrainedModel, seen: AttendedRows, asked: AskedAnswer | None, mode: Mode, other: Explanation | None = None
) -> Explanation:
    """Explain one node by its rows, with ids and names; `other` is the explanation of the link's target."""
    graph, path = trained.graph, seen.path.cpu().numpy()
    names = graph.relation_names
    step = np.where(path == 0, 0, path_length(path, len(names)))
    contributions = (seen.weights[..., None] * seen.values).cpu().numpy()
    columns = [seen.probability.cpu().numpy(), seen.weights.mean(1).cpu().numpy(), shares_of(contributions)]
    paths, of_path = np.unique(path, return_inverse=True)
    path_names = [path_name(own, names) for own in paths.tolist()]
    relations = [tuple(names[relation] for relation in path_relations(own, len(names))) for own in paths.tolist()]
    by_path = _parts(seen, asked, columns, of_path, path_names)
    return Explanation(
        target=graph.id_of(seen.target),
        neighbour=tuple(graph.id_of(node) for node in seen.node.tolist()),
        path=tuple(path_names[k] for k in of_path.tolist()),
        relations=tuple(relations[k] for k in of_path.tolist()),
        step=step,
        probability=columns[0],
        weights=seen.weights.cpu().numpy(),
        contributions=contributions,
        answer=None if asked is None else asked.answer(seen),
        effect=None if asked is None else asked.effect(seen, torch.arange(len(path), device=seen.path.device), len(path)),
        paths=tuple(sorted(by_path, key=lambda part: -part.attention)),
        depths=tuple(_parts(seen, asked, columns, step, _depth_names(trained.model.transitions.setting.num_steps))),
        depth_coefficients=trained.sampler.depth_coefficients.double().cpu().numpy(),
        mode=mode,
        num_candidates=seen.num_candidates,
        coverage=seen.coverage,
        other=other,
    )


def _depth_names(num_steps: int) -> list[str]:
    return ["itself", "1 step", *(f"{step} steps" for step in range(2, num_steps + 1))]


def _parts(
    seen: AttendedRows, asked: AskedAnswer | None, columns: list[Float64s], group: Ints, names: list[str]
) -> list[ExplanationPart]:
    """Sum over the rows of each group, and measure what all of them do together."""
    sums = [np.bincount(group, column, len(names)).tolist() for column in columns]
    counts = np.bincount(group, minlength=len(names)).tolist()
    place = torch.from_numpy(group).to(seen.path.device)
    effects = [None] * len(names) if asked is None else asked.effect(seen, place, len(names)).tolist()
    return [ExplanationPart(*values) for values in zip(names, counts, *sums, effects, strict=True)]
