"""ELU and the dropout that follows it, in one pass each way: nothing but the result is kept for the backward pass."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import noise_kernels
from gatas.nn.ops.dropout import keep, keep_torch, threshold_of
from gatas.sampling.models import each_model, fold_models
from gatas.sampling.noise import Noise, stream
from gatas.sampling.threads import run_rows


def elu_dropout(values: Tensor, noise: Noise, place: int, first: Tensor, second: Tensor, probability: float) -> Tensor:
    """ELU of (R, width) values, then dropout: row r is named by first[r], second[r]. A probability of 0 leaves ELU alone."""
    if values.is_cuda:
        kept = keep(noise, place, first, second, values.shape[1], probability) if probability else None
        return F.elu(values) if kept is None else F.elu(values) * kept.to(values.dtype)
    own = (tensor[None] for tensor in (values, noise.seed, noise.step, first, second))
    out: Tensor = _elu_dropout(*own, place, probability)
    return out.squeeze(0)


def elu_dropout_torch(values: Tensor, noise: Noise, place: int, first: Tensor, second: Tensor, probability: float) -> Tensor:
    """The same, slow and obvious."""
    return F.elu(values) * keep_torch(noise, place, first, second, values.shape[1], probability).to(values.dtype)


@torch.library.custom_op("gatas::elu_dropout", mutates_args=(), device_types="cpu")
def _elu_dropout(
    values: Tensor, seed: Tensor, step: Tensor, first: Tensor, second: Tensor, place: int, probability: float
) -> Tensor:
    def one(values: Tensor, *names: Any) -> Tensor:
        return _rows(noise_kernels.elu_dropout, (values,), *names, place=place, probability=probability)

    out: Tensor = each_model(one, values, seed, step, first, second)
    return out


@torch.library.custom_op("gatas::elu_dropout_backward", mutates_args=(), device_types="cpu")
def _elu_dropout_backward(
    grad_out: Tensor,
    out: Tensor,
    seed: Tensor,
    step: Tensor,
    first: Tensor,
    second: Tensor,
    place: int,
    probability: float,
) -> Tensor:
    def one(out: Tensor, grad_out: Tensor, *names: Any) -> Tensor:
        return _rows(noise_kernels.elu_dropout_backward, (out, grad_out), *names, place=place, probability=probability)

    grad: Tensor = each_model(one, out, grad_out, seed, step, first, second)
    return grad


def _rows(
    kernel: Any,
    tensors: tuple[Tensor, ...],
    seed: Tensor,
    step: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    place: int,
    probability: float,
) -> Tensor:
    out = torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    values, *others = (tensor.contiguous().numpy() for tensor in (*tensors, out))
    key = [np.uint32(word) for word in stream(int(seed), place, int(step))]
    names = first.contiguous().numpy(), second.contiguous().numpy()
    threshold, scale = np.uint16(threshold_of(probability)), values.dtype.type(1 / (1 - probability))

    def work(start: int, stop: int) -> None:
        kernel(*key, *names, threshold, scale, values, start, stop, *others)

    run_rows(work, *values.shape)
    return out


@_elu_dropout.register_fake
def _(values: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


@_elu_dropout_backward.register_fake
def _(grad_out: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(grad_out, memory_format=torch.contiguous_format)


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, *names, ctx.place, ctx.probability = inputs
    ctx.save_for_backward(output, *names)


def _differentiate(ctx, grad_out):  # type: ignore[no-untyped-def]
    grad = torch.ops.gatas.elu_dropout_backward(grad_out, *ctx.saved_tensors, ctx.place, ctx.probability)
    return grad, None, None, None, None, None, None


_elu_dropout.register_autograd(_differentiate, setup_context=_setup)
fold_models(_elu_dropout)
fold_models(_elu_dropout_backward)
