"""One step of NAdam over flat vectors of parameters: by numba on a CPU, by Triton on a GPU."""

import torch

from gatas.ops.nadam.contract import Moments, NAdamInputs, nadam_step_torch

__all__ = ["Moments", "NAdamInputs", "nadam_step", "nadam_step_torch"]


def nadam_step(given: NAdamInputs) -> None:
    """Change values and moments by one step; the gradient may be overwritten."""
    if given.values.is_cuda:
        from gatas.ops.nadam import cuda

        cuda.nadam_step(given)
    elif given.values.dtype in (torch.float32, torch.float64):
        from gatas.ops.nadam import cpu

        cpu.nadam_step(given)
    else:
        nadam_step_torch(given)
