"""LayerNorm, feature noise and a dense layer at once: what the noise takes away is never computed.

With the paper's noise of 0.9 that is nine tenths of the work. V nodes, F features, H outputs. Features are given and get no
gradient. With A = Σ keep · g and B = Σ keep · normal · g over rows, all gradients follow: those of LayerNorm's weight and
bias are W · B and W · A column by column, and that of W is their mix.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import noise_kernels
from gatas.nn.ops.dropout import keep_torch
from gatas.sampling.threads import even_cuts, run_rows

PIECES = 4
"""Rows are shared out among threads in as many pieces in the backward pass, however many threads there are."""


def noisy_linear(
    features: Tensor,  # (N, F)
    nodes: Tensor,  # (V,)        rows of the features that are wanted, which name the noise too
    norm_weight: Tensor,  # (F,)
    norm_bias: Tensor,  # (F,)
    weight: Tensor,  # (H, F)
    bias: Tensor,  # (H,)
    key: tuple[int, int],
    probability: float,
    epsilon: float,
) -> Tensor:
    """(V, H) linear(dropout(layer_norm(features[nodes])))."""
    out: Tensor = _noisy_linear(features, nodes, norm_weight, norm_bias, weight, bias, *key, probability, epsilon)
    return out


def noisy_linear_torch(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    key: tuple[int, int],
    probability: float,
    epsilon: float,
) -> Tensor:
    """The same, slow and obvious."""
    normal = F.layer_norm(features[nodes], (features.shape[1],), norm_weight, norm_bias, epsilon)
    keep = keep_torch(key, nodes, torch.zeros_like(nodes), features.shape[1], probability).to(normal.dtype)
    return F.linear(normal * keep, weight, bias)


@torch.library.custom_op("gatas::noisy_linear", mutates_args=(), device_types="cpu")
def _noisy_linear(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    key0: int,
    key1: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    out = features.new_empty(len(nodes), len(bias))
    tensors = (features, nodes, norm_weight, norm_bias, weight.T, bias, out)
    x, rows, gamma, beta, w, b, o = (_numpy(tensor) for tensor in tensors)
    noise = np.uint32(key0), np.uint32(key1), _threshold(probability), x.dtype.type(1 / (1 - probability))

    def work(start: int, stop: int) -> None:
        noise_kernels.noisy_linear(*noise, x, rows, gamma, beta, epsilon, w, b, start, stop, o)

    run_rows(work, len(rows), x.shape[1])
    return out


@torch.library.custom_op("gatas::noisy_linear_backward", mutates_args=(), device_types="cpu")
def _noisy_linear_backward(
    grad_out: Tensor, features: Tensor, nodes: Tensor, key0: int, key1: int, probability: float, epsilon: float
) -> Tensor:
    """A and B side by side, (F, 2·H)."""
    parts = features.new_empty(PIECES * features.shape[1], 2 * grad_out.shape[1])
    x, rows, grad, out = (_numpy(tensor) for tensor in (features, nodes, grad_out, parts))
    noise, cuts = (np.uint32(key0), np.uint32(key1), _threshold(probability)), np.array(even_cuts(len(nodes), PIECES))

    def work(first: int, last: int) -> None:
        noise_kernels.noisy_linear_backward(*noise, x, rows, epsilon, grad, cuts, first, last, out)

    run_rows(work, PIECES, x.size // PIECES)
    return parts.view(PIECES, features.shape[1], -1).sum(0) / (1 - probability)


@_noisy_linear.register_fake
def _(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    key0: int,
    key1: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    return features.new_empty(nodes.shape[0], bias.shape[0])


@_noisy_linear_backward.register_fake
def _(grad_out: Tensor, features: Tensor, nodes: Tensor, key0: int, key1: int, probability: float, epsilon: float) -> Tensor:
    return features.new_empty(features.shape[1], 2 * grad_out.shape[1])


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, nodes, norm_weight, norm_bias, weight, _, *ctx.noise = inputs
    ctx.save_for_backward(features, nodes, norm_weight, norm_bias, weight)


def _differentiate(ctx, grad_out):  # type: ignore[no-untyped-def]
    features, nodes, norm_weight, norm_bias, weight = ctx.saved_tensors
    A, B = torch.ops.gatas.noisy_linear_backward(grad_out, features, nodes, *ctx.noise).T.chunk(2)  # (H, F) each
    of_weight = norm_weight * B + norm_bias * A
    return None, None, (weight * B).sum(0), (weight * A).sum(0), of_weight, grad_out.sum(0), None, None, None, None


_noisy_linear.register_autograd(_differentiate, setup_context=_setup)


def _threshold(probability: float) -> np.uint32:
    return np.uint32(round(probability * 2**32))


def _numpy(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()
