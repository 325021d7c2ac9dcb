"""Products of float32 while models learn."""

import pytest
import torch

from gatas.training import products
from gatas.training.products import onednn_is_exact, quick_products

CPU = torch.device("cpu")


@pytest.mark.parametrize("shape", [(64, 64, 64), (300, 512, 700), (2000, 50, 400), (50, 1433, 7)])
def test_products_on_a_cpu_are_as_exact_as_those_of_torch(shape):
    rows, size, columns = shape
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(rows, size, generator=generator), torch.randn(size, columns, generator=generator)
    exact = one.double() @ other.double()
    usual = ((one @ other) - exact).abs().max()
    with quick_products(CPU):
        assert ((one @ other) - exact).abs().max() < 10 * usual + 1e-6  # in bfloat16 it would be a thousand times as much


def test_factors_that_would_be_rounded_are_not(monkeypatch):
    rounded = lambda one, other: (one.bfloat16() @ other.bfloat16()).float()  # noqa: E731
    monkeypatch.setattr(
        torch.Tensor,
        "__matmul__",
        lambda one, other: rounded(one, other) if one.dtype == torch.float32 else torch.mm(one, other),
    )
    onednn_is_exact.cache_clear()
    try:
        assert not onednn_is_exact()
        with quick_products(CPU):
            assert torch.get_float32_matmul_precision() == "highest"
    finally:
        onednn_is_exact.cache_clear()


@pytest.mark.parametrize(("precision", "chosen"), [("float32", "highest"), ("tf32", "high"), ("bfloat16", "high")])
def test_products_on_a_gpu_are_in_tf32_unless_float32_is_asked_for(precision, chosen):
    with quick_products(torch.device("cuda"), precision):
        assert torch.get_float32_matmul_precision() == chosen


def test_the_setting_is_restored(monkeypatch):
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(products, "onednn_is_exact", lambda: True)
    with pytest.raises(ValueError), quick_products(CPU):
        assert torch.get_float32_matmul_precision() == "medium"
        raise ValueError
    assert torch.get_float32_matmul_precision() == before
