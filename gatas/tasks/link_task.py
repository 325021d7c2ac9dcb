"""`LinkTask`: batches, loss and metrics of link prediction, where pairs are links or none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gatas.datasets import Dataset, LinkTargets, Pairs
from gatas.datasets.held_out import IndexedPairs
from gatas.datasets.negatives import draw_pairs, pair_keys
from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.tasks.batches import Batches, cut, fill, generator_of
from gatas.tasks.learnable import Learnable
from gatas.tasks.link_lists import Links
from gatas.tasks.links import LinkPredictor, link_type_of
from gatas.tasks.metrics import gatne_protocol, macro_roc_auc, mean_logit, paper_protocol
from gatas.tasks.ranking import Ranks, ranking_metrics
from gatas.transitions.hidden import assign_folds, link_groups

Negatives = Literal["once", "each epoch"]
NegativeTypes = Literal["as links", "all alike"]
GATNE_TYPES = {"twitter": ("1",)}
"""GATNE scores these types only; of other data sets all."""


def _check_measurable(dataset: Dataset, split: str) -> None:
    pairs = dataset.splits[split]
    links, others = (np.unique(pairs.edge_type[pairs.label == label]) for label in (1, 0))
    if not np.intersect1d(links, others).size:
        raise GatasError(
            f"{dataset.name}: no type in the split {split!r} has both positives and negatives, so nothing can be "
            "measured there. Add pairs with label 0, or leave the split out."
        )


class LinkTask:
    """Batches, loss and metrics of link prediction. Where the training split has positives only, negatives are drawn."""

    lists = False
    """Whether the loss is over lists of nodes."""

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        negatives: Negatives = "each epoch",
        negative_types: NegativeTypes = "as links",
        hidden_folds: int = 0,
    ) -> None:
        if not isinstance(dataset.targets, LinkTargets):
            raise GatasError(f"{dataset.name} is for {dataset.task}; a LinkPredictor needs splits of Pairs.")
        self.dataset, self.targets, self.splits = dataset, dataset.targets, dataset.targets.splits
        self.batch_size, self.negatives, self.negative_types = batch_size, negatives, negative_types
        train = self.splits["train"]
        links = (column[train.label == 1] for column in (train.source, train.edge_type, train.target))
        self.links, self.hidden_folds = Links(*links), hidden_folds
        for name in set(self.splits) - {"train"}:
            _check_measurable(dataset, name)
        self.known = self._known_links()
        self.gatne_kinds = [dataset.names.index(name) for name in GATNE_TYPES.get(dataset.name, dataset.names)]

    def _known_links(self) -> Ints:
        """Collect training links and the graph's edges, which have both directions where it is undirected."""
        train, graph = self.splits["train"], self.dataset.graph
        asked = np.array([link_type_of(name, self.dataset) for name in graph.edge_type_names], np.int64)
        kind = asked[graph.edge_type]
        edges = pair_keys(graph.source, kind, graph.neighbour, graph.num_nodes)[kind >= 0]
        links = pair_keys(train.source, train.edge_type, train.target, graph.num_nodes)[train.label == 1]
        return np.union1d(links, edges)

    def to(self, device: torch.device) -> "LinkTask":
        self.device = device
        return self

    def epoch(self, seed: int, number: int) -> Batches:
        """Shuffle the training pairs, with as many negatives as there are positives."""
        pairs = self.splits["train"]
        columns = {name: getattr(pairs, name) for name in ("source", "edge_type", "target", "label")}
        if pairs.label.all():
            drawn = self.drawn_negatives(generator_of(seed, 1, 0 if self.negatives == "once" else number))
            columns = {name: np.concatenate([column, drawn[name]]) for name, column in columns.items()}
        order = generator_of(seed, 0, number).permutation(len(columns["label"]))
        columns["label"] = columns["label"].astype(np.float32)
        if not self.hidden_folds:
            return fill(cut(order, self.batch_size), columns)
        folds = self._folds_of_pairs(len(order))
        turn = np.argsort(self.fold_order(number))  # which fold is when
        batches = cut(order, self.batch_size, turn[folds])
        return replace(fill(batches, columns), fold=np.array([folds[batch[0]] for batch in batches]))

    @cached_property
    def folds(self) -> Ints:
        """The fold of each training link, the same in every epoch and for every seed."""
        group = link_groups(self.links.source, self.links.edge_type, self.links.target, reverse=self.hides_reverses)
        return assign_folds(len(self.links), max(1, self.hidden_folds), 0, group=group)

    def fold_order(self, epoch: int) -> Ints:
        """Draw the order in which folds are gone through, for all seeds alike."""
        return generator_of(0, 2, epoch).permutation(max(1, self.hidden_folds))

    def _folds_of_pairs(self, count: int) -> Ints:
        """Return the fold of each training pair: a negative that was drawn is in that of the link it was drawn for."""
        label = self.splits["train"].label
        folds = np.arange(len(label)) % self.hidden_folds  # of negatives that were given
        folds[label == 1] = self.folds
        return np.resize(folds, count)

    @cached_property
    def hides_reverses(self) -> bool:
        """Whether a link's reverse is hidden with it: where that is so of all held-out links, though not of training links."""
        graph = self.dataset.graph
        known = IndexedPairs(self.links.source, self.links.edge_type, self.links.target, graph.num_nodes).key
        held = [pairs for name, pairs in self.splits.items() if name != "train"]

        def reversed_share(pairs: Links | Pairs) -> float:
            keys = IndexedPairs(pairs.target, pairs.edge_type, pairs.source, graph.num_nodes).key
            wanted = np.ones(len(keys), np.bool_) if isinstance(pairs, Links) else pairs.label == 1
            return float(np.isin(keys[wanted], known).mean()) if wanted.any() else 0.0

        return reversed_share(self.links) > 0 and not any(reversed_share(pairs) for pairs in held)

    def hide_from(self, model: Learnable) -> None:
        """Have a model hide the links that it is asked for, fold by fold."""
        if self.hidden_folds and isinstance(model, LinkPredictor):
            model.hide_links(self.links, self.folds, reverse=self.hides_reverses)

    def drawn_negatives(self, generator: np.random.Generator) -> dict[str, Ints]:
        """Draw a negative for every training link: a random pair that is no known link, of the same type or of any."""
        edge_type = self.splits["train"].edge_type
        if self.negative_types == "all alike":
            edge_type = generator.integers(len(self.dataset.names), size=len(edge_type))
        source, target = draw_pairs(edge_type, self.known, self.dataset.graph.num_nodes, generator, self.targets.ends)
        return {"source": source, "edge_type": edge_type, "target": target, "label": np.zeros(len(source), np.int8)}

    def nodes_of(self, split: str) -> Ints:
        """Return the nodes that a split's pairs are of, each once."""
        pairs: Pairs = self.splits[split]
        return np.union1d(pairs.source, pairs.target)

    def pairs_of(self, split: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return sources and targets as positions among `nodes_of`, and the types asked for."""
        pairs, nodes = self.splits[split], self.nodes_of(split)
        columns = (np.searchsorted(nodes, pairs.source), np.searchsorted(nodes, pairs.target), np.array(pairs.edge_type))
        source, target, edge_type = (torch.from_numpy(column) for column in columns)
        return source, target, edge_type

    def split(self, name: str, batch_size: int) -> Batches:
        """Return the nodes of a split in batches; each is represented once, however many pairs it is in."""
        return fill(cut(self.nodes_of(name), batch_size), {"target": None})

    def objective(self, model: Learnable, weight: Tensor, *, whole: Mapping[str, Tensor], **given: Tensor) -> Tensor:
        """Return what a step makes smaller: these pairs' part of the mean over the `whole` batch, which processes may share."""
        shared = {} if whole["weight"] is weight else {"whole": whole}
        return self.loss(model(**given, **shared).float(), given["label"], weight, whole["weight"])

    def loss(self, logits: Tensor, label: Tensor, weight: Tensor, whole: Tensor | None = None) -> Tensor:
        """Return the mean over a batch's pairs, each of its own type; or their part of it where `whole` has more weights."""
        losses = F.binary_cross_entropy_with_logits(logits, label, reduction="none")
        return (losses * weight).sum() / (weight if whole is None else whole).sum()

    def mean_logits(self, logits: Tensor) -> Tensor:
        """Return logits of the mean probability over draws, (R, …)."""
        return logits[0] if len(logits) == 1 else mean_logit(logits)

    @property
    def metric(self) -> str:
        """What early stopping looks at, unless it is the loss."""
        return "roc_auc"

    def combine(self, model: Learnable, representations: Tensor) -> None:
        """Fit what a model's parts count to validation links, where they were not learned together."""

    def rank(self, model: Learnable, representations: Tensor, split: str, count: int | None = None) -> Ranks | None:
        """Rank links of a split, at most `count` of them, by what all nodes are represented by; None: not ranked."""
        return None

    def monitor(self, logits: Tensor, split: str, ranks: Sequence[Ranks | None] = ()) -> dict[str, Tensor]:
        """Return loss and metrics of M models, from (M, n) logits of the split's pairs, and ranks of its links if any."""
        several = [self._compared(own, split) for own in logits]
        found = {
            "loss": torch.tensor([self._loss_of(scores, truth) for scores, truth, _ in several]),
            "roc_auc": torch.tensor([macro_roc_auc(*one, len(self.dataset.names)) for one in several]),
        }
        mrr = [ranking_metrics(one, self.dataset.names)["mrr"] for one in ranks if one is not None]
        return {**found, "mrr": torch.tensor(mrr)} if mrr else found

    def measure(self, logits: Tensor, split: str, ranks: Ranks | None = None) -> dict[str, Any]:
        """Return loss, the paper's metrics, and GATNE's and those of ranking under names of their own."""
        given = self._compared(logits, split)
        return {
            "loss": self._loss_of(*given[:2]),
            **paper_protocol(*given, self.dataset.names),
            "gatne": gatne_protocol(*given, self.gatne_kinds),
            **({} if ranks is None else {"ranking": ranking_metrics(ranks, self.dataset.names)}),
        }

    def _compared(self, logits: Tensor, split: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return scores, labels and types of a split's pairs, on the host."""
        pairs = self.splits[split]
        return logits.float().cpu().numpy(), np.asarray(pairs.label), np.asarray(pairs.edge_type)

    def _loss_of(self, scores: NDArray[Any], label: NDArray[Any]) -> float:
        truth = torch.from_numpy(np.array(label, np.float32))
        return float(F.binary_cross_entropy_with_logits(torch.from_numpy(scores), truth))
