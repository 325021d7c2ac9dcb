"""`LinkListTask`: links learned by finding either end among many nodes, each part of the score by itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gatas.datasets import Dataset
from gatas.datasets.permitted_ends import PermittedEnds
from gatas.graph.inputs import Ints
from gatas.ops.mark_known import mark_known
from gatas.tasks.batches import Batches, generator_of
from gatas.tasks.learnable import Learnable
from gatas.tasks.link_lists import chance_of_candidates, list_batches
from gatas.tasks.link_scorer import PartsScorer
from gatas.tasks.link_task import LinkTask
from gatas.tasks.links import LinkPredictor
from gatas.tasks.part_weights import Examples, fit_bias, fit_part_weights
from gatas.tasks.ranking import LinkRanking, Ranks, known_links

FITTED_LINKS, FITTED_NODES = 1000, 4096
"""Validation links, and nodes that they are told apart from, that the weights of parts are fitted to."""


class LinkListTask(LinkTask):
    """Batches, loss and metrics of link prediction by lists: the true end of a link among many nodes, by softmax.

    Args:
        dataset: Data with training links.
        batch_size: Links in a batch.
        num_negatives: Nodes drawn for each batch, beside the ends of its links.
        negatives_by: Whether nodes are drawn alike, or half of them by their degree.
        hidden_folds: Parts that links are dealt into, each hidden from the graph while it is asked for; 0: nothing is.
        n3: Weight of the cubed vectors that links are scored by.
    """

    lists = True

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        num_negatives: int = 1000,
        negatives_by: Literal["uniform", "degree"] = "uniform",
        hidden_folds: int = 0,
        n3: float = 0.0,
    ) -> None:
        super().__init__(dataset, batch_size, hidden_folds=hidden_folds)
        self.num_negatives, self.negatives_by, self.n3 = num_negatives, negatives_by, n3
        self.num_nodes, self.num_types = dataset.graph.num_nodes, len(dataset.names)

    @property
    def metric(self) -> str:
        return "mrr" if self.targets.ranked else "roc_auc"

    def to(self, device: torch.device) -> "LinkListTask":
        super().to(device)
        self.known_ends = [self._known_ends(backward).to(device) for backward in (False, True)]
        self.permitted = self._permitted()
        self.log_chance = self._log_chance()
        return self

    def epoch(self, seed: int, number: int) -> Batches:
        """Shuffle the training links, fold by fold, with nodes to tell their ends from."""
        sizes = (self.batch_size, self.num_negatives)
        order = self.fold_order(number)
        return list_batches(self.links, self.folds, order, *sizes, self._by_degree, self.pool, generator_of(seed, 0, number))

    def objective(self, model: Learnable, weight: Tensor, *, whole: Mapping[str, Tensor], **given: Tensor) -> Tensor:
        """Return what a step makes smaller: these links' part of the mean over the `whole` batch."""
        assert isinstance(model, LinkPredictor)
        return (self.losses(model, **given) * weight).sum() / whole["weight"].sum()

    def losses(
        self,
        model: LinkPredictor,
        source: Tensor,
        edge_type: Tensor,
        target: Tensor,
        source_slot: Tensor,
        target_slot: Tensor,
        candidates: Tensor,
    ) -> Tensor:
        """Return (B,) how far each part is from finding each end of the links, added up."""
        nodes = model.represent(candidates)
        slot = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=nodes.device)
        slot[candidates] = torch.arange(len(candidates), dtype=torch.int32, device=nodes.device)
        sides = ((source, source_slot, target_slot, False), (target, target_slot, source_slot, True))
        total = torch.zeros(len(source), device=nodes.device)
        for query, own, answer, backward in sides:
            scores = model.candidate_scores(query, edge_type, nodes[own], nodes, slot, backward=backward)
            hidden = self._others(edge_type, query, slot, answer, len(candidates), backward)
            permitted = self._may_answer(edge_type, candidates, answer, backward)
            for part, table in zip(model.parts, scores, strict=True):
                left = self.as_over_all_nodes(table, candidates, answer)
                left = left if permitted is None else left.masked_fill(~permitted, -torch.inf)
                left = left.masked_fill(hidden, -torch.inf) if part == "paths" else left
                total = total + F.cross_entropy(left.float(), answer, reduction="none")
        if not self.n3:
            return total
        head = model.link_head
        return total + self.n3 * head.cubes(head.split(nodes[source_slot]), head.split(nodes[target_slot]), edge_type)

    def as_over_all_nodes(self, scores: Tensor, candidates: Tensor, answer: Tensor) -> Tensor:
        """Raise (B, C) scores of candidates that few batches have, so that the softmax is as over all nodes.

        Ends of a batch's links are among its candidates, so popular nodes are far more often than others: without this they
        would learn to be as unlikely as they are frequent. The answer is there in any case.
        """
        if self.log_chance is None:
            return scores
        own = scores.gather(1, answer[:, None])
        return (scores - self.log_chance[candidates]).scatter(1, answer[:, None], own)

    def _others(self, edge_type: Tensor, query: Tensor, slot: Tensor, answer: Tensor, count: int, backward: bool) -> Tensor:
        """(B, C) which candidates are other known answers of a query: its links are in the graph, as no test link is.

        Vectors are told apart from them all the same, which keeps them from learning their own links by heart.
        """
        return self._known(edge_type, query, slot, count, backward).scatter(1, answer[:, None], False)

    def _known(self, edge_type: Tensor, query: Tensor, slot: Tensor, count: int, backward: bool) -> Tensor:
        """(B, C) which candidates are known answers of a query.

        Where reverses are hidden with links, also those whose link leads to the query: the answer's reverse is hidden, so
        paths would learn from all others that a link speaks against its reverse.
        """
        ends = self.known_ends if self.hides_reverses else [self.known_ends[backward]]
        marks = [known.among(edge_type * self.num_nodes + query, slot, count) for known in ends]
        found: Tensor = marks[0] if len(marks) == 1 else marks[0] | marks[1]
        return found

    def _may_answer(self, edge_type: Tensor, candidates: Tensor, answer: Tensor, backward: bool) -> Tensor | None:
        """(B, C) which candidates are nodes of a type that such links have at that end; None: all are."""
        if self.permitted is None:
            return None
        node_type, ends = self.permitted[0], self.permitted[2 if backward else 1]
        allowed: Tensor = ends[edge_type].index_select(1, node_type[candidates])
        return allowed.scatter(1, answer[:, None], True)

    @cached_property
    def _by_degree(self) -> NDArray[np.float64] | None:
        """Cumulated chances of the pool's nodes to be drawn; None: all alike."""
        if self.negatives_by == "uniform":
            return None
        return np.cumsum(np.diff(self.dataset.graph.indptr)[self.pool].astype(np.float64))

    def _log_chance(self) -> Tensor | None:
        """(N,) ln of how likely each node is among the candidates of a batch; None where all always are."""
        found = chance_of_candidates(self.links, self.batch_size, self.num_negatives, self._by_degree, self.pool)
        if found is None:
            return None
        chance = np.ones(self.num_nodes)
        chance[self.pool] = found
        return torch.tensor(np.log(chance), dtype=torch.float32, device=self.device)

    @cached_property
    def pool(self) -> Ints:
        """The nodes that links are told apart from, ascending: those of types that links of any type asked for have."""
        ends = self._ends
        if ends is None:
            return np.arange(self.num_nodes)
        asked: NDArray[np.bool_] = np.any(ends.sources | ends.targets, axis=0)  # (node types,)
        found: Ints = np.flatnonzero(asked[ends.node_type])
        return found

    @cached_property
    def _ends(self) -> PermittedEnds | None:
        node_type = self.dataset.nodes.node_type
        if node_type is None:
            return None
        known = known_links(self.dataset)
        return PermittedEnds.seen(known.source, known.kind, known.target, self.num_types, node_type.astype(np.int64))

    def _permitted(self) -> tuple[Tensor, Tensor, Tensor] | None:
        ends = self._ends
        if ends is None:
            return None
        tensors = (torch.tensor(array, device=self.device) for array in (ends.node_type, ends.targets, ends.sources))
        types, targets, sources = tensors
        return types, targets, sources

    def _known_ends(self, backward: bool) -> "KnownEnds":
        first, last = (self.links.target, self.links.source) if backward else (self.links.source, self.links.target)
        return KnownEnds.of(self.links.edge_type * self.num_nodes + first, last, self.num_nodes)

    def nodes_of(self, split: str) -> Ints:
        """Return all nodes: links are told apart from any."""
        return np.arange(self.num_nodes)

    @torch.no_grad()
    def combine(self, model: Learnable, representations: Tensor) -> None:
        """Fit what each part counts to validation links, and what makes their sum into log-odds."""
        assert isinstance(model, LinkPredictor)
        scorer, head = PartsScorer(model, representations), model.link_head
        if len(model.parts) > 1:
            head.part_weights.copy_(fit_part_weights(self._examples(scorer)))
        pairs = self.splits["valid"]
        columns = (pairs.source, pairs.target, pairs.edge_type, pairs.label)
        source, target, edge_type, label = (torch.tensor(column, device=self.device) for column in columns)
        head.type_bias.zero_()
        logits = model.score(representations[source], representations[target], edge_type, (source, target))
        slope, bias = fit_bias(logits, label, edge_type, self.num_types)
        head.part_weights.mul_(slope.to(self.device))
        head.type_bias.copy_(bias)

    def _examples(self, scorer: PartsScorer) -> list[Examples]:
        """Score some validation links by each part, among nodes that are drawn once; other known answers do not count."""
        links, nodes = self._fitted
        found = []
        for backward in (False, True):
            names = ("target", "edge_type", "source") if backward else ("source", "edge_type", "target")
            columns = [torch.tensor(links[name], device=self.device) for name in names]
            parts = []
            for query, edge_type, answer in zip(*(torch.split(column, 100) for column in columns), strict=True):
                parts.append(self._scores(scorer, query, edge_type, answer, nodes, backward))
            scores = torch.cat(parts, 1)
            found.append(Examples(scores, torch.zeros(scores.shape[1], dtype=torch.int64, device=self.device)))
        return found

    def _scores(
        self, scorer: PartsScorer, query: Tensor, edge_type: Tensor, answer: Tensor, nodes: Tensor, backward: bool
    ) -> Tensor:
        """(parts, Q, 1 + nodes): the true answer's scores, then those of the nodes that it is told apart from."""
        scores = torch.stack(scorer.parts(query, edge_type, backward=backward))
        hidden = self._known(edge_type, query, scorer.slot, self.num_nodes, backward)
        permitted = self._may_answer(edge_type, torch.arange(self.num_nodes, device=self.device), answer, backward)
        hidden = hidden if permitted is None else hidden | ~permitted
        own = scores.gather(2, answer[None, :, None].expand(len(scores), -1, 1))
        others = scores.masked_fill(hidden.scatter(1, answer[:, None], True), -torch.inf)[:, :, nodes]
        return torch.cat([own, others], 2)

    @cached_property
    def _fitted(self) -> tuple[dict[str, Ints], Tensor]:
        """Validation links that weights are fitted to, and nodes that they are told apart from."""
        generator, pairs = generator_of(0, 3), self.splits["valid"]
        rows = generator.permutation(np.flatnonzero(pairs.label == 1))[:FITTED_LINKS]
        nodes = generator.permutation(self.pool)[:FITTED_NODES]
        links = {name: getattr(pairs, name)[rows] for name in ("source", "edge_type", "target")}
        return links, torch.tensor(np.sort(nodes), device=self.device)

    def rank(self, model: Learnable, representations: Tensor, split: str, count: int | None = None) -> Ranks | None:
        if not self.targets.ranked:
            return None
        assert isinstance(model, LinkPredictor)
        if (split, count) not in self._rankings:
            self._rankings[split, count] = LinkRanking.of_split(self.dataset, split, count)
        return self._rankings[split, count].ranks(PartsScorer(model, representations), device=self.device)

    @cached_property
    def _rankings(self) -> dict[Any, LinkRanking]:
        return {}


@dataclass(frozen=True)
class KnownEnds:
    """Where known links lead from each query, a type and a node as one number; as large as links are many."""

    queries: Tensor  # (Q,) ascending, each once
    starts: Tensor  # (Q + 2,) of a query's ends among `nodes`; after the last query one without any
    nodes: Tensor

    @classmethod
    def of(cls, query: Ints, node: Ints, num_nodes: int) -> "KnownEnds":
        key = np.unique(query * num_nodes + node)
        queries, first = np.unique(key // num_nodes, return_index=True)
        columns = (queries, np.concatenate([first, [len(key), len(key)]]), key % num_nodes)
        return cls(*(torch.from_numpy(column) for column in columns))

    def to(self, device: torch.device) -> "KnownEnds":
        return KnownEnds(self.queries.to(device), self.starts.to(device), self.nodes.to(device))

    def among(self, query: Tensor, slot: Tensor, count: int) -> Tensor:
        """(B, C) which of `count` candidates, whose places `slot` has, known links of queries lead to."""
        place = torch.searchsorted(self.queries, query)
        found = self.queries[place.clamp_max(len(self.queries) - 1)] == query
        row = torch.where(found, place, len(self.queries))
        marks: Tensor = mark_known(self.starts, self.nodes, torch.zeros_like(row), row, slot, count)
        return marks
