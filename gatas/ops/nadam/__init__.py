"""One step of NAdam over flat vectors of parameters: by torch on a CPU, by Triton on a GPU."""

from torch import Tensor

from gatas.ops.nadam.contract import Moments, nadam_step_torch

__all__ = ["Moments", "nadam_step", "nadam_step_torch"]


def nadam_step(
    values: Tensor,
    gradient: Tensor,
    moments: Moments,
    lr: Tensor,
    l2: Tensor | None,
    betas: tuple[float, float],
    eps: float,
    momentum_decay: float | None,
    max_norm: float | None,
) -> None:
    """Change (M, P) values and moments; the gradient may be overwritten. Each model's is clipped on its own.

    Without `momentum_decay` the step is Adam's.
    """
    given = (values, gradient, moments, lr, l2, betas, eps, momentum_decay, max_norm)
    if not values.is_cuda:
        nadam_step_torch(*given)
        return
    from gatas.ops.nadam import cuda

    cuda.nadam_step(*given)
