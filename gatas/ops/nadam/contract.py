"""One step of NAdam (Dozat, 2016; as in torch) over flat vectors of parameters, one for each of M models, all in place."""

from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """What NAdam remembers."""

    first: Tensor  # (M, P)
    second: Tensor  # (M, P)
    product: Tensor  # () of the momenta so far
    steps: Tensor  # ()

    @classmethod
    def of(cls, values: Tensor) -> "Moments":
        return cls(torch.zeros_like(values), torch.zeros_like(values), values.new_ones(()), values.new_zeros(()))


class NAdamInputs(NamedTuple):
    """What one step takes: (M, P) parameters of M models as flat vectors, which it changes in place."""

    values: Tensor  # (M, P)
    gradient: Tensor  # (M, P), which may be overwritten
    moments: Moments
    lr: Tensor  # (), or (M,): each model's own
    l2: Tensor | None  # (P,), or (M, P)
    betas: tuple[float, float]
    eps: float
    momentum_decay: float | None  # None: the step is Adam's
    max_norm: float | None  # each model's gradient is clipped on its own


def nadam_step_torch(given: NAdamInputs) -> None:
    """Change values and moments by one step."""
    values, gradient, moments, lr, l2, betas, eps, _, max_norm = given
    if l2 is not None:
        gradient.addcmul_(l2, values)
    if max_norm is not None:
        gradient.mul_((max_norm / (gradient.norm(dim=1, keepdim=True) + 1e-6)).clamp_max(1.0))
    of_gradient, of_first = next_mixture(given)
    first, second = moments.first, moments.second
    first.lerp_(gradient, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    scale = second.div(1 - betas[1] ** float(moments.steps)).sqrt_().add_(eps)
    direction = gradient.mul_(of_gradient).add_(first, alpha=of_first)
    if lr.dim():
        values.sub_(direction.div_(scale).mul_(lr[:, None]))
    else:
        values.addcdiv_(direction, scale, value=-float(lr))


def next_mixture(given: NAdamInputs) -> tuple[float, float]:
    """Count a step; return what share its direction has of the gradient and of the first moment.

    They are plain numbers: operators on single ones would take longer than those on all parameters.
    """
    (_, _, product, steps), beta, decay = given.moments, given.betas[0], given.momentum_decay
    steps += 1
    step = float(steps)
    if decay is None:
        return 0.0, 1 / (1 - beta**step)
    now, later = (beta * (1 - 0.5 * 0.96 ** ((step + ahead) * decay)) for ahead in (0, 1))
    product *= now
    together = float(product)
    return (1 - now) / (1 - together), later / (1 - together * later)
