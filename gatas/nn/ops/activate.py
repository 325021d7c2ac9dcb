"""ELU and the dropout that follows it, in one pass each way: nothing but the result is kept for the backward pass."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.nn.ops import noise_kernels
from gatas.nn.ops.dropout import keep_torch
from gatas.sampling.threads import run_rows


def elu_dropout(values: Tensor, key: tuple[int, int], first: Tensor, second: Tensor, probability: float) -> Tensor:
    """ELU of (n, width) values, then dropout: row r is named by first[r], second[r]. A probability of 0 leaves ELU alone."""
    if values.device.type != "cpu":
        return elu_dropout_torch(values, key, first, second, probability)
    out: Tensor = _elu_dropout(values, first, second, *key, probability)
    return out


def elu_dropout_torch(values: Tensor, key: tuple[int, int], first: Tensor, second: Tensor, probability: float) -> Tensor:
    """The same, slow and obvious."""
    if not probability:
        return F.elu(values)
    return F.elu(values) * keep_torch(key, first, second, values.shape[1], probability).to(values.dtype)


@torch.library.custom_op("gatas::elu_dropout", mutates_args=(), device_types="cpu")
def _elu_dropout(values: Tensor, first: Tensor, second: Tensor, key0: int, key1: int, probability: float) -> Tensor:
    return _rows(noise_kernels.elu_dropout, [values], first, second, key0, key1, probability)


@torch.library.custom_op("gatas::elu_dropout_backward", mutates_args=(), device_types="cpu")
def _elu_dropout_backward(
    grad_values: Tensor, values: Tensor, first: Tensor, second: Tensor, key0: int, key1: int, probability: float
) -> Tensor:
    return _rows(noise_kernels.elu_dropout_backward, [values, grad_values], first, second, key0, key1, probability)


def _rows(
    kernel: Any, tensors: list[Tensor], first: Tensor, second: Tensor, key0: int, key1: int, probability: float
) -> Tensor:
    out = torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    values, *others = (tensor.detach().contiguous().numpy() for tensor in (*tensors, out))
    names = first.contiguous().numpy(), second.contiguous().numpy()
    threshold, scale = np.uint32(round(probability * 2**32)), values.dtype.type(1 / (1 - probability))

    def work(start: int, stop: int) -> None:
        kernel(np.uint32(key0), np.uint32(key1), *names, threshold, scale, values, start, stop, *others)

    run_rows(work, *values.shape)
    return out


@_elu_dropout.register_fake
def _(values: Tensor, first: Tensor, second: Tensor, key0: int, key1: int, probability: float) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


@_elu_dropout_backward.register_fake
def _(grad_values: Tensor, values: Tensor, first: Tensor, second: Tensor, key0: int, key1: int, probability: float) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, first, second, *ctx.noise = inputs
    ctx.save_for_backward(output, first, second)


def _differentiate(ctx, grad_values):  # type: ignore[no-untyped-def]
    return torch.ops.gatas.elu_dropout_backward(grad_values, *ctx.saved_tensors, *ctx.noise), None, None, None, None, None


_elu_dropout.register_autograd(_differentiate, setup_context=_setup)
