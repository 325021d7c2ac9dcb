"""A neighbour along its path: n = Σ_c β ELU(z of the node + z of the step) (eq. 1), in plain torch.

U (node, path) pairs, V projected nodes, E paths of up to C steps, F' neighbour size.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class RepresentInputs(NamedTuple):
    """Row `node` of the first over row `path` of the next two. For the operator, all have a leading dimension of M models."""

    of_input: Tensor  # (V, F')
    of_step: Tensor  # (E, C, F')
    path_weights: Tensor  # (E, C)   β
    node: Tensor  # (U,)
    path: Tensor  # (U,)


def represent_torch(given: RepresentInputs) -> Tensor:
    """(U, F'), one step of all paths at a time."""
    of_input = given.of_input[given.node]  # (U, F')
    neighbours = torch.zeros_like(of_input)
    for c in range(given.of_step.shape[1]):
        neighbours = neighbours + given.path_weights[given.path, c, None] * F.elu(of_input + given.of_step[given.path, c])
    return neighbours


def shapes(given: RepresentInputs) -> Tensor:
    return given.of_input.new_empty(*given.node.shape, given.of_input.shape[-1])


def backward_shapes(given: RepresentInputs, *_: Any) -> tuple[Tensor, Tensor]:
    """Gradients of the nodes' projections, and (M, E, C, F' + 1) of the steps' with that of β beside them."""
    of_steps = given.of_step.new_empty(*given.path_weights.shape, given.of_step.shape[-1] + 1)
    return given.of_input.new_empty(given.of_input.shape), of_steps
