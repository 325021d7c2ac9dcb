"""PyKEEN's ComplEx and RotatE on the graph of genes, at a size and for as many seconds as the training that they stand beside.

The published settings of both are for graphs of 15,000 nodes, with all nodes as negatives or vectors of 1,000 complex numbers,
which is too slow here. So vectors have 64 complex numbers, as long as ours, negatives are drawn, and validation is by a part of
the links, as ours is. Nothing of this was tuned: it is a first guess, and the seconds are few.
"""

import math
import sys
from dataclasses import replace

import torch
from torch import Tensor

from gatas.datasets import Dataset
from gatas.datasets.permitted_ends import PermittedEnds
from gatas.experiments.baselines.links.embedding_settings import EmbeddingSettings
from gatas.experiments.baselines.links.embeddings import KnowledgeGraphEmbedding, check_pykeen, learn, quiet
from gatas.experiments.baselines.links.validation import TrainingRecord
from gatas.tasks.ranking import LinkRanking, ranking_metrics
from gatas.training.limit import Limit

VALID_LINKS = 500
SIZE, BATCH_SIZE, NUM_NEGATIVES = 64, 2048, 32
PEERS = {
    "complex": EmbeddingSettings(
        "ours", SIZE, "slcwa", "CrossEntropy", "Adagrad", 0.1, BATCH_SIZE, num_negatives=NUM_NEGATIVES,
        model_settings={"regularizer": None}, uniform=0.1, every=1,
    ),
    "rotate": EmbeddingSettings(
        "ours", SIZE, "slcwa", "NSSA", "Adam", 0.005, BATCH_SIZE, num_negatives=NUM_NEGATIVES, inverse=False,
        loss_settings={"margin": 9.0, "adversarial_temperature": 1.0, "reduction": "mean"},
        model_settings={"interaction_kwargs": {"p": 1}}, uniform=11 / SIZE, every=1,
    ),
}  # fmt: skip


class PermittedScorer:
    """Scores the nodes that may be ends of links by a model of PyKEEN; of all others the score is −∞, and takes no time."""

    def __init__(self, model: KnowledgeGraphEmbedding, permitted: PermittedEnds) -> None:
        self.model, node_type = model.model, torch.from_numpy(permitted.node_type)
        self.num_nodes = len(node_type)
        self.ends = {
            side: [torch.from_numpy(row)[node_type].nonzero()[:, 0] for row in getattr(permitted, side)]
            for side in ("targets", "sources")
        }

    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        return self._scores(source, edge_type, "targets")

    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        return self._scores(target, edge_type, "sources")

    @torch.no_grad()
    def _scores(self, query: Tensor, edge_type: Tensor, side: str) -> Tensor:
        found = torch.full((len(query), self.num_nodes), -math.inf)
        for kind in edge_type.unique().tolist():
            rows, nodes = (edge_type == kind).nonzero()[:, 0], self.ends[side][kind]
            if side == "targets":
                scores = self.model.predict_t(torch.stack([query[rows], edge_type[rows]], dim=1), tails=nodes)
            else:
                scores = self.model.predict_h(torch.stack([edge_type[rows], query[rows]], dim=1), heads=nodes)
            found[rows[:, None], nodes] = scores
        return found


def fit_peer(
    name: str, dataset: Dataset, seconds: float, *, rate: float | None = None, seed: int = 0
) -> tuple[PermittedScorer, dict[str, float]]:
    """Train a peer for so many seconds; return what scores links, and what its validation said."""
    check_pykeen(name)
    settings = PEERS[name] if rate is None else replace(PEERS[name], learning_rate=rate)
    ranking = LinkRanking.of_split(dataset, "valid", VALID_LINKS)
    assert ranking.permitted is not None
    torch.manual_seed(seed)
    model = KnowledgeGraphEmbedding(name, dataset, settings, seed)
    scorer = PermittedScorer(model, ranking.permitted)
    record = TrainingRecord(
        model,
        lambda: float(ranking_metrics(ranking.ranks(scorer), dataset.names)["mrr"]),
        "mrr",
        epochs=settings.epochs,
        patience=settings.patience,
        limit=Limit(seconds=seconds),
        report=lambda entry: print(f"{name}, rate {settings.learning_rate}: {entry}", file=sys.stderr, flush=True),
    )
    optimiser = getattr(torch.optim, settings.optimiser)(model.model.parameters(), lr=settings.learning_rate)
    with quiet():
        learn(model, settings, optimiser, record, seed)
    best = max(entry["valid_mrr"] for entry in record.history)
    return scorer, {
        "learning_rate": settings.learning_rate,
        "valid_mrr": best,
        "valid_links": len(ranking.asked),
        "epochs": record.finish()["epochs"],
        "seconds": round(sum(entry["seconds"] for entry in record.history), 1),
    }
