"""`quick_products`: how products of float32 are computed while models learn or are measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

ROUNDING = 1e-5
"""Relative errors of float32 stay far below this, also of long sums; those of factors in bfloat16 are hundreds of times it."""


@contextmanager
def quick_products(device: torch.device, precision: str = "tf32") -> Iterator[None]:
    """Compute products of float32 as quickly as the `precision` of a training allows; the setting is restored afterwards.

    On a GPU that is TF32, unless float32 is asked for. On a CPU it is oneDNN, where it is as exact as what torch takes
    otherwise, MKL: on CPUs of AMD that needs twice the time.
    """
    if device.type == "cpu":
        chosen = "medium" if onednn_is_exact() else "highest"
    else:
        chosen = "highest" if precision == "float32" else "high"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(chosen)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@lru_cache
def onednn_is_exact() -> bool:
    """Whether products by oneDNN are of float32 on this CPU; where it has units for bfloat16, factors may be rounded.

    Torch gives products to oneDNN where factors may be rounded to bfloat16 (`medium`), but most CPUs cannot gain by that.
    """
    one, other = ((torch.arange(64 * 256) * step % 1.0).view(64, 256) for step in (0.618034, 0.414214))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = one @ other.T
    finally:
        torch.set_float32_matmul_precision(before)
    exact = one.double() @ other.double().T
    return bool(((found - exact).abs() <= ROUNDING * exact).all())
