"""Filtered link ranking: where the true end of a held-out link stands among all nodes that could be there.

A query is a node and a type of link whose other end is asked for. Letters: B queries at a time, N nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.datasets import Dataset
from gatas.datasets.held_out import IndexedPairs, joined
from gatas.datasets.permitted_ends import PermittedEnds
from gatas.errors import GatasError
from gatas.graph import NO_INVERSE
from gatas.graph.inputs import Ints
from gatas.progress import ProgressCallback

CELLS = 1 << 22
"""Scores that are held at once: a tensor of (B, N) has no more, unless a single row does."""
BLOCK = 1 << 15
"""Scores that a CPU compares at once: so few that one thread does it, which waits for no other on a busy machine."""
HITS = (1, 3, 10)
"""K of Hits@K."""


class LinkScorer(Protocol):
    """Scores every node as the other end of links; a larger score is a likelier link, and -inf is allowed."""

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) scores: every node as the target of (source, type, ?)."""

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B, N) scores: every node as the source of (?, type, target)."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of links, from 1 on, when either end is asked for; equal scores share the mean of their ranks."""

    edge_type: Ints  # (n,)
    target: NDArray[np.float64]  # (n,) of the true target among all targets
    source: NDArray[np.float64]  # (n,) of the true source among all sources


@dataclass(frozen=True)
class Queries:
    """Distinct queries, ascending by (type, node), with the answers to rank and all answers known; both grouped by query."""

    node: Ints  # (Q,)
    edge_type: Ints  # (Q,)
    answer: Ints  # (n,)
    place: Ints  # (n,) which of the links an answer is of
    answer_starts: Ints  # (Q + 1,)
    known: Ints
    known_starts: Ints  # (Q + 1,)

    @classmethod
    def targets_of(cls, asked: IndexedPairs, known: IndexedPairs) -> "Queries":
        """Ask for the targets of links; of links turned around, for their sources."""
        num_nodes = asked.num_nodes
        query, row = np.unique(asked.kind * num_nodes + asked.source, return_inverse=True)
        order = np.argsort(row, kind="stable")
        every = np.unique(joined([asked, known], num_nodes).key)  # (type, source, target), ascending
        owner = np.searchsorted(query, every // num_nodes).clip(max=len(query) - 1)
        wanted = query[owner] == every // num_nodes
        return cls(
            query % num_nodes,
            query // num_nodes,
            asked.target[order],
            order,
            _starts(row, len(query)),
            every[wanted] % num_nodes,
            _starts(owner[wanted], len(query)),
        )

    def __len__(self) -> int:
        return len(self.node)


def _starts(group: Ints, count: int) -> Ints:
    """Return where each of `count` groups starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=count))])


class LinkRanking:
    """Ranks links among all nodes that may stand at their ends, filtered: other known answers of a query do not count.

    Args:
        asked: The links to rank.
        known: Known links, of all splits and of the graph; undirected ones in both directions.
        permitted: Which nodes may stand at the ends of links of each type; any node if left out.

    >>> ranking = LinkRanking.of_split(dataset, "test")
    >>> ranking_metrics(ranking.ranks(scorer), dataset.names)["mrr"]
    """

    def __init__(self, asked: IndexedPairs, known: IndexedPairs, permitted: PermittedEnds | None = None) -> None:
        self.asked, self.permitted, self.num_nodes = asked, permitted, asked.num_nodes
        self.targets = Queries.targets_of(asked, known)
        self.sources = Queries.targets_of(asked.reversed(), known.reversed())

    @classmethod
    def of_split(cls, dataset: Dataset, split: str, count: int | None = None) -> "LinkRanking":
        """Rank the positives of a split, or `count` of them that are drawn, among all nodes that may stand at their ends.

        Where nodes have types, these are the nodes of the types that known links have there.
        """
        if split not in dataset.link_targets.splits:
            raise GatasError(f"{dataset.name} has no split {split!r}; it has {', '.join(dataset.splits)}.")
        asked = _positives(dataset, split)
        if count is not None and len(asked) > count:
            asked = asked.take(np.sort(np.random.default_rng(0).permutation(len(asked))[:count]))
        if not len(asked):
            raise GatasError(f"{dataset.name}: the split {split!r} has no positives, so there is nothing to rank.")
        known, node_type = known_links(dataset), dataset.nodes.node_type
        if node_type is None:
            return cls(asked, known)
        columns = (known.source, known.kind, known.target)
        return cls(asked, known, PermittedEnds.seen(*columns, len(dataset.names), node_type.astype(np.int64)))

    def ranks(
        self,
        scorer: LinkScorer,
        batch_size: int | None = None,
        *,
        device: str | torch.device = "cpu",
        progress: ProgressCallback = lambda share: None,
    ) -> Ranks:
        """Score the queries in batches and rank the true answers.

        Args:
            scorer: Scores all nodes for some queries.
            batch_size: Queries at a time; fewer where (B, N) scores would be more than `CELLS`, which is the default.
            device: Where the scorer is given queries and gives scores.
            progress: Told how much of it is done, from 0 to 1.
        """
        size = max(1, min(batch_size or CELLS, CELLS // self.num_nodes))
        count, found = len(self.targets) + len(self.sources), []
        sides = ((self.targets, scorer.score_targets, "targets"), (self.sources, scorer.score_sources, "sources"))
        for done, (queries, score, end) in zip((0, len(self.targets)), sides, strict=True):
            side = _Side(queries, self._mask(end, device), self.num_nodes, torch.device(device))
            for first in range(0, len(queries), size):
                side.rank(score, first, min(first + size, len(queries)))
                progress((done + min(first + size, len(queries))) / count)
            found.append(side.ranks.cpu().numpy())
        return Ranks(self.asked.kind, *found)

    def _mask(self, end: str, device: str | torch.device) -> "_Mask | None":
        if self.permitted is None:
            return None
        columns = getattr(self.permitted, end), self.permitted.node_type
        return _Mask(*(torch.tensor(column, device=device) for column in columns))


@dataclass(frozen=True)
class _Mask:
    permitted: Tensor  # (num_link_types, num_node_types)
    node_type: Tensor  # (N,)

    def __call__(self, edge_type: Tensor) -> Tensor:
        """Return (B, N): which nodes may be answers."""
        return self.permitted[edge_type].index_select(1, self.node_type)


class _Side:
    """One end of all links: queries on a device, and the ranks found so far."""

    def __init__(self, queries: Queries, mask: _Mask | None, num_nodes: int, device: torch.device) -> None:
        self.queries, self.mask, self.num_nodes = queries, mask, num_nodes
        rows = (np.repeat(np.arange(len(queries)), np.diff(starts)) for starts in (queries.answer_starts, queries.known_starts))
        columns = (queries.node, queries.edge_type, queries.answer, queries.place, queries.known, *rows)
        moved = [torch.tensor(column, device=device) for column in columns]
        self.node, self.edge_type, self.answer, self.place, self.known, self.answer_row, self.known_row = moved
        self.ranks = torch.zeros(len(queries.answer), dtype=torch.float64, device=device)

    @torch.no_grad()
    def rank(self, score: Callable[[Tensor, Tensor], Tensor], first: int, last: int) -> None:
        """Rank the answers of queries `first` to `last`, which are scored together."""
        scores = score(self.node[first:last], self.edge_type[first:last])
        self._check(scores, (last - first, self.num_nodes))
        start, stop = (int(self.queries.answer_starts[at]) for at in (first, last))
        row = self.answer_row[start:stop] - first
        own, left = scores[row, self.answer[start:stop]], self._left(scores, first, last)
        size = max(1, (min(BLOCK, CELLS) if scores.device.type == "cpu" else CELLS) // self.num_nodes)
        parts = zip(torch.split(row, size), torch.split(own[:, None], size), strict=True)
        self.ranks[self.place[start:stop]] = torch.cat([_ranks(left.index_select(0, rows), mine) for rows, mine in parts])

    def _left(self, scores: Tensor, first: int, last: int) -> Tensor:
        """Make scores of known answers and of nodes that may not be answers NaN, which is neither greater nor equal."""
        start, stop = (int(self.queries.known_starts[at]) for at in (first, last))
        nan = torch.full((), torch.nan, dtype=scores.dtype, device=scores.device)
        left = scores.index_put((self.known_row[start:stop] - first, self.known[start:stop]), nan)
        return left if self.mask is None else left.masked_fill_(~self.mask(self.edge_type[first:last]), torch.nan)

    def _check(self, scores: Tensor, shape: tuple[int, int]) -> None:
        if scores.shape != shape or not scores.is_floating_point():
            raise GatasError(
                f"the scorer returned {scores.dtype} of shape {tuple(scores.shape)}; expected floats of shape {shape}, a score "
                "of each node for each query."
            )
        if bool(scores.amax().isnan()):  # NaN is the maximum of anything with it; a sync for each batch
            raise GatasError(
                "the scorer returned NaN, which has no rank. The model's weights are not finite: train again, with a lower "
                "training.learning_rate."
            )


def _ranks(others: Tensor, own: Tensor) -> Tensor:
    """Return (B,) ranks of (B, 1) scores among (B, N) others, of which NaN does not count; half of the equal ones is better."""
    greater, equal = (found.sum(1, dtype=torch.int32) for found in (others > own, others == own))
    return 1 + greater + equal.double() / 2


def known_links(dataset: Dataset) -> IndexedPairs:
    """Collect the positives of all splits and the graph's edges of the types asked for, undirected ones in both directions.

    Where a type has an inverse, its edges, turned around, are links of the type too.
    """
    graph, names = dataset.graph, dataset.names
    asked = np.array([names.index(name) if name in names else NO_INVERSE for name in graph.edge_type_names], np.int64)
    turned = np.array([asked[inverse] if inverse != NO_INVERSE else NO_INVERSE for inverse in graph.inverse_of], np.int64)
    edges = IndexedPairs(
        graph.source.astype(np.int64), asked[graph.edge_type], graph.neighbour.astype(np.int64), graph.num_nodes
    )
    back = IndexedPairs(edges.target, turned[graph.edge_type], edges.source, graph.num_nodes)
    inverse = np.full(len(names), NO_INVERSE)  # among the types asked for
    inverse[asked[asked >= 0]] = turned[asked >= 0]
    links = joined([_positives(dataset, split) for split in dataset.splits], graph.num_nodes)
    reverses = IndexedPairs(links.target, inverse[links.kind], links.source, graph.num_nodes)
    return joined([links, *(part.take(part.kind >= 0) for part in (edges, back, reverses))], graph.num_nodes)


def _positives(dataset: Dataset, split: str) -> IndexedPairs:
    pairs = dataset.link_targets.splits[split]
    return IndexedPairs(pairs.source, pairs.edge_type, pairs.target, dataset.graph.num_nodes).take(pairs.label == 1)


def ranking_metrics(ranks: Ranks, names: tuple[str, ...]) -> dict[str, Any]:
    """Return MRR and Hits@1, 3, 10 over both directions: of all links, by type, their mean over types, and by direction.

    `count` is the number of links; each is ranked twice. Directions are called by the end that is asked for.
    """
    both = np.stack([ranks.target, ranks.source])  # (2, n)
    by_type = {names[kind]: _summary(both[:, ranks.edge_type == kind]) for kind in np.unique(ranks.edge_type)}
    metrics = [name for name in _summary(both) if name != "count"]
    return {
        **_summary(both),
        "macro": {name: float(np.mean([own[name] for own in by_type.values()])) for name in metrics},
        "by_direction": {"target": _summary(both[:1]), "source": _summary(both[1:])},
        "by_type": by_type,
    }


def _summary(ranks: NDArray[np.float64]) -> dict[str, float]:
    """Return MRR, Hits@K and the number of links, of ranks in one direction or in both."""
    hits = {f"hits_at_{k}": float((ranks <= k).mean()) for k in HITS}
    return {"mrr": float((1 / ranks).mean()), **hits, "count": ranks.shape[1]}
