"""ln P and the gradient of ln q by Triton. Sums are made in the same order every time."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.mixture.contract import MixtureInputs, StepInputs

BLOCK = 2048
"""Slots for each program, of one model."""


def log_mixture(given: MixtureInputs) -> Tensor:
    """(M, B, S) of ln q's type."""
    (num_models, batch_size, sample_size), num_levels = given.step.shape, given.log_depth.shape[1]
    size = batch_size * sample_size
    out = given.log_depth.new_empty(given.step.shape)
    if out.numel():
        inputs = [tensor.contiguous() for tensor in given]
        with torch.cuda.device_of(out):
            add_depth[(triton.cdiv(size, BLOCK), num_models)](*inputs, out, size, num_levels, BLOCK)
    return out


def sum_by_step(given: StepInputs) -> Tensor:
    """(M, C + 1): each program adds up its block, and torch adds up the programs."""
    values, step, mask, num_levels = given
    num_models, batch_size, sample_size = step.shape
    size = batch_size * sample_size
    num_blocks = triton.cdiv(size, BLOCK)
    precise = torch.promote_types(values.dtype, torch.float32)
    sums = values.new_empty(num_models, num_blocks, num_levels, dtype=precise)
    if sums.numel():
        inputs = [tensor.contiguous() for tensor in (values, step, mask)]
        with torch.cuda.device_of(values):
            add_up_block[(num_blocks, num_models)](*inputs, sums, size, num_levels, BLOCK)
    return sums.sum(1).to(values.dtype)


@triton.jit
def add_depth(log_depth, step, log_step, mask, out, size, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """ln q of an entry's step and ln T of the entry; -inf where masked."""
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    model = tl.program_id(1).to(tl.int64)
    exists = slot < size
    at = model * size + slot
    level = model * LEVELS + tl.load(step + at, mask=exists, other=0)
    value = tl.load(log_depth + level) + tl.load(log_step + at, mask=exists, other=0.0)
    tl.store(out + at, tl.where(tl.load(mask + at, mask=exists, other=0) != 0, value, -float("inf")), mask=exists)


@triton.jit
def add_up_block(values, step, mask, sums, size, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    """One sum for each step, of one block of one model."""
    slot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    model = tl.program_id(1).to(tl.int64)
    at = model * size + slot
    used = tl.load(mask + at, mask=slot < size, other=0) != 0
    value = tl.load(values + at, mask=used, other=0.0).to(sums.dtype.element_ty)
    level = tl.load(step + at, mask=used, other=0)
    sums += (model * tl.num_programs(0) + tl.program_id(0)) * LEVELS
    for step_of_sum in tl.static_range(LEVELS):
        tl.store(sums + step_of_sum, tl.sum(tl.where(level == step_of_sum, value, 0.0), axis=0))
