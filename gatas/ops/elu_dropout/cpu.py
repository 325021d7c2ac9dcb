"""`elu_dropout` by numba: rows by number and unsigned places, as in `numba_rows`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.dropout.contract import threshold_of
from gatas.ops.dropout.cpu import fill_words, words_for
from gatas.ops.elu_dropout.contract import EluDropoutInputs
from gatas.ops.models import each_model
from gatas.ops.numba_rows import FUSE, exp
from gatas.ops.random.cpu import U32, stream_key
from gatas.ops.threads import run_rows


def forward(given: EluDropoutInputs) -> Tensor:
    """ELU, then dropout."""

    def one(given: EluDropoutInputs) -> Tensor:
        return _rows(elu_dropout, given, given.values)

    out: Tensor = each_model(one, given)
    return out


def backward(given: EluDropoutInputs, grad_out: Tensor) -> Tensor:
    """The gradient of the values; `given.values` is what came out."""

    def one(given: EluDropoutInputs, grad_out: Tensor) -> Tensor:
        return _rows(elu_dropout_backward, given, given.values, grad_out)

    grad: Tensor = each_model(one, given, grad_out)
    return grad


def _rows(kernel: Any, given: EluDropoutInputs, *tensors: Tensor) -> Tensor:
    out = torch.empty_like(tensors[0], memory_format=torch.contiguous_format)
    values, *others = (as_numpy(tensor) for tensor in (*tensors, out))
    names = as_numpy(given.first), as_numpy(given.second)
    noise = (*stream_key(given.seed, given.place, given.step), *names, np.uint16(threshold_of(given.probability)))
    scale = values.dtype.type(1 / (1 - given.probability))

    def work(start: int, stop: int) -> None:
        kernel(*noise, scale, values, start, stop, *others)

    run_rows(work, *values.shape)
    return out


@compiled(fastmath=FUSE)
def elu_dropout(key0, key1, first, second, threshold, scale, values, start, stop, out):
    """out = keep · ELU(values), for some rows; no noise where the threshold is 0."""
    zero, one = values.dtype.type(0), values.dtype.type(1)
    words = words_for(values.shape[1])
    bits = words.view(np.uint16)
    for row in range(start, stop):
        if threshold > 0:
            fill_words(key0, key1, first[row], second[row], words)
        i = np.uint64(row)
        for n in range(values.shape[1]):
            place = np.uint64(n)
            x = values[i, place]
            out[i, place] = max(x, zero) + exp(min(x, zero)) - one
        if threshold > 0:
            for n in range(values.shape[1]):
                place = np.uint64(n)
                out[i, place] *= scale if bits[place] >= threshold else zero


@compiled(fastmath=FUSE)
def elu_dropout_backward(key0, key1, first, second, threshold, scale, values, start, stop, grad_values, grad):
    """From what came out: ELU′ = 1 above zero, and ELU + 1 below."""
    zero, one, back = values.dtype.type(0), values.dtype.type(1), 1 / scale
    words = words_for(values.shape[1])
    words.fill(U32(0xFFFFFFFF))
    bits = words.view(np.uint16)
    for row in range(start, stop):
        if threshold > 0:
            fill_words(key0, key1, first[row], second[row], words)
        i = np.uint64(row)
        for n in range(values.shape[1]):
            place = np.uint64(n)
            kept = scale if bits[place] >= threshold else zero
            grad[i, place] = kept * grad_values[i, place] * min(values[i, place] * back + one, one)
