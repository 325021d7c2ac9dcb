"""One step of NAdam over flat vectors of parameters: by torch on a CPU, by Triton on a GPU."""

from gatas.ops.nadam.contract import Moments, NAdamInputs, nadam_step_torch

__all__ = ["Moments", "NAdamInputs", "nadam_step", "nadam_step_torch"]


def nadam_step(given: NAdamInputs) -> None:
    """Change values and moments by one step; the gradient may be overwritten."""
    if not given.values.is_cuda:
        nadam_step_torch(given)
        return
    from gatas.ops.nadam import cuda

    cuda.nadam_step(given)
