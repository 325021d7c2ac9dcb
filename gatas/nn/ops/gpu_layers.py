"""Launches of the other Triton kernels: noise, paths, features, the optimiser. All have a leading dimension of M models."""

from typing import Any

import triton
from torch import Tensor

from gatas.nn.ops import triton_kernels as kernels
from gatas.nn.ops.dropout import threshold_of
from gatas.nn.ops.gpu import PROGRAMS, launch, padded, parts_of
from gatas.nn.ops.nadam import Moments


def fill_keep(
    seed: Tensor, step: Tensor, place: int, first: Tensor, second: Tensor, threshold: int, scale: float, out: Tensor
) -> None:
    """Fill (M, R, width) with 0 or `scale`."""
    models, rows, width = out.shape
    groups = min(64, triton.next_power_of_2((width + 3) // 4))
    block = max(1, 256 // groups)
    grid = (triton.cdiv(rows, block), triton.cdiv(width, 4 * groups), models)
    launch(
        kernels.fill_keep, grid, seed, step, first, second, out, threshold, scale, rows, width,
        PLACE=place, ROWS=block, GROUPS=groups,
    )  # fmt: skip


def represent_forward(of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor) -> Tensor:
    """n, (M, U, F): of (M, V, F) projected nodes over (M, E, C, F) projected steps."""
    models, pairs = node.shape
    out = of_input.new_empty(models, pairs, of_input.shape[-1])
    grid = (triton.cdiv(pairs, 32), models)
    sizes = represent_sizes(of_input, of_step, pairs)
    launch(kernels.represent_forward, grid, of_input, of_step, path_weights, node, path, out, **sizes, ROWS=32)
    return out


def represent_backward(
    grad_out: Tensor, of_input: Tensor, of_step: Tensor, path_weights: Tensor, node: Tensor, path: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the nodes' projections, and (M, E, C, F + 1) of the steps' with that of β beside them."""
    models, pairs = node.shape
    _, num_paths, num_steps, width = of_step.shape
    sizes = represent_sizes(of_input, of_step, pairs)
    given = (of_input, of_step, path_weights, node, path, grad_out)
    of_inputs = of_input.new_zeros(of_input.shape)
    launch(kernels.represent_backward_input, (triton.cdiv(pairs, 32), models), *given, of_inputs, **sizes, ROWS=32)
    share, parts = parts_of(pairs, PROGRAMS // (models * num_steps))
    of_steps = of_step.new_empty(models, parts, num_paths, num_steps, width + 1)
    launch(
        kernels.represent_backward_steps, (parts, num_steps, models), *given, of_steps,
        **sizes, SHARE=share, EP=padded(num_paths), ROWS=64,
    )  # fmt: skip
    return of_inputs, of_steps.sum(1)


def represent_sizes(of_input: Tensor, of_step: Tensor, pairs: int) -> dict[str, int]:
    _, num_paths, num_steps, width = of_step.shape
    return {"V": of_input.shape[1], "E": num_paths, "U": pairs, "C": num_steps, "F": width, "FP": padded(width)}


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
    """`nadam.nadam_step` in two launches and a sum."""
    (models, size), block = values.shape, 1024
    grid = (triton.cdiv(size, block), models)
    partial = values.new_empty(models, grid[0])
    first, second, product, steps = moments
    decay, nesterov = momentum_decay or 0.0, momentum_decay is not None
    launch(
        kernels.nadam_norm, grid, values, gradient, l2, partial, product, steps, size, betas[0], decay,
        L2=l2 is not None, BLOCK=block,
    )  # fmt: skip
    launch(
        kernels.nadam_update, grid, values, gradient, first, second, product, steps, lr, partial.sum(1), size,
        *betas, eps, decay, float("inf") if max_norm is None else max_norm, NESTEROV=nesterov, BLOCK=block,
    )  # fmt: skip


def normalise_forward(
    features: Tensor,  # (N, F), one for all models
    nodes: Tensor,  # (M, V)
    weight: Tensor,  # (M, F)
    bias: Tensor,
    seed: Tensor,  # (M,)
    step: Tensor,
    place: int,
    probability: float,
    eps: float,
) -> Tensor:
    """(M, V, F)."""
    models, count = nodes.shape
    out = weight.new_empty(models, count, features.shape[1])
    sizes = normalise_sizes(features.shape[1], place, probability)
    launch(
        kernels.normalise_forward, (triton.cdiv(count, sizes["ROWS"]), models), features, nodes, weight, bias, seed, step,
        out, *drop(probability), eps, count, features.shape[1], **sizes,
    )  # fmt: skip
    return out


def normalise_backward(
    grad_out: Tensor, features: Tensor, nodes: Tensor, seed: Tensor, step: Tensor, place: int, probability: float, eps: float
) -> Tensor:
    """(M, 2, F): gradients of weight and bias."""
    (models, count), width = nodes.shape, features.shape[1]
    share, parts = parts_of(count, PROGRAMS // models)
    grad = grad_out.new_empty(models, parts, 2, width)
    launch(
        kernels.normalise_backward, (parts, models), features, nodes, seed, step, grad_out, grad,
        *drop(probability), eps, count, width, SHARE=share, **normalise_sizes(width, place, probability),
    )  # fmt: skip
    return grad.sum(1)


def normalise_sizes(width: int, place: int, probability: float) -> dict[str, Any]:
    columns = int(triton.next_power_of_2(max(4, width)))
    return {"PLACE": place, "FP": columns, "ROWS": max(1, 2048 // columns), "DROP": probability > 0}


def drop(dropout: float) -> tuple[int, float]:
    """Threshold and scale."""
    return threshold_of(dropout), 1 / (1 - dropout)
