"""`nadam_step` by Triton."""

import triton
import triton.language as tl

from gatas.ops.launch import launch
from gatas.ops.nadam.contract import NAdamInputs


def nadam_step(given: NAdamInputs) -> None:
    """Take a step in two launches and a sum."""
    values, gradient, moments, lr, l2, betas, eps, momentum_decay, max_norm = given
    (models, size), block = values.shape, 1024
    grid = (triton.cdiv(size, block), models)
    partial = values.new_empty(models, grid[0])
    first, second, product, steps = moments
    decay, nesterov = momentum_decay or 0.0, momentum_decay is not None
    launch(
        nadam_norm, grid, values, gradient, l2, partial, product, steps, size, betas[0], decay,
        L2=l2 is not None, OWN=l2 is not None and l2.dim() == 2, BLOCK=block,
    )  # fmt: skip
    launch(
        nadam_update, grid, values, gradient, first, second, product, steps, lr, partial.sum(1), size,
        *betas, eps, decay, float("inf") if max_norm is None else max_norm, NESTEROV=nesterov, OWN=lr.dim() == 1,
        BLOCK=block,
    )  # fmt: skip


@triton.jit
def momentum(step, beta1, momentum_decay):
    return beta1 * (1 - 0.5 * tl.exp2(step * momentum_decay * -0.058893689053568565))  # 0.96 to the power


@triton.jit
def nadam_norm(
    values, gradient, l2, partial, product, steps, P, beta1, momentum_decay, L2: tl.constexpr, OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Partial sums of the gradient's square, L2 included; the first program counts the step. `l2` is (P,), or (M, P) if OWN."""
    model, part = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = part.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside, place = column < P, model * P + column
    slope = tl.load(gradient + place, mask=inside, other=0.0)
    if L2:
        share = place if OWN else column
        slope += tl.load(l2 + share, mask=inside, other=0.0) * tl.load(values + place, mask=inside, other=0.0)
        tl.store(gradient + place, slope, mask=inside)
    tl.store(partial + model * tl.num_programs(0) + part, tl.sum(slope * slope, 0))
    if (part == 0) & (model == 0):
        count = tl.load(steps) + 1
        tl.store(steps, count)
        tl.store(product, tl.load(product) * momentum(count, beta1, momentum_decay))


@triton.jit
def nadam_update(
    values, gradient, first, second, product, steps, lr, squares, P, beta1, beta2, eps, momentum_decay, max_norm,
    NESTEROV: tl.constexpr, OWN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of parameters: clip, move the moments, and step; `lr` is one for all models, or each model's OWN."""
    model = tl.program_id(1).to(tl.int64)
    rate = tl.load(lr + model) if OWN else tl.load(lr)
    norm = tl.sqrt(tl.load(squares + model))
    column = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside, place = column < P, model * P + column
    slope = tl.load(gradient + place, mask=inside, other=0.0) * tl.minimum(max_norm / (norm + 1e-6), 1.0)
    m = tl.load(first + place, mask=inside, other=0.0)
    m += (slope - m) * (1 - beta1)
    v = tl.load(second + place, mask=inside, other=0.0) * beta2 + slope * slope * (1 - beta2)
    count, together = tl.load(steps), tl.load(product)
    if NESTEROV:
        now, later = momentum(count, beta1, momentum_decay), momentum(count + 1, beta1, momentum_decay)
        direction = slope * ((1 - now) / (1 - together)) + m * (later / (1 - together * later))
    else:
        direction = m / (1 - tl.exp2(count * tl.log2(beta1)))
    scale = tl.sqrt(v / (1 - tl.exp2(count * tl.log2(beta2)))) + eps
    value = tl.load(values + place, mask=inside, other=0.0)
    tl.store(values + place, value - rate * direction / scale, mask=inside)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
