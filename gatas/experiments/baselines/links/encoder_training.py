"""How encoders learn where links are ranked: negatives that replace one end of a link, stopped by the MRR on validation data.

One negative for each positive, its source or its target drawn from all nodes, and binary cross-entropy, as in Schlichtkrull et
al. (2018). Where the data has negatives of its own, encoders are trained by our loop instead.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from gatas.datasets import Dataset
from gatas.experiments.baselines.links.encoders import LinkPeer
from gatas.experiments.baselines.links.scorers import scorer_of
from gatas.experiments.baselines.links.scores import measured
from gatas.experiments.baselines.links.validation import TrainingRecord, Validation
from gatas.training.config import Config
from gatas.training.limit import Limit
from gatas.training.progress import Entry
from gatas.training.run import TrainedRun

EVERY = 5  # epochs between two validations


def fit_ranked_encoder(
    model: LinkPeer,
    dataset: Dataset,
    config: Config,
    seed: int,
    device: torch.device,
    report: Callable[[Entry], None] | None = None,
    limit: Limit | None = None,
) -> TrainedRun:
    """Train an encoder; the result is that of the best epoch by validation data."""
    model.to(device)
    training, validation = config.training, Validation(dataset, device)
    num_nodes, generator = dataset.graph.num_nodes, Generator(device).manual_seed(seed)
    links = training_links(dataset).to(device)
    optimiser = torch.optim.Adam(model.parameters(), training.learning_rate)

    def score_pairs(source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        representations = model.eval().encode()
        return model.score(representations[source], representations[target], edge_type)

    record = TrainingRecord(
        model,
        lambda: validation(score_pairs, lambda: scorer_of(model, num_nodes, device)),
        validation.metric,
        epochs=training.epochs,
        patience=max(training.patience, 10 * EVERY),
        every=EVERY,
        limit=limit,
        report=report,
    )
    goes_on = True
    while goes_on:
        model.train()
        order = torch.randperm(links.shape[1], generator=generator, device=device)
        parts = order.split(max(1, training.batch_of(len(order)) // 2))  # type: ignore[no-untyped-call]
        losses = [step(model, optimiser, links[:, part], num_nodes, training.l2, generator) for part in parts]
        goes_on = record.goes_on(float(torch.stack(losses).mean()), seed)
    metrics = {**record.finish(), **measured(score_pairs, validation.task, device)}
    return TrainedRun(config, seed, metrics, record.history, model, dataset)


def training_links(dataset: Dataset) -> Tensor:
    """(3, n) sources, types and targets."""
    train = dataset.splits["train"]
    columns = np.stack([train.source, train.edge_type, train.target])[:, train.label == 1]
    return torch.from_numpy(columns.astype(np.int64))


def step(
    model: LinkPeer, optimiser: torch.optim.Optimizer, links: Tensor, num_nodes: int, l2: float, generator: Generator
) -> Tensor:
    """Learn some links and as many negatives; return the loss."""
    both = torch.cat([links, corrupted(links, num_nodes, generator)], dim=1)
    label = (torch.arange(both.shape[1], device=links.device) < links.shape[1]).float()
    optimiser.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(both[0], both[1], both[2], label), label)
    if l2:
        penalties = [model.l2_share(name) * weight.square().sum() for name, weight in model.named_parameters()]
        loss = loss + l2 / 2 * torch.stack(penalties).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.detach()


def corrupted(links: Tensor, num_nodes: int, generator: Generator) -> Tensor:
    """(3, n) links with their source or their target replaced by any node."""
    count, device = links.shape[1], links.device
    node = torch.randint(num_nodes, (count,), generator=generator, device=device)
    source = torch.rand(count, generator=generator, device=device) < 0.5
    return torch.stack([torch.where(source, node, links[0]), links[1], torch.where(source, links[2], node)])
