"""PyKEEN's training loops with batches made where the model is: its own are made by the host, and a GPU waits for them."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset


def training_loop(kind: str, **given: Any) -> Any:
    """`lcwa` or `slcwa`. Batches are of the same form as PyKEEN's, drawn in the same way, but by the device's generator."""
    training = import_module("pykeen.training")

    class AllTargets(training.LCWATrainingLoop):  # type: ignore[name-defined, misc]
        def _create_training_data_loader(self, *factory: Any, **settings: Any) -> DataLoader[Any]:
            loader = super()._create_training_data_loader(*factory, **settings)
            return DataLoader(TargetRows(loader.dataset, settings["batch_size"], self.model.device), batch_size=None)

    class SampledTargets(training.SLCWATrainingLoop):  # type: ignore[name-defined, misc]
        def _create_training_data_loader(self, *factory: Any, **settings: Any) -> DataLoader[Any]:
            loader: DataLoader[Any] = super()._create_training_data_loader(*factory, **settings)
            instances: Any = loader.dataset
            instances.mapped_triples = instances.mapped_triples.to(self.model.device)
            return loader

    return (AllTargets if kind == "lcwa" else SampledTargets)(**given)


class TargetRows(IterableDataset[dict[str, torch.Tensor]]):
    """Shuffled batches of (source, type), each with a row over all entities that counts its training links."""

    def __init__(self, instances: Any, batch_size: int, device: torch.device) -> None:
        self.batch_size, self.num_entities = batch_size, instances.compressed.shape[1]
        given = instances.compressed
        self.pairs, self.indptr, self.target, self.count = (
            torch.from_numpy(part).to(device) for part in (instances.pairs, given.indptr, given.indices, given.data)
        )

    def __len__(self) -> int:
        return -(-len(self.pairs) // self.batch_size)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        device = self.pairs.device
        order = torch.randperm(len(self.pairs), device=device)
        for chosen in torch.split(order, self.batch_size):
            start, size = self.indptr[chosen], self.indptr[chosen + 1] - self.indptr[chosen]
            row = torch.arange(len(chosen), device=device).repeat_interleave(size)
            at = torch.arange(len(row), device=device) - (size.cumsum(0) - size - start)[row]
            target = torch.zeros(len(chosen), self.num_entities, device=device)
            target[row, self.target[at].long()] = self.count[at]
            yield {"pairs": self.pairs[chosen], "target": target}
