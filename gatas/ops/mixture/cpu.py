"""ln P by torch, and the gradient of ln q by numba."""

import torch
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.mixture.contract import MixtureInputs, StepInputs
from gatas.ops.threads import run_rows


def log_mixture(given: MixtureInputs) -> Tensor:
    """(M, B, S) of ln q's type."""
    log_depth, step, log_step, mask = given
    chosen = log_depth.gather(1, step.long().flatten(1)).view(step.shape)
    return torch.where(mask, chosen + log_step.to(log_depth.dtype), -torch.inf)


def sum_by_step(given: StepInputs) -> Tensor:
    """(M, C + 1)."""
    sums = torch.zeros(len(given.values), given.num_levels, dtype=torch.float64)
    inputs = [as_numpy(tensor) for tensor in (given.values.double(), given.step, given.mask)]

    def work(first: int, last: int) -> None:
        add_by_step(*(column[first:last] for column in (*inputs, sums.numpy())))

    run_rows(work, len(given.values), given.values[:1].numel())
    return sums.to(given.values.dtype)


@compiled()
def add_by_step(values, step, mask, out):
    """For each model, the sum of each step's values over the slots in use."""
    for model in range(out.shape[0]):
        for b in range(step.shape[1]):
            for s in range(step.shape[2]):
                if mask[model, b, s]:
                    out[model, step[model, b, s]] += values[model, b, s]
