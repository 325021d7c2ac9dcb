"""Neighbours as seen along their paths (eq. 1, after its projections): a custom operator that writes no (U, C, F') tensor.

V nodes, E paths of C steps, U pairs of a node and a path. F' neighbour size.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import path_kernels
from gatas.sampling.threads import run_rows


def mix_steps(of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """(U, F'): Σ over steps of β · ELU(of_input + of_step), from (V, F'), (E, C, F') and β (E, C), for U pairs."""
    if of_input.device.type != "cpu":
        return mix_steps_torch(of_input, of_step, weights, node, path)
    out: Tensor = _mix_steps(of_input, of_step, weights, node, path)
    return out


def mix_steps_torch(of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """The contract; one (U, F') at a time instead of (U, C, F')."""
    out = torch.zeros_like(of_input[node])
    for step in range(weights.shape[1]):
        value = F.elu(of_input[node] + of_step[path, step])  # (U, F')     z
        out = out + weights[path, step, None] * value
    return out


@torch.library.custom_op("gatas::mix_steps", mutates_args=(), device_types="cpu")
def _mix_steps(of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    out = of_input.new_empty(len(node), of_input.shape[1])
    arrays = [tensor.detach().contiguous().numpy() for tensor in (of_input, of_step.flatten(0, 1), weights, node, path, out)]

    def work(first: int, last: int) -> None:
        path_kernels.mix_steps(*arrays[:5], first, last, arrays[5])

    run_rows(work, len(node), weights.shape[1] * of_input.shape[1])
    return out


@_mix_steps.register_fake
def _(of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    return of_input.new_empty(node.shape[0], of_input.shape[1])


@torch.library.custom_op("gatas::mix_steps_backward", mutates_args=(), device_types="cpu")
def _mix_steps_backward(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    inputs = (of_input, of_step.flatten(0, 1), weights, node, path, grad_out)
    grads = torch.zeros_like(of_input), torch.zeros_like(of_step), torch.zeros_like(weights)
    arrays = [tensor.detach().contiguous().numpy() for tensor in inputs]
    path_kernels.mix_steps_backward(*arrays, grads[0].numpy(), grads[1].flatten(0, 1).numpy(), grads[2].numpy())
    return grads


@_mix_steps_backward.register_fake
def _(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(of_input), torch.empty_like(of_step), torch.empty_like(weights)


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _differentiate(ctx, grad_out):  # type: ignore[no-untyped-def]
    return *torch.ops.gatas.mix_steps_backward(grad_out, *ctx.saved_tensors), None, None


_mix_steps.register_autograd(_differentiate, setup_context=_setup)
