"""Skip-gram with negative sampling over typed walks: what MVE, MNE and GATNE-T have in common, and how they are trained.

Settings are those of GATNE (THUDM/GATNE, src/utils.py), by which its paper ran all three: 200 dimensions, 20 walks of length
10 from each node of each type, a window of 5 (two to either side), steps whose pairs share 5 negatives, Adam, and early
stopping on validation data: by macro ROC-AUC, and by MRR where links are ranked. Steps are larger than theirs: 4,096 pairs at
a rate of 0.005 instead of 64 at 0.001, or an epoch of Twitter would be a hundred thousand steps. Validation rises, falls and
rises again there, so patience is 20 of these epochs, where theirs is 5 (docs/peers.md). On a GPU a step is a CUDA graph.
Scores are cosines, as GATNE evaluates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.edges import typed_edges
from gatas.experiments.baselines.links.scores import measured
from gatas.experiments.baselines.links.validation import TrainingRecord, Validation
from gatas.experiments.baselines.links.walks import Layers, pairs_within, walk
from gatas.tasks.learnable import Learnable
from gatas.training.batch_loop import Loop
from gatas.training.config import Config, NamedData, TrainingConfig
from gatas.training.limit import Limit
from gatas.training.nadam import NAdam
from gatas.training.progress import Entry
from gatas.training.run import TrainedRun

NegativeDistribution = Literal["power", "log-uniform"]


@dataclass(frozen=True)
class SkipGramSettings:
    """Settings of walks and of training."""

    size: int = 200
    num_walks: int = 20
    walk_length: int = 10
    window: int = 5
    num_negatives: int = 5
    batch_size: int = 4096
    learning_rate: float = 0.005
    epochs: int = 100
    patience: int = 20


class SkipGram(Learnable):
    """Embeddings of nodes for each type, and one of each node as a context."""

    noise: NegativeDistribution = "power"

    def __init__(self, layers: Layers, size: int, expected: Tensor, generator: Generator) -> None:
        """`expected` has how often each node is among the negatives of a pair."""
        super().__init__()
        self.layers, self.size = layers, size
        self.context = nn.Parameter(torch.empty(layers.num_nodes, size).normal_(std=size**-0.5))

    def embed(self, node: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) embeddings to learn with."""
        raise NotImplementedError

    def final(self, node: Tensor, edge_type: Tensor) -> Tensor:
        """(B, size) embeddings to measure with."""
        return self.embed(node, edge_type)

    def represent(self, target: Tensor, **given: Any) -> Tensor:
        """(B, size) of the first type; there is one of every type, which take as long."""
        return self.final(target, torch.zeros_like(target))

    def forward(self, centre: Tensor, edge_type: Tensor, context: Tensor, negatives: Tensor) -> Tensor:
        """The loss of (B,) pairs with (K,) nodes that are contexts of none of them."""
        return self.contrast(self.embed(centre, edge_type), context, negatives)

    def contrast(self, embedded: Tensor, context: Tensor, negatives: Tensor) -> Tensor:
        # F.embedding here and elsewhere, since on a CPU the gradient of plain indexing is much slower.
        true = (F.embedding(context, self.context) * embedded).sum(1) + self.offset(context)  # (B,)
        false = embedded @ F.embedding(negatives, self.context).T + self.offset(negatives)  # (B, K)
        return -(F.logsigmoid(true) + F.logsigmoid(-false).sum(1)).mean()

    def offset(self, node: Tensor) -> Tensor | float:
        """What is added to the logits of nodes as contexts."""
        return 0.0

    @torch.no_grad()
    def score(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        """(B,) cosines."""
        rows = torch.arange(len(source), device=source.device).split(16_384)  # type: ignore[no-untyped-call]
        given = ((source[own], edge_type[own], target[own]) for own in rows)
        return torch.cat([F.cosine_similarity(self.final(s, kind), self.final(t, kind)) for s, kind, t in given])


class CosineScorer:
    """Cosines of embeddings that nodes have for each type; those of all nodes are kept for the last type asked for."""

    def __init__(self, model: SkipGram, num_nodes: int, device: torch.device) -> None:
        self.model, self.nodes = model, torch.arange(num_nodes, device=device)
        self.kind, self.embeddings = -1, torch.empty(0, device=device)

    @torch.no_grad()
    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        found = torch.empty(len(source), len(self.nodes), device=source.device)
        for kind in sorted(set(edge_type.tolist())):
            own, embeddings = edge_type == kind, self._embeddings(kind)
            found[own] = embeddings[source[own]] @ embeddings.T
        return found

    score_sources = score_targets

    def _embeddings(self, kind: int) -> Tensor:
        if kind != self.kind:
            parts = self.nodes.split(16_384)  # type: ignore[no-untyped-call]
            embedded = torch.cat([self.model.final(part, torch.full_like(part, kind)) for part in parts])
            self.kind, self.embeddings = kind, F.normalize(embedded, dim=1)
        return self.embeddings


def transformed(vectors: Tensor, edge_type: Tensor, matrices: Tensor) -> Tensor:
    """(B, size) of (B, small) vectors, each by the matrix of its type among (T, small, size)."""
    own = one_hot(edge_type, len(matrices)).to(vectors.dtype)  # a matrix for each row would be much larger
    return (own[:, :, None] * vectors[:, None]).flatten(1) @ matrices.flatten(0, 1)


def one_hot(edge_type: Tensor, num_types: int) -> Tensor:
    """(B, T) bool. That of torch asks the host, on some devices, whether there are as many types."""
    return edge_type[:, None] == torch.arange(num_types, device=edge_type.device)


def of_type(table: Tensor, node: Tensor, edge_type: Tensor) -> Tensor:
    """(…, size) rows of an (N, T, size) table."""
    return F.embedding(node * table.shape[1] + edge_type, table.flatten(0, 1))


def fit_skipgram(
    kind: type[SkipGram],
    dataset: Dataset,
    seed: int,
    device: torch.device,
    settings: SkipGramSettings,
    report: Callable[[Entry], None] | None = None,
    limit: Limit | None = None,
) -> TrainedRun:
    """Train embeddings; the result is that of the best epoch by validation data. A function of the seed on one device.

    A `limit` in seconds ends an epoch where it is, as it may be long.
    """
    validation, limit = Validation(dataset, device), limit or Limit()
    generator = Generator(device).manual_seed(seed)
    layers = Layers.of(typed_edges(dataset), device)
    nodes, edge_type = walk(layers, settings.num_walks, settings.walk_length, generator)
    pairs = pairs_within(nodes, edge_type, settings.window // 2)
    noise = cumulative_noise(torch.bincount(nodes.flatten(), minlength=layers.num_nodes), kind.noise)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        expected = settings.num_negatives * noise.diff(prepend=noise.new_zeros(1)).float()
        model = kind(layers, settings.size, expected, generator).to(device)
    loop = steps_of(model, settings.learning_rate, captures=device.type == "cuda")
    record = TrainingRecord(
        model,
        lambda: validation(model.score, lambda: CosineScorer(model, layers.num_nodes, device)),
        validation.metric,
        epochs=settings.epochs,
        patience=settings.patience,
        limit=limit,
        report=report,
    )
    goes_on = True
    while goes_on:
        batches = shuffled(pairs, noise, settings, generator)
        sizes = [batches["centre"].shape[1]] * len(batches["centre"])
        losses = loop(batches, sizes, stop=lambda: bool(limit.reached(0, record.seconds)))
        goes_on = record.goes_on(float(losses.mean()), seed)
    metrics = {**record.finish(), **measured(model.score, validation.task, device)}
    training = {name: getattr(settings, name) for name in ("batch_size", "learning_rate", "epochs", "patience")}
    config = Config(data=NamedData(name=dataset.name), training=TrainingConfig(optimiser="adam", **training))
    return TrainedRun(config, seed, metrics, record.history, model, dataset)


def steps_of(model: SkipGram, learning_rate: float, *, captures: bool) -> Loop:
    """What takes a step for each batch, and returns their losses."""
    optimiser = NAdam(model.parameters(), learning_rate, nesterov=False)

    def step(batch: dict[str, Tensor]) -> Tensor:
        optimiser.zero_grad()
        loss: Tensor = model(**batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.detach()

    return Loop(step, captures, [optimiser.values, *optimiser.moments])


def shuffled(pairs: Tensor, noise: Tensor, settings: SkipGramSettings, generator: Generator) -> dict[str, Tensor]:
    """All pairs in a random order, (num_batches, B) but for a rest that fills no batch, and (num_batches, K) negatives."""
    size = min(settings.batch_size, pairs.shape[1])
    count = pairs.shape[1] // size
    order = torch.randperm(pairs.shape[1], generator=generator, device=pairs.device)[: count * size]
    centre, edge_type, context = pairs[:, order].view(3, count, size)
    chance = torch.rand(count, settings.num_negatives, generator=generator, device=pairs.device, dtype=torch.float64)
    negatives = torch.searchsorted(noise, chance).clamp(max=len(noise) - 1)
    return {"centre": centre, "edge_type": edge_type, "context": context, "negatives": negatives}


def cumulative_noise(counts: Tensor, noise: NegativeDistribution) -> Tensor:
    """(N,) cumulative chances of being a negative: counts ^ 0.75 as in word2vec, or log-uniform by rank as in GATNE."""
    if noise == "power":
        weight = counts.double() ** 0.75
    else:
        rank = torch.empty_like(counts)
        rank[counts.argsort(descending=True, stable=True)] = torch.arange(len(counts), device=counts.device)
        weight = torch.log1p(1 / (rank.double() + 1))
    return weight.cumsum(0) / weight.sum()
