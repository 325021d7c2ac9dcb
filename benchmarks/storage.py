"""What does it cost in accuracy to keep keys and values in fewer bits?

    python -m benchmarks.storage [--seeds 5]

The operator for GPUs keeps keys and values of pairs as `training.storage` says. Here plain torch does the same on a CPU: they
are made in float32, rounded, and used rounded in both passes, as the kernels do. The errors are against float64. Times are
not measured: they are a GPU's.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.attend import SHAPES, from_neighbours
from benchmarks.report import Report
from gatas.ops.attend import AttendInputs, attend_torch

SHAPE = next(name for name in SHAPES if name.startswith("Cora"))
Rounding = Callable[[Tensor], Tensor]


def tf32(tensor: Tensor) -> Tensor:
    """Rounded to the ten bits that TF32 has."""
    return ((tensor.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class Rounded(torch.autograd.Function):
    """What a tensor is stored as; its gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, rounding: Rounding) -> Tensor:
        return rounding(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class StoredElu(torch.autograd.Function):
    """ELU, stored; its slope is taken from what was stored."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, rounding: Rounding) -> Tensor:
        value = rounding(F.elu(tensor))
        ctx.save_for_backward(value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        return torch.where(value > 0, grad, grad * (value + 1)), None


def attended(given: dict[str, Any], factors: Rounding, stored: Rounding) -> Tensor:
    """(B, K, F'') with factors of products and what is stored of them rounded."""
    n, own, score = Rounded.apply(given["neighbours"], factors), given["mask"], given["score"]
    key_weight, value_weight = (Rounded.apply(given[name], factors) for name in ("key_weight", "value_weight"))
    keys = Rounded.apply(n @ key_weight.T, stored).view(len(n), *score.shape)
    values = StoredElu.apply(n @ value_weight.T + given["value_bias"], stored).view(len(n), len(score), -1)
    return attend_torch(AttendInputs(given["target_terms"], keys, score, values, given["index"], given["log_probability"], own))


def outcome(given: dict[str, Any], kind: torch.dtype, factors: Rounding, stored: Rounding) -> dict[str, Tensor]:
    """The result and its gradients, in float64."""
    cast = {name: tensor.detach().to(kind) if tensor.is_floating_point() else tensor for name, tensor in given.items()}
    leaves = {name: tensor.requires_grad_() for name, tensor in cast.items() if given[name].requires_grad}
    out = attended(cast, factors, stored)
    weights = torch.linspace(-1, 1, out.numel(), dtype=kind).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    return dict(zip(["out", *leaves], (tensor.detach().double() for tensor in (out, *gradients)), strict=True))


def same(tensor: Tensor) -> Tensor:
    return tensor


WAYS: dict[str, tuple[Rounding, Rounding, int]] = {
    "float32": (same, same, 4),
    "float16": (same, lambda tensor: tensor.half().to(tensor.dtype), 2),
    "bfloat16": (same, lambda tensor: tensor.bfloat16().to(tensor.dtype), 2),
    "float32, products of TF32": (tf32, same, 4),
    "float16, products of TF32": (tf32, lambda tensor: tensor.half().to(tensor.dtype), 2),
    "bfloat16, products of TF32": (tf32, lambda tensor: tensor.bfloat16().to(tensor.dtype), 2),
}


def errors(seed: int) -> dict[str, dict[str, float]]:
    """Of each way, the norm of the error of the result and of each gradient by the norm of what it is an error of."""
    given = from_neighbours(**SHAPES[SHAPE], device="cpu", seed=seed)
    exact = outcome(given, torch.float64, same, same)
    found = {}
    for way, (factors, stored, _) in WAYS.items():
        ours = outcome(given, torch.float32, factors, stored)
        found[way] = {name: float((ours[name] - value).norm() / value.norm()) for name, value in exact.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    report = Report("storage", "What does it cost in accuracy to keep keys and values in fewer bits?", ["torch"])
    found, sizes = [errors(seed) for seed in range(seeds)], SHAPES[SHAPE]
    numbers = 2 * sizes["pairs"] * sizes["heads"] * -(-sizes["size"] // 8) * 8
    rows = []
    for way, (_, _, width) in WAYS.items():
        largest = {name: max(own[way][name] for own in found) for name in found[0][way]}
        out, keys, values = (f"{largest[name]:.1e}" for name in ("out", "key_weight", "value_weight"))
        others = max(error for name, error in largest.items() if name != "out")
        rows.append([way, f"{width * numbers / 2**20:.1f}", out, keys, values, f"{others:.1e}"])
    report.add(f"- shape: {SHAPE}, {sizes['pairs']:,} distinct pairs; weights and inputs at random")
    report.table(["keys and values in", "MiB", "result", "gradient of W", "of the values' weight", "largest gradient"], rows)
    report.add(
        f"Relative errors, by norms, against float64: the largest of {seeds} seeds. Plain torch on a CPU rounds what the "
        "kernels for GPUs store, and for the lower half the factors of products too. Nothing ran on a GPU: what each costs in "
        "time there, and in the accuracy of what is learned, was not measured."
    )
    report.write()


if __name__ == "__main__":
    main()
