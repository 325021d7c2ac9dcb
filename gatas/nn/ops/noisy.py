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
from gatas.nn.ops.dropout import threshold_of
from gatas.nn.ops.normalise import normalise_torch
from gatas.sampling.models import each_model, fold_models
from gatas.sampling.noise import Noise, stream
from gatas.sampling.threads import even_cuts, run_rows

WIDEST = 2**15
"""Features whose numbers fit in 16 bits."""

PIECES = 4
"""Rows are shared out among threads in as many pieces in the backward pass, however many threads there are."""


def noisy_linear(
    features: Tensor,  # (N, F)
    nodes: Tensor,  # (V,)        rows of the features that are wanted, which name the noise too
    norm_weight: Tensor,  # (F,)
    norm_bias: Tensor,  # (F,)
    weight: Tensor,  # (H, F)
    bias: Tensor,  # (H,)
    noise: Noise,
    place: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    """(V, H) linear(dropout(layer_norm(features[nodes]))), on a CPU."""
    own = (tensor[None] for tensor in (nodes, norm_weight, norm_bias, weight, bias, *noise))
    out: Tensor = _noisy_linear(features, *own, place, probability, epsilon)[0]
    return out.squeeze(0)


def noisy_linear_torch(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    noise: Noise,
    place: int,
    probability: float,
    epsilon: float,
) -> Tensor:
    """The same, slow and obvious."""
    normal = normalise_torch(features, nodes, norm_weight, norm_bias, noise, place, probability, epsilon)
    return F.linear(normal, weight, bias)


@torch.library.custom_op("gatas::noisy_linear", mutates_args=(), device_types="cpu")
def _noisy_linear(
    features: Tensor,
    nodes: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor,
    step: Tensor,
    place: int,
    probability: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(M, V, H), and of each node the columns kept, (M, V, F), how many, (M, V), and mean and 1 / deviation, (M, V, 2)."""
    x = _numpy(features)

    def one(*given: Tensor) -> tuple[Tensor, ...]:
        rows, gamma, beta, w, b = (_numpy(tensor) for tensor in (*given[:3], given[3].T, given[4]))
        out = features.new_empty(len(rows), len(b))
        columns = torch.empty(len(rows), x.shape[1], dtype=torch.int16)
        counts = torch.empty(len(rows), dtype=torch.int32)
        spread = features.new_empty(len(rows), 2)
        filled = (out.numpy(), columns.numpy(), counts.numpy(), spread.numpy())
        if rows.size and not 0 <= rows.min() <= rows.max() < len(x):
            raise IndexError(f"node {rows.max()} is wanted, but features have {len(x)} rows.")
        noise = *_key(given[5], given[6], place), np.uint16(threshold_of(probability)), x.dtype.type(1 / (1 - probability))

        def work(start: int, stop: int) -> None:
            noise_kernels.noisy_linear(*noise, x, rows, gamma, beta, epsilon, w, b, start, stop, *filled)

        run_rows(work, len(rows), x.shape[1])
        return out, columns, counts, spread

    results: tuple[Tensor, Tensor, Tensor, Tensor] = each_model(one, nodes, norm_weight, norm_bias, weight, bias, seed, step)
    return results


@torch.library.custom_op("gatas::noisy_linear_backward", mutates_args=(), device_types="cpu")
def _noisy_linear_backward(
    features: Tensor, nodes: Tensor, columns: Tensor, counts: Tensor, spread: Tensor, grad_out: Tensor
) -> Tensor:
    """A and B side by side, (M, F, 2·H), but for the scale."""
    x = _numpy(features)

    def one(*given: Tensor) -> Tensor:
        rows, kept, numbers, deviations, grad = (_numpy(tensor) for tensor in given)
        parts = features.new_empty(PIECES * x.shape[1], 2 * grad.shape[1])
        cuts = np.array(even_cuts(len(rows), PIECES))

        def work(first: int, last: int) -> None:
            noise_kernels.noisy_linear_backward(x, rows, grad, kept, numbers, deviations, cuts, first, last, parts.numpy())

        run_rows(work, PIECES, x.size // PIECES)
        return parts.view(PIECES, x.shape[1], -1).sum(0)

    results: Tensor = each_model(one, nodes, columns, counts, spread, grad_out)
    return results


@_noisy_linear.register_fake
def _(features: Tensor, nodes: Tensor, norm_weight: Tensor, norm_bias: Tensor, weight: Tensor, *_: Any) -> Any:
    columns = features.new_empty(*nodes.shape, features.shape[1], dtype=torch.int16)
    counts = features.new_empty(nodes.shape, dtype=torch.int32)
    return features.new_empty(*nodes.shape, weight.shape[1]), columns, counts, features.new_empty(*nodes.shape, 2)


@_noisy_linear_backward.register_fake
def _(features: Tensor, nodes: Tensor, columns: Tensor, counts: Tensor, spread: Tensor, grad_out: Tensor) -> Tensor:
    return features.new_empty(len(nodes), features.shape[1], 2 * grad_out.shape[-1])


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    features, nodes, norm_weight, norm_bias, weight, *_, ctx.probability, _ = inputs
    ctx.save_for_backward(features, nodes, *output[1:], norm_weight, norm_bias, weight)


def _differentiate(ctx, grad_out, *_):  # type: ignore[no-untyped-def]
    *given, norm_weight, norm_bias, weight = ctx.saved_tensors
    both = torch.ops.gatas.noisy_linear_backward(*given, grad_out) / (1 - ctx.probability)
    A, B = both.mT.chunk(2, dim=1)  # (M, H, F) each
    of_weight = norm_weight[:, None] * B + norm_bias[:, None] * A
    of_norm = ((weight * B).sum(1), (weight * A).sum(1))
    return None, None, *of_norm, of_weight, grad_out.sum(1), None, None, None, None, None


_noisy_linear.register_autograd(_differentiate, setup_context=_setup)
fold_models(_noisy_linear, shared=(0,))


def _key(seed: Tensor, step: Tensor, place: int) -> tuple[np.uint32, np.uint32]:
    first, second = stream(int(seed), place, int(step))
    return np.uint32(first), np.uint32(second)


def _numpy(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()
