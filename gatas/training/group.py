"""`Group`: the processes that train together, as the training loop sees them. Most often there is one."""

from collections.abc import Iterable
from typing import TypeVar

from torch import Tensor

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
        """The rows of a batch that are this process's own; where there are none, a row that counts for nothing."""
        if self.size == 1:
            return batch
        if self.rank < len(batch["weight"]):
            return {name: column[self.rank :: self.size] for name, column in batch.items()}
        own = {name: column[:1] for name, column in batch.items()}
        return {**own, "weight": own["weight"] * 0}

    def numbers(self, count: int) -> list[int]:
        """Which of `count` pieces of work are this process's own; the first where there are none, to know its shape."""
        return list(range(self.rank, count, self.size)) or [0]

    def gathered(self, found: Tensor, count: int) -> Tensor:
        """(count, …) what all processes found in their pieces of work."""
        return found

    def added(self, tensor: Tensor) -> Tensor:
        """The sum over processes, which may be written over the tensor."""
        return tensor

    def united(self, rows: Tensor) -> Tensor:
        """All row numbers that any process has, ascending."""
        return rows

    def largest(self, number: int) -> int:
        """Of the numbers that the processes have."""
        return number

    def told(self, content: T) -> T:
        """What the first process has."""
        return content

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Tensors become the first process's."""

    def wait(self) -> None:
        """Until all are here."""


ALONE = Group()
