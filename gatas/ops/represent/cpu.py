"""`represent` by numba: rows by number and unsigned places, as in `numba_rows`."""

import numpy as np
import torch
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.models import each_model
from gatas.ops.numba_rows import FUSE, REORDER, exp, fill
from gatas.ops.represent.contract import RepresentInputs
from gatas.ops.threads import even_cuts, run_rows

PIECES = 8
"""Pairs are shared out among threads in as many pieces in the backward pass, however many threads there are."""


def forward(given: RepresentInputs) -> Tensor:
    """(M, U, F')."""
    out: Tensor = each_model(_forward, given)
    return out


def backward(given: RepresentInputs, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the nodes' projections, and (M, E, C, F' + 1) of the steps' with that of β beside them."""
    grads: tuple[Tensor, Tensor] = each_model(_backward, given, grad_out)
    return grads


def _forward(given: RepresentInputs) -> Tensor:
    of_input, of_step, path_weights, node, path = given
    out = of_input.new_empty(len(node), of_input.shape[1])
    arrays = [as_numpy(tensor) for tensor in (of_input, of_step.flatten(0, 1), path_weights, node, path)]

    def work(first: int, last: int) -> None:
        mix_steps(*arrays, first, last, out.numpy())

    run_rows(work, len(node), path_weights.shape[1] * of_input.shape[1])
    return out


def _backward(given: RepresentInputs, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    of_input, of_step, path_weights, node, path = given
    arrays = [as_numpy(tensor) for tensor in (of_input, of_step.flatten(0, 1), path_weights, node, path, grad_out)]
    cuts = np.array(even_cuts(len(node), PIECES))
    if not cut_between_nodes(arrays[3], cuts):
        cuts[1:] = len(node)  # all in the first piece
    steps = path_weights.numel()
    of_inputs, of_steps = of_input.new_zeros(of_input.shape), of_step.new_zeros(PIECES * steps, of_step.shape[-1])
    of_weights = of_step.new_zeros(PIECES * steps)
    grads = [grad.numpy() for grad in (of_inputs, of_steps, of_weights)]

    def work(first: int, last: int) -> None:
        mix_steps_backward(*arrays, cuts, first, last, *grads)

    run_rows(work, PIECES, len(node) * of_step[0].numel() // PIECES)
    together = torch.cat([of_steps, of_weights[:, None]], dim=-1).view(PIECES, *path_weights.shape, -1).sum(0)
    return of_inputs, together


@compiled(fastmath=FUSE)
def mix_steps(of_input, of_step, weights, node, path, first, last, out):
    """out[u] = Σ over t of β[path, t] · ELU(of_input[node] + of_step[path, t]), for some rows u. Steps come flat: (E·C, F')."""
    num_steps = weights.shape[1]
    for u in range(first, last):
        fill(out, u, 0)
        for t in range(num_steps):
            if weights[path[u], t]:
                add_step(of_input, node[u], of_step, path[u] * num_steps + t, weights[path[u], t], out, u)


@compiled(fastmath=FUSE, forceinline=True)
def add_step(of_input, node, of_step, step, weight, out, row):
    i, j, o, zero, one = np.uint64(node), np.uint64(step), np.uint64(row), out.dtype.type(0), out.dtype.type(1)
    for n in range(out.shape[1]):
        place = np.uint64(n)
        x = of_input[i, place] + of_step[j, place]
        out[o, place] += weight * (max(x, zero) + exp(min(x, zero)) - one)


@compiled()
def mix_steps_backward(
    of_input, of_step, weights, node, path, grad_out, cuts, first, last, grad_input, grad_step, grad_weights
):
    """Gradients are added to what is there, for pairs of some pieces, each with its own (E·C, F') of steps and E·C weights.

    No node may be in two pieces. A step whose weight is zero does not exist, and gets none.
    """
    num_paths, num_steps = weights.shape
    for piece in range(first, last):
        for u in range(cuts[piece], cuts[piece + 1]):
            for t in range(num_steps):
                weight, step = weights[path[u], t], path[u] * num_steps + t
                own = piece * num_paths * num_steps + step
                if weight:
                    grad_weights[own] += step_backward(
                        of_input, node[u], of_step, step, weight, grad_out, u, grad_input, grad_step, own
                    )


@compiled()
def cut_between_nodes(node, cuts):
    """Move cuts on to where a new node begins; False if nodes are not in order, so that they may be anywhere."""
    for u in range(1, node.size):
        if node[u] < node[u - 1]:
            return False
    for piece in range(1, cuts.size - 1):
        at = max(cuts[piece], cuts[piece - 1])
        while 0 < at < node.size and node[at] == node[at - 1]:
            at += 1
        cuts[piece] = at
    return True


@compiled(fastmath=REORDER, forceinline=True)
def step_backward(of_input, node, of_step, step, weight, grad_out, row, grad_input, grad_step, own):
    i, j, o, s = np.uint64(node), np.uint64(step), np.uint64(row), np.uint64(own)
    zero, one = grad_out.dtype.type(0), grad_out.dtype.type(1)
    of_weight = zero
    for n in range(grad_out.shape[1]):
        place = np.uint64(n)
        x = of_input[i, place] + of_step[j, place]
        slope = exp(min(x, zero))
        of_weight += grad_out[o, place] * (max(x, zero) + slope - one)
        of_value = weight * grad_out[o, place] * slope
        grad_input[i, place] += of_value
        grad_step[s, place] += of_value
    return of_weight
