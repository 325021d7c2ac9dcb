"""Compile every kernel that `gpu.py` and `gpu_layers.py` launch, for a GPU that need not be there.

What the interpreter lets pass, ptxas may not. A program of its own, since Triton decides on import whether it interprets.
"""

import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gatas.nn.ops import gpu, gpu_layers
from gatas.nn.ops.attend_neighbours import TILES_WIDEST
from gatas.nn.ops.nadam import Moments

KINDS = {torch.float32: "fp32", torch.float16: "fp16", torch.int64: "i64", torch.int32: "i32", torch.bool: "i1"}
OPTIONS = ("num_warps", "num_stages")
SHARED = 163 * 1024
"""Bytes of shared memory that a block may have on an A100; an H100 has more."""


def compiled(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    """In place of a launch: the kernel's machine code for compute capability 9.0, with arguments like these."""
    given = dict(zip(kernel.arg_names, arguments, strict=False)) | settings
    signature, constants = {}, {}
    for parameter in kernel.params:
        value = given[parameter.name]
        if value is None or parameter.is_constexpr:
            signature[parameter.name], constants[(parameter.num,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name] = "*" + KINDS[value.dtype]
        else:
            signature[parameter.name] = "fp32" if isinstance(value, float) else "i32" if value < 2**31 else "i64"
    options = {name: settings[name] for name in OPTIONS if name in settings}
    code = triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32), options=options)
    print("compiled", kernel.__name__, code.metadata.shared, flush=True)
    assert code.metadata.shared <= SHARED, f"{kernel.__name__} takes {code.metadata.shared} bytes of shared memory"


def main(precision: str, drop: bool, width: int) -> None:
    launches: Any = gpu
    layers: Any = gpu_layers
    launches.launch = layers.launch = compiled
    batch, sample, heads, pairs = 3, 40, 2, 90
    normal = torch.randn
    terms, score = normal(1, batch, heads, width), normal(1, heads, width)
    n, weight, bias = normal(1, pairs, width), normal(1, heads * width, width), normal(1, heads * width)
    index, mask = torch.randint(pairs, (1, batch, sample)), torch.ones(1, batch, sample, dtype=torch.bool)
    keep = normal(1, batch, sample, heads) if drop else None
    slots = (normal(1, batch, sample), mask, keep)
    groups = launches.slots_by_pair(index, mask, pairs)
    keys, values = launches.project_forward(n, weight, weight, bias, precision, groups[0], heads)
    out, normaliser = launches.pairs_forward(terms, keys, score, values, index, *slots, width)
    of_pairs = (terms, keys, score, values, index, *slots, out, normaliser, out, *groups)
    launches.pairs_backward(*of_pairs, projected=True)
    launches.pairs_backward(*of_pairs)
    n = normal(1, batch * sample, width)
    given = (terms, score, n, weight, weight, bias, *slots, precision)
    if width <= TILES_WIDEST:
        launches.tiles_forward(*given)
        launches.tiles_backward(*given, out, normaliser, out)
    if not drop:
        return
    of_input, of_step, path_weights = normal(1, 9, width), normal(1, 4, 3, width), normal(1, 4, 3)
    node = torch.zeros(1, pairs, dtype=torch.int64)
    layers.represent_forward(of_input, of_step, path_weights, node, node)
    layers.represent_backward(normal(1, pairs, width), of_input, of_step, path_weights, node, node)
    seed = torch.zeros(1, dtype=torch.int64)
    layers.fill_keep(seed, seed, 3, node, node, 2**15, 2.0, normal(1, pairs, 7))
    features, affine = normal(90, 50), normal(1, 50)
    layers.normalise_forward(features, node, affine, affine, seed, seed, 2, 0.5, 1e-5)
    layers.normalise_backward(normal(1, pairs, 50), features, node, seed, seed, 2, 0.5, 1e-5)
    flat = normal(1, 5_000)
    layers.nadam_step(flat, flat, Moments.of(flat), normal(()), flat, (0.9, 0.999), 1e-8, 4e-3, 5.0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "drop", int(sys.argv[3]))
