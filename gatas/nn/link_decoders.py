"""Decoders that score typed links by products of vectors: of a query and of every candidate, one matrix product."""

from typing import Literal

import torch
from torch import Tensor, nn

from gatas.errors import GatasError

DecoderName = Literal["complex", "distmult", "bilinear"]


class VectorDecoder(nn.Module):
    """Scores links (source, type, target) by a form that is linear in each end's vector of D numbers.

    `distmult` is Σ u · r · v, the same in both directions; `complex` takes the vectors as D / 2 complex numbers, and the
    conjugate of the target's, so that directions differ (ComplEx); `bilinear` has a D × D matrix for each type.

    Args:
        kind: Which of these forms.
        num_types: Types of link.
        size: D, even for `complex`.
    """

    def __init__(self, kind: DecoderName, num_types: int, size: int) -> None:
        super().__init__()
        if kind == "complex" and size % 2:
            raise GatasError(f"vectors of the decoder 'complex' have {size} numbers; expected an even number of them.")
        self.kind, self.size = kind, size
        shape = (num_types, size, size) if kind == "bilinear" else (num_types, size)
        self.relations = nn.Parameter(torch.randn(shape) / size**0.5)
        if kind == "bilinear":
            with torch.no_grad():
                self.relations.mul_(0.1).add_(torch.eye(size))

    def query(self, vectors: Tensor, edge_type: Tensor, *, backward: bool = False) -> Tensor:
        """Return (B, D) vectors whose products with those of candidates are scores.

        `vectors` are of sources, and targets are the candidates; if `backward`, it is the other way round.
        """
        if self.kind == "bilinear":
            return self._turned(vectors, edge_type, backward)
        relation = self.relations[edge_type]
        if self.kind == "distmult":
            return vectors * relation
        (real, imaginary), (of_real, of_imaginary) = vectors.chunk(2, -1), relation.chunk(2, -1)
        if backward:
            return torch.cat([real * of_real + imaginary * of_imaginary, imaginary * of_real - real * of_imaginary], -1)
        return torch.cat([real * of_real - imaginary * of_imaginary, real * of_imaginary + imaginary * of_real], -1)

    def forward(self, sources: Tensor, targets: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B,) scores of single pairs."""
        return (self.query(sources, edge_type) * targets).sum(-1)

    def cubes(self, sources: Tensor, targets: Tensor, edge_type: Tensor) -> Tensor:
        """Return (B,) sums of cubed moduli of what each link is scored by: the nuclear 3-norm (N3) that keeps vectors small."""
        parts = [sources, targets] if self.kind == "bilinear" else [sources, targets, self.relations[edge_type]]
        return torch.stack([self._moduli(part).pow(3).sum(-1) for part in parts]).sum(0)

    def _moduli(self, vectors: Tensor) -> Tensor:
        if self.kind != "complex":
            return vectors.abs()
        real, imaginary = vectors.chunk(2, -1)
        return (real.square() + imaginary.square()).clamp_min(1e-24).sqrt()

    def _turned(self, vectors: Tensor, edge_type: Tensor, backward: bool) -> Tensor:
        """Multiply each vector by its type's matrix, type after type: gathered matrices would be too many numbers."""
        if torch.compiler.is_compiling():  # which types occur is not known
            return torch.einsum("bd,bde->be" if not backward else "bd,bed->be", vectors, self.relations[edge_type])
        turned = torch.zeros_like(vectors)
        for kind in torch.unique(edge_type).tolist():
            rows, matrix = (edge_type == kind).nonzero()[:, 0], self.relations[kind]
            turned = turned.index_copy(0, rows, vectors[rows] @ (matrix.T if backward else matrix))
        return turned
