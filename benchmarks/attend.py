"""How fast is the fused attention operator beside plain torch, and how much memory does it take?

python -m benchmarks.attend [--repeats 15]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.report import Report, median_seconds, peak_memory, resident_memory
from gatas.nn.ops.attend import attend, attend_torch

SHAPES = {
    "Cora (B=140, S=100, K=8, F=50)": {"batch": 140, "sample": 100, "heads": 8, "size": 50, "pairs": 5_000},
    "PPI (B=100, S=500, K=10, F=50), one graph a batch": {"batch": 100, "sample": 500, "heads": 10, "size": 50, "pairs": 7_000},
    "PPI, targets from all graphs": {"batch": 100, "sample": 500, "heads": 10, "size": 50, "pairs": 40_000},
}
OPERATORS: dict[str, Callable[..., torch.Tensor]] = {"fused": attend, "torch": attend_torch}


def main() -> None:
    arguments = parse()
    if arguments.memory_of:
        print(json.dumps(memory_of(*arguments.memory_of)))
        return
    report = Report(
        "attend", "The fused attention operator beside plain torch, forward and backward", ("torch", "numba", "numpy")
    )
    report.add(f"- threads: {torch.get_num_threads()}")
    rows = []
    for name, shape in SHAPES.items():
        tensors = problem(**shape)
        seconds = {}
        for operator, function in OPERATORS.items():
            step(function, tensors)  # compiled and warm
            seconds[operator] = median_seconds(partial(step, function, tensors), arguments.repeats)
        peaks = {operator: measured_memory(operator, name) for operator in OPERATORS}
        rows.append(
            [
                name,
                f"{shape['pairs']:,}",
                f"{1e3 * seconds['fused']:.1f}",
                f"{1e3 * seconds['torch']:.1f}",
                f"{seconds['torch'] / seconds['fused']:.1f}×",
                f"{peaks['fused'] / 2**20:.0f}",
                f"{peaks['torch'] / 2**20:.0f}",
                f"1/{peaks['torch'] / peaks['fused']:.1f}",
            ]
        )
    header = ["shape", "distinct pairs", "fused, ms", "torch, ms", "faster", "fused, MiB", "torch, MiB", "memory"]
    report.table(header, rows)
    report.add(f"Medians of {arguments.repeats} runs; memory is the peak above the inputs, in processes of their own.")
    report.write()


def problem(batch: int, sample: int, heads: int, size: int, pairs: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).requires_grad_()

    return {
        "target_terms": normal(batch, heads, size),
        "keys": normal(pairs, heads, size),
        "score": normal(heads, size),
        "values": normal(pairs, heads, size),
        "index": torch.randint(pairs, (batch, sample), generator=generator),
        "log_probability": normal(batch, sample),
        "mask": torch.ones(batch, sample, dtype=torch.bool),
    }


def step(function: Callable[..., torch.Tensor], tensors: dict[str, Any]) -> None:
    for tensor in tensors.values():
        tensor.grad = None
    function(**tensors).sum().backward()


def measured_memory(operator: str, shape: str) -> int:
    command = [sys.executable, "-m", "benchmarks.attend", "--memory-of", operator, shape]
    return int(json.loads(subprocess.check_output(command, text=True).splitlines()[-1]))


def memory_of(operator: str, shape: str) -> int:
    step(OPERATORS[operator], problem(2, 3, 2, 4, 5))
    tensors = problem(**SHAPES[shape])
    before = resident_memory()
    step(OPERATORS[operator], tensors)
    return peak_memory() - before


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
