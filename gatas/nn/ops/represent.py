"""A neighbour along its path: n = Σ_c β ELU(z of the node + z of the step) (eq. 1), for U (node, path) pairs.

V projected nodes, E paths of up to C steps, F' neighbour size. A (U, C, F') tensor is never written.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import path_kernels
from gatas.sampling.models import each_model, fold_models
from gatas.sampling.threads import even_cuts, run_rows

PIECES = 8
"""Pairs are shared out among threads in as many pieces in the backward pass, however many threads there are."""

MOST_PATHS = 128
"""The GPU kernel sums gradients for so many paths at once; more are rare, and go by torch."""


def represent(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """(U, F') from (V, F'), (E, C, F') and (E, C): row `node` of the first over row `path` of the others.

    A step whose weight is zero counts as one that does not exist, and may get no gradient.
    """
    exact = of_input.dtype == torch.float64 or torch.are_deterministic_algorithms_enabled()  # the kernel adds in any order
    if of_input.is_cuda and (len(of_step) > MOST_PATHS or exact):
        return represent_torch(of_input, of_step, path_weights, node, path)
    kind = torch.float32 if of_input.is_cuda else of_input.dtype
    given = (of_input.to(kind), of_step.to(kind), path_weights.to(kind), node, path)
    neighbours: Tensor = _represent(*(tensor[None] for tensor in given))
    return neighbours.squeeze(0)


def represent_torch(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """The contract, one step of all paths at a time."""
    given = of_input[node]  # (U, F')
    neighbours = torch.zeros_like(given)
    for c in range(of_step.shape[1]):
        neighbours = neighbours + path_weights[path, c, None] * F.elu(given + of_step[path, c])
    return neighbours


@torch.library.custom_op("gatas::represent", mutates_args=())
def _represent(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    if not of_input.is_cuda:
        out: Tensor = each_model(_forward_numba, of_input, of_step, path_weights, node, path)
        return out
    from gatas.nn.ops import gpu_layers

    return gpu_layers.represent_forward(of_input, of_step, path_weights, node, path)


@_represent.register_fake
def _(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    return of_input.new_empty(*node.shape, of_input.shape[-1])


@torch.library.custom_op("gatas::represent_backward", mutates_args=())
def _represent_backward(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the nodes' projections, and (M, E, C, F' + 1) of the steps' with that of β beside them."""
    if not of_input.is_cuda:
        grads: tuple[Tensor, Tensor] = each_model(_backward_numba, grad_out, of_input, of_step, path_weights, node, path)
        return grads
    from gatas.nn.ops import gpu_layers

    return gpu_layers.represent_backward(grad_out, of_input, of_step, path_weights, node, path)


@_represent_backward.register_fake
def _(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor]:
    return of_input.new_empty(of_input.shape), of_step.new_empty(*path_weights.shape, of_step.shape[-1] + 1)


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _differentiate(ctx, grad_out):  # type: ignore[no-untyped-def]
    of_input, of_step = torch.ops.gatas.represent_backward(grad_out.contiguous(), *ctx.saved_tensors)
    return of_input, of_step[..., :-1], of_step[..., -1], None, None


_represent.register_autograd(_differentiate, setup_context=_setup)
fold_models(_represent)
fold_models(_represent_backward)


def _forward_numba(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    out = of_input.new_empty(len(node), of_input.shape[1])
    given = (of_input, of_step.flatten(0, 1), path_weights, node, path, out)
    *arrays, filled = (tensor.contiguous().numpy() for tensor in given)

    def work(first: int, last: int) -> None:
        path_kernels.mix_steps(*arrays, first, last, filled)

    run_rows(work, len(node), path_weights.shape[1] * of_input.shape[1])
    return out


def _backward_numba(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor]:
    given = (of_input, of_step.flatten(0, 1), path_weights, node, path, grad_out)
    arrays = [tensor.contiguous().numpy() for tensor in given]
    cuts = np.array(even_cuts(len(node), PIECES))
    if not path_kernels.cut_between_nodes(arrays[3], cuts):
        cuts[1:] = len(node)  # all in the first piece
    steps = path_weights.numel()
    of_inputs, of_steps = of_input.new_zeros(of_input.shape), of_step.new_zeros(PIECES * steps, of_step.shape[-1])
    of_weights = of_step.new_zeros(PIECES * steps)
    grads = [grad.numpy() for grad in (of_inputs, of_steps, of_weights)]

    def work(first: int, last: int) -> None:
        path_kernels.mix_steps_backward(*arrays, cuts, first, last, *grads)

    run_rows(work, PIECES, len(node) * of_step[0].numel() // PIECES)
    together = torch.cat([of_steps, of_weights[:, None]], dim=-1).view(PIECES, *path_weights.shape, -1).sum(0)
    return of_inputs, together
