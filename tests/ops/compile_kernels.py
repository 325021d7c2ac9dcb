"""Compile every kernel that the operators of `nn` launch, for a GPU that need not be there.

What the interpreter lets pass, ptxas may not. A program of its own, since Triton decides on import whether it interprets.
"""

import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gatas.ops.attend import AttendInputs
from gatas.ops.attend import cuda as attend
from gatas.ops.attend_neighbours import TILES_WIDEST, NeighbourInputs
from gatas.ops.attend_neighbours import cuda as attend_neighbours
from gatas.ops.dropout import KeepInputs
from gatas.ops.dropout import cuda as dropout
from gatas.ops.evidence import EvidenceInputs
from gatas.ops.evidence import cuda as evidence
from gatas.ops.mark_known import KnownInputs
from gatas.ops.mark_known import cuda as mark_known
from gatas.ops.nadam import Moments, NAdamInputs
from gatas.ops.nadam import cuda as nadam
from gatas.ops.normalise import NormaliseInputs
from gatas.ops.normalise import cuda as normalise
from gatas.ops.pair_evidence import PairInputs
from gatas.ops.pair_evidence import cuda as pair_evidence
from gatas.ops.represent import RepresentInputs
from gatas.ops.represent import cuda as represent

KINDS = {torch.float32: "fp32", torch.float16: "fp16", torch.int64: "i64", torch.int32: "i32", torch.bool: "i1"}
KINDS |= {torch.bfloat16: "bf16", torch.float64: "fp64", torch.int8: "i8", torch.int16: "i16"}
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
    for operator in (attend, attend_neighbours, dropout, evidence, mark_known, nadam, normalise, pair_evidence, represent):
        operator.launch = compiled  # type: ignore[attr-defined]
    batch, sample, heads, pairs = 3, 40, 2, 90
    normal = torch.randn
    terms, score = normal(1, batch, heads, width), normal(1, heads, width)
    n, weight, bias = normal(1, pairs, width), normal(1, heads * width, width), normal(1, heads * width)
    index, mask = torch.randint(pairs, (1, batch, sample)), torch.ones(1, batch, sample, dtype=torch.bool)
    keep = normal(1, batch, sample, heads) if drop else None
    slots = (normal(1, batch, sample), mask, keep)
    given = NeighbourInputs(terms, n, weight, score, weight, bias, index, *slots, precision)
    results = attend_neighbours.forward(given)
    attend_neighbours.backward(given, results, results[0])
    keys, values = results[2:4]
    attend.backward(AttendInputs(terms, keys, score, values, index, *slots), results[0], results[1], results[0])
    if width <= TILES_WIDEST:
        given = given._replace(neighbours=normal(1, batch * sample, width), index=None)
        results = attend_neighbours.forward(given)
        attend_neighbours.backward(given, results, results[0])
    if not drop:
        return
    compile_layers(pairs, width)
    for kind in (torch.int8, torch.int16, torch.int64):
        compile_evidence(kind)


def compile_layers(pairs: int, width: int) -> None:
    normal = torch.randn
    node, seed = torch.zeros(1, pairs, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    along = RepresentInputs(normal(1, 9, width), normal(1, 4, 3, width), normal(1, 4, 3), node, node)
    represent.forward(along)
    represent.backward(along, normal(1, pairs, width))
    rate = torch.zeros(1, dtype=torch.float64)
    dropout.keep(KeepInputs(seed, seed, 3, node, node, 7, 0.5))
    dropout.keep(KeepInputs(seed, seed, 3, node, node, 7, 0.0, rate))
    affine = normal(1, 50)
    features = NormaliseInputs(normal(90, 50), node, affine, affine, seed, seed, 2, 0.5, 1e-5)
    normalise.forward(features)
    normalise.backward(features, normal(1, pairs, 50))
    normalise.forward(features._replace(rate=rate))
    normalise.backward(features._replace(rate=rate), normal(1, pairs, 50))
    flat = normal(1, 5_000)
    nadam.nadam_step(NAdamInputs(flat, flat, Moments.of(flat), normal(()), flat, (0.9, 0.999), 1e-8, 4e-3, 5.0))
    nadam.nadam_step(NAdamInputs(flat, flat, Moments.of(flat), normal(1), flat, (0.9, 0.999), 1e-8, 4e-3, 5.0))


def compile_evidence(path_type: torch.dtype) -> None:
    weights, unreached, reached = torch.randn(2, 5, 3), torch.randn(2), torch.ones(4, 9, dtype=torch.bool)
    batch, slot = torch.zeros(4, dtype=torch.int64), torch.zeros(9, dtype=torch.int32)
    table = (torch.zeros(7, dtype=torch.int64), slot, slot.to(path_type), torch.ones(9))
    given = EvidenceInputs(weights, unreached, batch, batch, batch, slot, slot, torch.zeros(9), *table, 3, 9, True)
    evidence.forward(given)
    evidence.backward(given, reached, torch.randn(4, 9))
    pairs = PairInputs(weights, unreached, batch, batch, batch, batch, slot, torch.zeros(9), *table, 3, False)
    pair_evidence.forward(pairs)
    pair_evidence.backward(pairs, reached[:, 0], torch.randn(4))
    mark_known.mark(KnownInputs(torch.zeros(19, dtype=torch.int64), slot, batch, batch, slot, 9))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "drop", int(sys.argv[3]))
