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
def mix_steps_backward(of_input, of_step, weights, node, path, grad_out, grad_input, grad_step, grad_weights):
    """Gradients are added to what is there; in one thread, as pairs share nodes and paths."""
    num_steps = weights.shape[1]
    for u in range(node.size):
        for t in range(num_steps):
            step, weight = path[u] * num_steps + t, weights[path[u], t]
            grad_weights[path[u], t] += step_backward(
                of_input, node[u], of_step, step, weight, grad_out, u, grad_input, grad_step
            )


@compiled(fastmath=REORDER, forceinline=True)
def step_backward(of_input, node, of_step, step, weight, grad_out, row, grad_input, grad_step):
    i, j, o = np.uint64(node), np.uint64(step), np.uint64(row)
    zero, one = grad_out.dtype.type(0), grad_out.dtype.type(1)
    of_weight = zero
    for n in range(grad_out.shape[1]):
        place = np.uint64(n)
        x = of_input[i, place] + of_step[j, place]
        slope = exp(min(x, zero))
        of_weight += grad_out[o, place] * (max(x, zero) + slope - one)
        of_value = weight * grad_out[o, place] * slope
        grad_input[i, place] += of_value
        grad_step[j, place] += of_value
    return of_weight
