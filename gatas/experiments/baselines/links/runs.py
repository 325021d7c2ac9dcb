"""`run_link_peer`: train a peer by its name on each of some seeds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments.baselines.links.encoders import TRAINING, GATEncoder, GCNEncoder, LinkPeer, RGCNEncoder
from gatas.experiments.baselines.links.gatne import GATNE
from gatas.experiments.baselines.links.mne import MNE
from gatas.experiments.baselines.links.mve import MVE
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
}
WALKERS: dict[str, type[SkipGram]] = {"mve": MVE, "mne": MNE, "gatne-t": GATNE}
LINK_PEERS = (*ENCODERS, *WALKERS)
SIZE = 200


def run_link_peer(
    name: str, dataset: Dataset, seeds: Sequence[int], device: str = "auto", *, size: int = SIZE, **settings: Any
) -> list[SeedRun]:
    """What came of each seed. `settings` are those of the training, instead of the peer's own."""
    return [seed_run(fit_link_peer(name, dataset, seed, device, size=size, **settings)) for seed in seeds]


def fit_link_peer(
    name: str,
    dataset: Dataset,
    seed: int,
    device: str = "auto",
    *,
    size: int = SIZE,
    report: Callable[[Entry], None] | None = None,
    limit: Limit | None = None,
    **settings: Any,
) -> TrainedRun:
    """One run. Seeds are trained one after another: a step is over the whole graph, which leaves a GPU little room."""
    if name not in LINK_PEERS:
        raise ConfigError(f"there is no link peer {name!r}. Known: {', '.join(LINK_PEERS)}.")
    if name in WALKERS:
        chosen = replace(SkipGramSettings(size=size), **settings)
        return fit_skipgram(WALKERS[name], dataset, seed, chosen_device(device), chosen, report, limit)
    kind, decoder = ENCODERS[name]
    training = checked(TrainingConfig, {**TRAINING, **settings})
    config = Config(data=NamedData(name=dataset.name), training=training)
    chosen_devices = [chosen_device(device)] if chosen_device(device).type == "cuda" else []
    with torch.random.fork_rng(chosen_devices):  # dropout is torch's own; seeded here, it is a function of the seed too
        torch.manual_seed(seed)
        model = kind(dataset, decoder, size=size, seed=seed)
        (run,) = fit_models([model], dataset, config, [seed], device=device, report=report, limit=limit)
    return run


def settings_of(name: str) -> dict[str, Any]:
    """A peer's settings, to be kept with its results."""
    if name in WALKERS:
        return {"training": asdict(SkipGramSettings())}
    return {"size": SIZE, "training": checked(TrainingConfig, TRAINING).model_dump(mode="json")}
