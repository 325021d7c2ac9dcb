"""ln P = ln qₜ + ln T⁽ᵗ⁾ of what was drawn, in plain torch.

M models, B targets each, S sampled pairs for each target, C + 1 levels.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class MixtureInputs(NamedTuple):
    """What ln P is made of."""

    log_depth: Tensor  # (M, C + 1)      ln q
    step: Tensor  # (M, B, S) int8       t
    log_step: Tensor  # (M, B, S)        ln T⁽ᵗ⁾
    mask: Tensor  # (M, B, S)            slots in use; the others get -inf


class StepInputs(NamedTuple):
    """What is added up by step."""

    values: Tensor  # (M, B, S)
    step: Tensor  # (M, B, S) int8
    mask: Tensor  # (M, B, S)            slots in use
    num_levels: int


def log_mixture_torch(given: MixtureInputs) -> Tensor:
    """(M, B, S) of ln q's type, one model after another."""
    depth = torch.stack([own[steps] for own, steps in zip(given.log_depth, given.step.long(), strict=True)])
    return torch.where(given.mask, depth + given.log_step, -torch.inf).to(given.log_depth.dtype)


def shapes(given: MixtureInputs) -> Tensor:
    return given.log_depth.new_empty(given.step.shape)


def sum_shapes(given: StepInputs) -> Tensor:
    return given.values.new_empty(len(given.values), given.num_levels)
