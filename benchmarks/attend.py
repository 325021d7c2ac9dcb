"""How fast is the fused attention operator beside plain torch, and how much memory does it take?

    python -m benchmarks.attend [--device cuda] [--repeats 15]

On a GPU also: what share of the floors set by memory and arithmetic is reached.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.report import Report, gpu_milliseconds, median_seconds, peak_memory, resident_memory
from gatas.ops.attend import AttendInputs, attend, attend_torch
from gatas.ops.attend_neighbours import NeighbourInputs, attend_neighbours, attend_neighbours_torch

SHAPES: dict[str, dict[str, Any]] = {
    "Cora (B=140, S=100, K=8, F=50)": {"batch": 140, "sample": 100, "heads": 8, "size": 50, "pairs": 5_000},
    "PPI (B=100, S=500, K=10, F=50), one graph a batch": {"batch": 100, "sample": 500, "heads": 10, "size": 50, "pairs": 7_000},
    "PPI, targets from all graphs": {"batch": 100, "sample": 500, "heads": 10, "size": 50, "pairs": 40_000},
}
OPERATORS: dict[str, Callable[..., torch.Tensor]] = {
    "fused": attend,
    "torch": lambda **given: attend_torch(AttendInputs(**given)),
}
FROM_NEIGHBOURS: dict[str, Callable[..., torch.Tensor]] = {
    "fused": attend_neighbours,
    "torch": lambda **given: attend_neighbours_torch(NeighbourInputs(**given)),
}
FP32_RATE = 67e12
"""Floating-point operations a second outside the tensor cores, by the H200's data sheet."""


def problem(batch: int, sample: int, heads: int, size: int, pairs: int, device: str = "cpu") -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(device).requires_grad_()

    return {
        "target_terms": normal(batch, heads, size),
        "keys": normal(pairs, heads, size),
        "score": normal(heads, size),
        "values": normal(pairs, heads, size),
        "index": torch.randint(pairs, (batch, sample), generator=generator).to(device),
        "log_probability": normal(batch, sample),
        "mask": torch.ones(batch, sample, dtype=torch.bool, device=device),
    }


def from_neighbours(batch: int, sample: int, heads: int, size: int, pairs: int, device: str, seed: int = 1) -> dict[str, Any]:
    """The same from n: keys and values are part of the work."""
    generator = torch.Generator().manual_seed(seed)

    def small(*shape: int) -> torch.Tensor:
        weight: torch.Tensor = torch.randn(*shape, generator=generator) / size**0.5
        return weight.to(device).requires_grad_()

    given = problem(batch, sample, heads, size, pairs, device)
    del given["keys"], given["values"]
    weights = {"key_weight": small(heads * size, size), "value_weight": small(heads * size, size)}
    return {**given, "neighbours": small(pairs, size), **weights, "value_bias": small(heads * size)}


def step(function: Callable[..., torch.Tensor], tensors: dict[str, Any]) -> None:
    leaves = [tensor for tensor in tensors.values() if tensor is not None and tensor.requires_grad]
    torch.autograd.grad(function(**tensors).sum(), leaves)


def on_cpu(report: Report, repeats: int) -> None:
    rows = []
    for name, shape in SHAPES.items():
        tensors = problem(**shape)
        seconds = {}
        for operator, function in OPERATORS.items():
            step(function, tensors)  # compiled and warm
            seconds[operator] = median_seconds(partial(step, function, tensors), repeats)
        peaks = {operator: measured_memory(operator, name) for operator in OPERATORS}
        rows.append([name, f"{shape['pairs']:,}", *compared(seconds, peaks)])
    report.table(["shape", "distinct pairs", *COMPARED], rows)
    report.add(f"Medians of {repeats} runs; memory is the peak above the inputs, in processes of their own.")


COMPARED = ["fused, ms", "torch, ms", "faster", "fused, MiB", "torch, MiB", "memory"]


def compared(seconds: dict[str, float], peaks: dict[str, int]) -> list[str]:
    times = [f"{1e3 * seconds[operator]:.3g}" for operator in ("fused", "torch")]
    memory = [f"{peaks[operator] / 2**20:.0f}" for operator in ("fused", "torch")]
    return [*times, f"{seconds['torch'] / seconds['fused']:.1f}×", *memory, f"1/{peaks['torch'] / peaks['fused']:.1f}"]


def on_gpu(report: Report, repeats: int) -> None:
    torch.set_float32_matmul_precision("high")
    bandwidth, tensor_rate = measured_ceilings(repeats)
    report.add(f"- measured here: copies {bandwidth / 1e12:.2f} TB/s, TF32 products {tensor_rate / 1e12:.0f} TFLOP/s")
    rows, floors = [], []
    for name, shape in list(SHAPES.items())[1:]:
        for batch in (100, 500):
            sizes = {**shape, "batch": batch}
            label = name.replace("B=100", f"B={batch}") if "B=100" in name else f"{name}, B={batch}"
            for kind, tensors, pair in cases(sizes):
                times = {operator: 1e-3 * gpu_milliseconds(partial(step, f, tensors), repeats) for operator, f in pair.items()}
                peaks = {operator: gpu_memory(f, tensors) for operator, f in pair.items()}
                rows.append([label, kind, *compared(times, peaks)])
                floors.append([label, kind, *floor_shares(sizes, kind, times["fused"], bandwidth, tensor_rate)])
    report.table(["shape", "from", *COMPARED], rows)
    report.add(
        f"Forward and backward, captured, medians of {repeats}. Plain torch does the same from the same inputs, in TF32 where "
        "there are products. Memory is the peak above the inputs. From n of distinct pairs the fused operator stores keys and "
        "values in float16, plain torch in float32: those rows are not of one precision."
    )
    report.table(["shape", "from", "bytes, floor µs", "arithmetic, floor µs", "measured, µs", "share of the larger"], floors)
    report.add(
        "Bytes: every input and gradient once. Arithmetic: 7 operations an element and head forward, 12 backward, at "
        f"{FP32_RATE / 1e12:.0f} TFLOP/s, and the products of keys and values, three times forward's, at the rate measured."
    )


def cases(sizes: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    given = from_neighbours(**sizes, device="cuda")
    slots = {**given, "neighbours": given["neighbours"].detach()[given["index"].flatten()].requires_grad_(), "index": None}
    return [
        ("keys and values", problem(**sizes, device="cuda"), OPERATORS),
        ("n of distinct pairs", given, FROM_NEIGHBOURS),
        ("n of every slot, in tiles", slots, FROM_NEIGHBOURS),
    ]


def measured_ceilings(repeats: int) -> tuple[float, float]:
    """Bytes a second of a large copy, and operations a second of a large TF32 product."""
    large, square = torch.randn(1 << 28, device="cuda"), torch.randn(8192, 8192, device="cuda")
    copied = torch.empty_like(large)
    copy = gpu_milliseconds(lambda: copied.copy_(large), repeats)
    product = gpu_milliseconds(lambda: square @ square, repeats)
    return 2 * large.nbytes / (1e-3 * copy), 2 * 8192**3 / (1e-3 * product)


def floor_shares(sizes: dict[str, Any], kind: str, seconds: float, bandwidth: float, tensor_rate: float) -> list[str]:
    batch, sample, heads, size = (sizes[name] for name in ("batch", "sample", "heads", "size"))
    slots, width = batch * sample, heads * size
    rows, per_row = (slots, size) if "slot" in kind else (sizes["pairs"], size if "distinct" in kind else 2 * width)
    moved = 4 * (2 * rows * per_row + 4 * batch * width + 4 * slots)
    plain = slots * width * (7 + 12)
    products = 0 if kind == "keys and values" else 3 * 2 * rows * size * 2 * width
    floors = moved / bandwidth, plain / FP32_RATE + products / tensor_rate
    return [*(f"{1e6 * floor:.1f}" for floor in floors), f"{1e6 * seconds:.0f}", f"{100 * max(floors) / seconds:.0f} %"]


def gpu_memory(function: Callable[..., torch.Tensor], tensors: dict[str, Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(function, tensors)
    return torch.cuda.max_memory_allocated() - before


def measured_memory(operator: str, shape: str) -> int:
    command = [sys.executable, "-m", "benchmarks.attend", "--memory-of", operator, shape]
    return int(json.loads(subprocess.check_output(command, text=True).splitlines()[-1]))


def memory_of(operator: str, shape: str) -> int:
    step(OPERATORS[operator], problem(2, 3, 2, 4, 5))
    tensors = problem(**SHAPES[shape])
    before = resident_memory()
    step(OPERATORS[operator], tensors)
    return peak_memory() - before


def main() -> None:
    arguments = parse()
    if arguments.memory_of:
        print(json.dumps(memory_of(*arguments.memory_of)))
        return
    question = "The fused attention operator beside plain torch, forward and backward"
    if arguments.device == "cuda":
        report = Report("attend-gpu", question, ("torch", "triton", "numpy"))
        on_gpu(report, arguments.repeats)
    else:
        report = Report("attend", question, ("torch", "numba", "numpy"))
        report.add(f"- threads: {torch.get_num_threads()}")
        on_cpu(report, arguments.repeats)
    report.write()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
