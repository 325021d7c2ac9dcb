"""`RowGradients`: gradients of parameters of which some have few rows that a step looked at, such as learned embeddings.

All parameters lie behind each other in one vector. A step then works on a shorter one, with only those rows, and is put back.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gatas.training.group import Group


@dataclass(frozen=True)
class RowGradients:
    """A dense gradient for every parameter, and the rows that it is of; None: all of them."""

    shapes: list[torch.Size]
    gradients: list[Tensor]
    rows: list[Tensor | None]

    @classmethod
    def of(cls, gradients: list[Tensor], group: Group) -> "RowGradients":
        """Collect the rows that any process has."""
        found = [_rows_of(gradient, group) if gradient.is_sparse else (gradient, None) for gradient in gradients]
        return cls([gradient.shape for gradient in gradients], [own for own, _ in found], [rows for _, rows in found])

    def joined(self) -> Tensor:
        """Return (1, P') all gradients."""
        return torch.cat([gradient.flatten() for gradient in self.gradients])[None]

    def chosen(self, vector: Tensor) -> Tensor:
        """Return (1, P'), a copy of what a vector of all parameters holds for these rows."""
        parts = zip(self._views(vector), self.rows, strict=True)
        return torch.cat([(part if rows is None else part[rows]).flatten() for part, rows in parts])[None]

    def put_back(self, vector: Tensor, chosen: Tensor) -> None:
        """Undo `chosen`, after it was changed."""
        changed = torch.split(chosen.view(-1), [gradient.numel() for gradient in self.gradients])
        for part, rows, own, like in zip(self._views(vector), self.rows, changed, self.gradients, strict=True):
            part[slice(None) if rows is None else rows] = own.view_as(like)

    def _views(self, vector: Tensor) -> list[Tensor]:
        parts = torch.split(vector.view(-1), [shape.numel() for shape in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def _rows_of(gradient: Tensor, group: Group) -> tuple[Tensor, Tensor]:
    """Return the rows that are not all zeros: a GPU looks at more nodes than it was asked for."""
    gradient = gradient.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    kept = (values != 0).any(1)
    rows, values = rows[kept], values[kept]
    together = group.union_rows(rows)
    found = values.new_zeros(len(together), values.shape[1])
    found[torch.searchsorted(together, rows)] = values
    return found, together
