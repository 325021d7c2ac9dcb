"""`Group`: the processes that train together, as the training loop sees them. Most often there is one."""

from collections.abc import Iterable
from typing import TypeVar

from torch import Tensor

from gatas.tasks.batches import SHARED

T = TypeVar("T")


class Group:
    """One process alone, which has nobody to ask. Several are `gatas.scale.processes.Processes`.

    All of them go through the same loop, with the same batches and the same weights: of each batch a process looks at its
    own rows, and gradients are added up. So what is decided from losses, weights or metrics is decided alike by all.
    """

    rank = 0
    size = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    def share(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return this process's own rows of a batch; where there are none, a row that counts for nothing."""
        if self.size == 1:
            return batch
        if self.rank < len(batch["weight"]):
            return {name: column if name in SHARED else column[self.rank :: self.size] for name, column in batch.items()}
        own = {name: column if name in SHARED else column[:1] for name, column in batch.items()}
        return {**own, "weight": own["weight"] * 0}

    def numbers(self, count: int) -> list[int]:
        """Return which of `count` pieces of work are this process's own; the first where there are none, to know its shape."""
        return list(range(self.rank, count, self.size)) or [0]

    def gathered(self, found: Tensor, count: int) -> Tensor:
        """Return (count, …) of what all processes found in their pieces of work."""
        return found

    def all_reduce_sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over processes, which may be written over the tensor."""
        return tensor

    def union_rows(self, rows: Tensor) -> Tensor:
        """Return all row numbers that any process has, ascending."""
        return rows

    def all_reduce_max(self, number: int) -> int:
        """Return the largest of the numbers that the processes have."""
        return number

    def broadcast(self, content: T) -> T:
        """Return what the first process has."""
        return content

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Write the first process's values over the tensors."""

    def wait(self) -> None:
        """Wait until all processes have come here."""


ALONE = Group()
