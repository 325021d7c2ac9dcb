"""What trained models are worth in ranking links, ours and peers alike."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.scorers import scorer_of
from gatas.tasks.ranking import LinkRanking, ranking_metrics
from gatas.training.final_test import final_graph, measured_on
from gatas.training.run import TrainedRun


def with_ranking(runs: Sequence[TrainedRun], dataset: Dataset, device: torch.device) -> list[TrainedRun]:
    """Runs with ranks of validation and test links among their metrics, under `ranking`; where none are ranked, as they are."""
    if not dataset.ranked:
        return list(runs)
    rankings = {split: LinkRanking.of_split(dataset, split) for split in ("valid", "test") if split in dataset.splits}
    return [replace(run, metrics=with_ranks(run, rankings, device)) for run in runs]


@torch.no_grad()
def with_ranks(run: TrainedRun, rankings: dict[str, LinkRanking], device: torch.device) -> dict[str, Any]:
    """A run's metrics with those of ranking, each split on the graph that its other metrics were measured on."""
    given = {"draw": torch.tensor(-1, device=device), "mode": run.config.training.evaluation_mode}
    found, scorer = dict(run.metrics), None
    for split, ranking in rankings.items():
        graph = final_graph(run.dataset, run.config.data, split)
        with measured_on(graph, run.model):
            if scorer is None or graph is not None:
                scorer = scorer_of(run.model, run.dataset.graph.num_nodes, device, **given)
            ranks = ranking.ranks(scorer, device=device)
        found[split] = {**found[split], "ranking": ranking_metrics(ranks, run.dataset.names)}
    return found
