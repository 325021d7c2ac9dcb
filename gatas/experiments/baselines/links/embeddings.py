"""PyKEEN's ComplEx, RotatE and TransE, trained by its loops, stopped and measured as the other peers are.

PyKEEN is imported when one of them is run; without it an error names the extra.
"""

import gc
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.datasets import Dataset
from gatas.errors import MissingExtraError
from gatas.experiments.baselines.links.edges import type_names
from gatas.experiments.baselines.links.embedding_batches import training_loop
from gatas.experiments.baselines.links.embedding_settings import EmbeddingSettings, embedding_settings
from gatas.experiments.baselines.links.scores import measured
from gatas.experiments.baselines.links.triples import triples_of
from gatas.experiments.baselines.links.validation import TrainingRecord, Validation
from gatas.tasks.learnable import Learnable
from gatas.training.config import Config, NamedData, TrainingConfig
from gatas.training.limit import Limit
from gatas.training.progress import Entry
from gatas.training.run import TrainedRun

EMBEDDINGS = {"complex": "ComplEx", "rotate": "RotatE", "transe": "TransE"}
PAIRS_AT_ONCE = 4_096


def check_pykeen(name: str) -> None:
    """Refuse a model of PyKEEN where it is not installed."""
    if find_spec("pykeen") is None:
        raise MissingExtraError(f"{name} is PyKEEN's, which is not installed", "pykeen")


class ComplexDropout(nn.Module):
    """Dropout of the real and of the imaginary parts, which torch has no dropout for."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        if not values.is_complex():
            return F.dropout(values, self.share, self.training)
        return torch.view_as_complex(F.dropout(torch.view_as_real(values), self.share, self.training))


class KnowledgeGraphEmbedding(Learnable):
    """A model of PyKEEN as a `LinkScorer`. Types are numbered as the data set's are."""

    def __init__(self, name: str, dataset: Dataset, settings: EmbeddingSettings, seed: int) -> None:
        super().__init__()
        with quiet():
            models, triples = import_module("pykeen.models"), import_module("pykeen.triples")
            self.triples = triples.CoreTriplesFactory(
                torch.from_numpy(triples_of(dataset)),
                num_entities=dataset.graph.num_nodes,
                num_relations=len(type_names(dataset)),
                create_inverse_triples=settings.inverse,
            )
            start = {}
            if settings.uniform is not None:
                bound = settings.uniform
                ends = ("entity",) if name == "rotate" else ("entity", "relation")  # RotatE's relations are phases
                start = {f"{what}_initializer": lambda weights: nn.init.uniform_(weights, -bound, bound) for what in ends}
            self.model = getattr(models, EMBEDDINGS[name])(
                triples_factory=self.triples,
                embedding_dim=settings.size,
                **loss_of(settings),
                random_seed=seed,
                **start,
                **settings.model_settings,
            )
        self.model.entity_representations[0].dropout = ComplexDropout(settings.entity_dropout)
        self.model.relation_representations[0].dropout = ComplexDropout(settings.relation_dropout)

    def represent(self, target: Tensor, **given: Any) -> Tensor:
        """(B, size) embeddings."""
        found: Tensor = self.model.entity_representations[0](target)
        return found

    @torch.no_grad()
    def score_targets(self, source: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) scores of all nodes as targets."""
        scores: Tensor = self.model.predict_t(torch.stack([source, edge_type], dim=1))
        return scores

    @torch.no_grad()
    def score_sources(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """(B, N) scores of all nodes as sources; by the reciprocal relation where there is one."""
        scores: Tensor = self.model.predict_h(torch.stack([edge_type, target], dim=1))
        return scores

    @torch.no_grad()
    def score_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        """(B,) scores; the mean over both directions where types have reciprocal relations."""
        triples = torch.stack([source, edge_type, target], dim=1)
        self.model.eval()
        found = []
        for part in triples.split(PAIRS_AT_ONCE):  # type: ignore[no-untyped-call]
            scores = self.model.predict_hrt(part)
            if self.model.use_inverse_triples:
                scores = (scores + self.model.score_hrt_inverse(part)) / 2
            found.append(scores.squeeze(1))
        return torch.cat(found)


def loss_of(settings: EmbeddingSettings) -> dict[str, Any]:
    """What a model of PyKEEN is given as its loss."""
    if settings.loss != "OneVersusAll":
        return {"loss": settings.loss, "loss_kwargs": dict(settings.loss_settings)}

    class OneVersusAll(import_module("pykeen.losses").CrossEntropyLoss):  # type: ignore[misc]
        """Cross-entropy of each triple, where PyKEEN's is of the mean over the targets of each (source, type)."""

        def process_lcwa_scores(self, predictions: Tensor, labels: Tensor, *_: Any, **__: Any) -> Tensor:
            return F.cross_entropy(predictions, labels, reduction="sum") / labels.sum()

    return {"loss": OneVersusAll()}


def fit_embedding(
    name: str,
    dataset: Dataset,
    seed: int,
    device: torch.device,
    settings: EmbeddingSettings | None = None,
    report: Callable[[Entry], None] | None = None,
    limit: Limit | None = None,
) -> TrainedRun:
    """Train a model by PyKEEN's loop; the result is that of the best epoch by validation data, and a function of the seed."""
    check_pykeen(name)
    settings, validation = settings or embedding_settings(name, dataset), Validation(dataset, device)
    with torch.random.fork_rng([device] if device.type == "cuda" else []), quiet():
        torch.manual_seed(seed)
        model = KnowledgeGraphEmbedding(name, dataset, settings, seed).to(device)
        optimiser = getattr(torch.optim, settings.optimiser)(model.model.parameters(), lr=settings.learning_rate)
        record = TrainingRecord(
            model,
            lambda: validation(model.score_pairs, lambda: model),
            validation.metric,
            epochs=settings.epochs,
            patience=settings.patience,
            every=settings.every,
            limit=limit,
            report=report,
        )
        learn(model, settings, optimiser, record, seed)
        metrics = {**record.finish(), **measured(model.score_pairs, validation.task, device)}
    training = {"batch_size": settings.batch_size, "learning_rate": settings.learning_rate, "epochs": settings.epochs}
    config = Config(data=NamedData(name=dataset.name), training=TrainingConfig(optimiser="adam", **training))
    return TrainedRun(config, seed, metrics, record.history, model, dataset)


def learn(
    model: KnowledgeGraphEmbedding, settings: EmbeddingSettings, optimiser: Any, record: TrainingRecord, seed: int
) -> None:
    """Run PyKEEN's training loop until the record says that it is over."""
    stoppers = import_module("pykeen.stoppers")
    given: dict[str, Any] = {
        "model": model.model,
        "triples_factory": model.triples,
        "optimizer": optimiser,
        "automatic_memory_optimization": False,
    }
    if settings.loop == "slcwa":
        sampled = {"num_negs_per_pos": settings.num_negatives, "corruption_scheme": settings.corrupts}
        given |= {"negative_sampler": "basic", "negative_sampler_kwargs": sampled}
    loop = training_loop(settings.loop, **given)
    rates = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, "max", factor=settings.rate_factor, patience=settings.rate_patience
    ) if settings.rate_factor < 1 else None  # fmt: skip

    class Watch(stoppers.Stopper):  # type: ignore[name-defined, misc]
        """Hands each epoch to the record."""

        def should_evaluate(self, epoch: int) -> bool:
            return True

        def should_stop(self, epoch: int) -> bool:
            goes_on = record.goes_on(loop.losses_per_epochs[-1], seed)
            valid = record.history[-1].get(f"valid_{record.metric}")
            if rates is not None and valid is not None:
                rates.step(valid)
            return not goes_on

        def get_summary_dict(self) -> dict[str, Any]:
            return {}

    with tempfile.TemporaryDirectory() as folder, frozen_garbage():
        loop.train(
            model.triples,
            num_epochs=settings.epochs,
            batch_size=settings.batch_size,
            label_smoothing=settings.label_smoothing,
            use_tqdm=False,
            stopper=Watch(),
            checkpoint_directory=folder,
            num_workers=0,
            pin_memory=False,
        )


@contextmanager
def frozen_garbage() -> Iterator[None]:
    """Have the collection of garbage, which PyKEEN asks for after every epoch, pass over all that is there already."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep from ours what PyKEEN logs for its own command line, and warns of its own calls."""
    log = logging.getLogger("pykeen")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            yield
    finally:
        log.setLevel(before)
