"""`represent` by Triton."""

import triton
import triton.language as tl
from torch import Tensor

from gatas.ops.launch import PROGRAMS, launch, padded, parts_of
from gatas.ops.represent.contract import RepresentInputs
from gatas.ops.triton_rows import elu, load_rows


def forward(given: RepresentInputs) -> Tensor:
    """(M, U, F')."""
    models, pairs = given.node.shape
    out = given.of_input.new_empty(models, pairs, given.of_input.shape[-1])
    launch(represent_forward, (triton.cdiv(pairs, 32), models), *given, out, **sizes_of(given), ROWS=32)
    return out


def backward(given: RepresentInputs, grad_out: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the nodes' projections, and (M, E, C, F' + 1) of the steps' with that of β beside them."""
    models, pairs = given.node.shape
    _, num_paths, num_steps, width = given.of_step.shape
    sizes = sizes_of(given)
    of_inputs = given.of_input.new_zeros(given.of_input.shape)
    launch(represent_backward_input, (triton.cdiv(pairs, 32), models), *given, grad_out, of_inputs, **sizes, ROWS=32)
    share, parts = parts_of(pairs, PROGRAMS // (models * num_steps))
    of_steps = given.of_step.new_empty(models, parts, num_paths, num_steps, width + 1)
    launch(
        represent_backward_steps, (parts, num_steps, models), *given, grad_out, of_steps,
        **sizes, SHARE=share, EP=padded(num_paths), ROWS=64,
    )  # fmt: skip
    return of_inputs, of_steps.sum(1)


def sizes_of(given: RepresentInputs) -> dict[str, int]:
    _, num_paths, num_steps, width = given.of_step.shape
    sizes = {"V": given.of_input.shape[1], "E": num_paths, "U": given.node.shape[1], "C": num_steps}
    return {**sizes, "F": width, "FP": padded(width)}


@triton.jit
def represent_forward(
    of_input, of_step, path_weights, node, path, out, V, E, U, C: tl.constexpr, F: tl.constexpr, FP: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """n = Σ_c β ELU(z) for a block of pairs (eq. 1)."""
    model = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = pair < U
    source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
    way = tl.load(path + model * U + pair, mask=live, other=0) + model * E
    given = load_rows(of_input, source, live, F, FP)
    total = tl.zeros((ROWS, FP), tl.float32)
    for c in tl.static_range(C):
        value = elu(given + load_rows(of_step, way * C + c, live, F, FP))
        total += tl.load(path_weights + way * C + c, mask=live, other=0.0)[:, None] * value
    column = tl.arange(0, FP)
    place = out + (model * U + pair)[:, None] * F + column[None, :]
    tl.store(place, total, mask=live[:, None] & (column < F)[None, :])


@triton.jit
def represent_backward_input(
    of_input, of_step, path_weights, node, path, grad_out, grad_input, V, E, U, C: tl.constexpr, F: tl.constexpr,
    FP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Gradients of the nodes' projections, added up over the pairs that hold each node."""
    model = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    live = pair < U
    source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
    way = tl.load(path + model * U + pair, mask=live, other=0) + model * E
    given = load_rows(of_input, source, live, F, FP)
    slope = tl.zeros((ROWS, FP), tl.float32)
    for c in tl.static_range(C):
        before = given + load_rows(of_step, way * C + c, live, F, FP)
        slope += tl.load(path_weights + way * C + c, mask=live, other=0.0)[:, None] * tl.exp(tl.minimum(before, 0.0))
    gradient = load_rows(grad_out, model * U + pair, live, F, FP) * slope
    column = tl.arange(0, FP)
    place = grad_input + source[:, None] * F + column[None, :]
    tl.atomic_add(place, gradient, mask=live[:, None] & (column < F)[None, :], sem="relaxed")


@triton.jit
def represent_backward_steps(
    of_input, of_step, path_weights, node, path, grad_out, grad_step, V, E, U, SHARE, C: tl.constexpr,
    F: tl.constexpr, FP: tl.constexpr, EP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Gradients of the paths' steps and weights at one position: few paths, many pairs, so sums by a one-hot product."""
    part, c, model = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    of_values = tl.zeros((EP, FP), tl.float32)
    of_weights = tl.zeros((EP,), tl.float32)
    kind = tl.arange(0, EP)
    for first in range(part * SHARE, tl.minimum((part + 1) * SHARE, U), ROWS):
        pair = first + tl.arange(0, ROWS)
        live = pair < tl.minimum((part + 1) * SHARE, U)
        way = tl.load(path + model * U + pair, mask=live, other=0)
        source = tl.load(node + model * U + pair, mask=live, other=0) + model * V
        step = (way + model * E) * C + c
        before = load_rows(of_input, source, live, F, FP) + load_rows(of_step, step, live, F, FP)
        slope = tl.exp(tl.minimum(before, 0.0))
        gradient = load_rows(grad_out, model * U + pair, live, F, FP)
        gain = tl.sum(gradient * tl.where(before > 0, before, slope - 1), 1)
        chosen = (kind[:, None] == way[None, :]) & live[None, :]
        share = tl.load(path_weights + step, mask=live, other=0.0)
        of_values += tl.dot(tl.where(chosen, share[None, :], 0.0), gradient * slope, input_precision="ieee")
        of_weights += tl.sum(tl.where(chosen, gain[None, :], 0.0), 1)
    at = (model * tl.num_programs(0) + part) * E
    column = tl.arange(0, FP)
    place = grad_step + ((at + kind) * C + c)[:, None] * (F + 1)
    tl.store(place + column[None, :], of_values, mask=(kind < E)[:, None] & (column < F)[None, :])
    tl.store(grad_step + ((at + kind) * C + c) * (F + 1) + F, of_weights, mask=kind < E)
