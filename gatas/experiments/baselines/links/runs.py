"""`run_link_peer`: train a peer by its name on each of some seeds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments.baselines.links.embedding_settings import embedding_settings
from gatas.experiments.baselines.links.embeddings import EMBEDDINGS, fit_embedding
from gatas.experiments.baselines.links.encoder_training import fit_ranked_encoder
from gatas.experiments.baselines.links.encoders import (
    BLOCK_RGCN_SIZE,
    TRAINING,
    BlockRGCNEncoder,
    GATEncoder,
    GCNEncoder,
    LinkPeer,
    RGCNEncoder,
)
from gatas.experiments.baselines.links.gatne import GATNE
from gatas.experiments.baselines.links.mne import MNE
from gatas.experiments.baselines.links.mve import MVE
from gatas.experiments.baselines.links.neighbours import HEURISTICS, fit_heuristic
from gatas.experiments.baselines.links.skipgram import SkipGram, SkipGramSettings, fit_skipgram
from gatas.experiments.recording import seed_run
from gatas.experiments.results import SeedRun
from gatas.tasks.config import checked
from gatas.training.config import Config, NamedData, TrainingConfig
from gatas.training.limit import Limit
from gatas.training.loop import chosen_device, fit_models
from gatas.training.progress import Entry
from gatas.training.run import TrainedRun

ENCODERS: dict[str, tuple[type[LinkPeer], Any]] = {
    "gcn-bilinear": (GCNEncoder, "bilinear"),
    "gcn-distmult": (GCNEncoder, "distmult"),
    "gat-bilinear": (GATEncoder, "bilinear"),
    "gat-distmult": (GATEncoder, "distmult"),
    "rgcn-distmult": (RGCNEncoder, "distmult"),
    "rgcn": (BlockRGCNEncoder, "distmult"),
}
WALKERS: dict[str, type[SkipGram]] = {"mve": MVE, "mne": MNE, "gatne-t": GATNE}
LINK_PEERS = (*ENCODERS, *WALKERS, *EMBEDDINGS, *HEURISTICS)
SIZE = 200
SIZES = {"rgcn": BLOCK_RGCN_SIZE}
L2 = {"rgcn": 0.01}


def run_link_peer(name: str, dataset: Dataset, seeds: Sequence[int], device: str = "auto", **settings: Any) -> list[SeedRun]:
    """What came of each seed. `settings` are those of the training and the `size`, instead of the peer's own."""
    return [seed_run(fit_link_peer(name, dataset, seed, device, **settings)) for seed in seeds]


def fit_link_peer(
    name: str,
    dataset: Dataset,
    seed: int,
    device: str = "auto",
    *,
    report: Callable[[Entry], None] | None = None,
    limit: Limit | None = None,
    **settings: Any,
) -> TrainedRun:
    """One run. Seeds are trained one after another: a step is over the whole graph, which leaves a GPU little room."""
    if name not in LINK_PEERS:
        raise ConfigError(f"there is no link peer {name!r}. Known: {', '.join(LINK_PEERS)}.")
    where = chosen_device(device)
    if name in HEURISTICS:
        return fit_heuristic(name, dataset, seed, where)
    if name in EMBEDDINGS:
        chosen = replace(embedding_settings(name, dataset), **settings)
        return fit_embedding(name, dataset, seed, where, chosen, report, limit)
    if name in WALKERS:
        walks = replace(SkipGramSettings(), **settings)
        return fit_skipgram(WALKERS[name], dataset, seed, where, walks, report, limit)
    return _fit_encoder(name, dataset, seed, where, report, limit, **settings)


def _fit_encoder(
    name: str,
    dataset: Dataset,
    seed: int,
    device: torch.device,
    report: Callable[[Entry], None] | None,
    limit: Limit | None,
    *,
    size: int | None = None,
    **settings: Any,
) -> TrainedRun:
    """By our loop where there are negatives to tell links from, else by what ranks them."""
    kind, decoder = ENCODERS[name]
    training = checked(TrainingConfig, {**training_of(name), **settings})
    config = Config(data=NamedData(name=dataset.name), training=training)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):  # dropout is torch's own: a function of the seed too
        torch.manual_seed(seed)
        model = kind(dataset, decoder, size=size or SIZES.get(name, SIZE), seed=seed)
        if dataset.ranked:
            return fit_ranked_encoder(model, dataset, config, seed, device, report, limit)
        (run,) = fit_models([model], dataset, config, [seed], device=str(device), report=report, limit=limit)
    return run


def training_of(name: str) -> dict[str, Any]:
    """How an encoder learns."""
    return {**TRAINING, "l2": L2.get(name, 0.0)}


def settings_of(name: str, dataset: Dataset) -> dict[str, Any]:
    """A peer's settings, to be kept with its results."""
    if name in HEURISTICS:
        return {}
    if name in EMBEDDINGS:
        return {"training": asdict(embedding_settings(name, dataset))}
    if name in WALKERS:
        return {"training": asdict(SkipGramSettings())}
    by = {"monitor": "mrr"} if dataset.ranked else {}
    training = checked(TrainingConfig, training_of(name)).model_dump(mode="json")
    return {"size": SIZES.get(name, SIZE), "training": {**training, **by}}
