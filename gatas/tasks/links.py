"""Typed link prediction: is there a link of this type between these two nodes?"""

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.datasets import Dataset, LinkTargets, Pairs
from gatas.datasets.negatives import draw_pairs, pair_keys
from gatas.errors import GatasError
from gatas.graph import NO_INVERSE
from gatas.graph.inputs import Ints
from gatas.nn import PairHead
from gatas.nn.encoder import shapes_are_fixed
from gatas.ops.distinct import distinct
from gatas.sampling import Neighbourhood
from gatas.tasks.batches import Batches, cut, fill, generator_of
from gatas.tasks.learnable import Learnable
from gatas.tasks.metrics import gatne_protocol, mean_logit, paper_protocol
from gatas.tasks.model import Model
from gatas.tasks.settings import ModelSettings
from gatas.transitions import TransitionSource

Negatives = Literal["once", "each epoch"]
GATNE_TYPES = {"twitter": ("1",)}
"""GATNE scores these types only; of other data sets all."""


class LinkPredictor(Model):
    """Predicts whether there are typed links between nodes.

    Args:
        dataset: The data that it is made for.
        transitions: Transition probabilities, where they exist already; computed if left out.
        seed: Weights are a function of it.
        settings: Those of `ModelConfig`, all optional. People change most often: `num_steps` (2), `sample_size` (50),
            `num_heads` (4), `head_size` and `neighbour_size` (50), `dropout` (0.3), `node_embedding_size` (50 where nodes have
            no features, else 0), `max_candidates` and `max_degree` (all), `pair_hidden_size`
            (width of the layers that score a link; 256), `pair_products` (also score by products of both ends; True).

    >>> model = LinkPredictor(dataset, num_steps=3)
    >>> run = gatas.fit(model, dataset, seed=0)
    """

    asked_of_path: Tensor

    def __init__(
        self,
        dataset: Dataset,
        *,
        transitions: TransitionSource | None = None,
        seed: int = 0,
        **settings: Unpack[ModelSettings],
    ) -> None:
        super().__init__(dataset, transitions=transitions, seed=seed, **settings)
        self.register_buffer("asked_of_path", torch.from_numpy(asked_of_path(dataset)), persistent=False)

    def _make_head(self) -> nn.Module:
        sizes = (self.encoder.output_size, len(self.names), self.config.pair_hidden_size)
        return PairHead(*sizes, products=self.config.pair_products)

    def forward(
        self,
        source: Tensor,
        edge_type: Tensor,
        target: Tensor,
        label: Tensor,
        whole: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Return (B,) logits in training, where `label` says which pairs are links that neighbourhoods must not give away.

        Where the pairs are a part of a batch, the links of the `whole` are hidden.
        """
        both = torch.cat([source, target])
        nodes, place = (both, None) if shapes_are_fixed(both) else distinct(both)  # a node of several pairs is seen once
        neighbourhood = self.sampler(nodes)
        if self.config.exclude_targets:
            asked = whole or {"source": source, "edge_type": edge_type, "target": target, "label": label}
            neighbourhood = self._without(nodes, neighbourhood, self._links(**asked))
        representations = self._encoded(nodes, neighbourhood)
        representations = representations if place is None else representations.index_select(0, place)
        return self.score(representations[: len(source)], representations[len(source) :], edge_type)

    def score(self, source: Tensor, target: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B,) logits of the types asked for, from (B, K·F'') representations."""
        logits: Tensor = self.head(source, target)  # (B, num_types)
        return logits.gather(1, edge_type[:, None]).squeeze(1)

    def _links(self, source: Tensor, edge_type: Tensor, target: Tensor, label: Tensor, **_: Tensor) -> Tensor:
        return torch.where(label > 0, self._numbered(source, target, edge_type), -1)

    def _numbered(self, one: Tensor, other: Tensor, asked: Tensor) -> Tensor:
        """Give a link of a type one number, whichever its direction."""
        low, high = torch.minimum(one, other), torch.maximum(one, other)
        return (low * self.graph.num_nodes + high) * len(self.names) + asked

    def _without(self, target: Tensor, neighbourhood: Neighbourhood, links: Tensor) -> Neighbourhood:
        """Empty the slots of neighbours whose path is one of the links alone, in either direction."""
        asked = self.asked_of_path[neighbourhood.path.clamp_max(len(self.asked_of_path) - 1)]  # (B, S)
        number = torch.where(asked >= 0, self._numbered(target[:, None], neighbourhood.node, asked), -2)
        links = links.sort().values
        found = links[torch.searchsorted(links, number).clamp_max(len(links) - 1)] == number
        mask = neighbourhood.mask & ~found
        log_probability = neighbourhood.log_probability.masked_fill(~mask, -torch.inf)
        return Neighbourhood(neighbourhood.node, neighbourhood.path, log_probability, mask)


def asked_of_path(dataset: Dataset) -> Ints:
    """Return the type of link that each path of one step is, forwards or backwards; -1 for none and for all longer paths."""
    graph, asked = dataset.graph, [_asked(name, dataset) for name in dataset.graph.edge_type_names]
    backwards = [asked[inverse] if inverse != NO_INVERSE else NO_INVERSE for inverse in graph.inverse_of]
    return np.array([-1, *(max(pair) for pair in zip(asked, backwards, strict=True)), -1])


def _check_measurable(dataset: Dataset, split: str) -> None:
    pairs = dataset.splits[split]
    links, others = (np.unique(pairs.edge_type[pairs.label == label]) for label in (1, 0))
    if not np.intersect1d(links, others).size:
        raise GatasError(
            f"{dataset.name}: no type in the split {split!r} has both positives and negatives, so nothing can be "
            "measured there. Add pairs with label 0, or leave the split out."
        )


def _asked(name: str, dataset: Dataset) -> int:
    return dataset.names.index(name) if name in dataset.names else -1


class LinkTask:
    """Batches, loss and metrics of link prediction. Where the training split has positives only, negatives are drawn."""

    metric = "roc_auc"

    def __init__(self, dataset: Dataset, batch_size: int, *, negatives: Negatives = "each epoch") -> None:
        if not isinstance(dataset.targets, LinkTargets):
            raise GatasError(f"{dataset.name} is for {dataset.task}; a LinkPredictor needs splits of Pairs.")
        self.dataset, self.targets, self.splits = dataset, dataset.targets, dataset.targets.splits
        self.batch_size, self.negatives = batch_size, negatives
        for name in set(self.splits) - {"train"}:
            _check_measurable(dataset, name)
        self.known = self._known_links()
        self.gatne_kinds = [dataset.names.index(name) for name in GATNE_TYPES.get(dataset.name, dataset.names)]

    def _known_links(self) -> Ints:
        """Collect training links and the graph's edges, which have both directions where it is undirected."""
        train, graph = self.splits["train"], self.dataset.graph
        asked = np.array([_asked(name, self.dataset) for name in graph.edge_type_names], np.int64)
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
        return fill(cut(order, self.batch_size), {**columns, "label": columns["label"].astype(np.float32)})

    def drawn_negatives(self, generator: np.random.Generator) -> dict[str, Ints]:
        """Draw a negative for every training link: a random pair of the same type that is no known link."""
        edge_type = self.splits["train"].edge_type
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

    def monitor(self, logits: Tensor, split: str) -> dict[str, Tensor]:
        """Return loss and metric of M models, from (M, n) logits of the split's pairs."""
        measured = [self.measure(own, split) for own in logits]
        return {name: torch.tensor([one[name] for one in measured]) for name in ("loss", "roc_auc")}

    def measure(self, logits: Tensor, split: str) -> dict[str, Any]:
        """Return loss, the paper's metrics, and GATNE's under a name of their own."""
        pairs = self.splits[split]
        scores, truth = logits.float().cpu(), torch.from_numpy(np.array(pairs.label, np.float32))
        given = (scores.numpy(), np.asarray(pairs.label), np.asarray(pairs.edge_type))
        return {
            "loss": float(F.binary_cross_entropy_with_logits(scores, truth)),
            **paper_protocol(*given, self.dataset.names),
            "gatne": gatne_protocol(*given, self.gatne_kinds),
        }
