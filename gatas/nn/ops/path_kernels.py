"""The numba functions of `paths`: rows by number and unsigned places, as in `kernels`."""

import numpy as np

from gatas.nn.ops.kernels import FUSE, REORDER, exp, fill
from gatas.transitions.kernels import compiled


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
