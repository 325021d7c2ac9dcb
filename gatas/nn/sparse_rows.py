"""Rows of sparse features: chosen, joined, and projected by LayerNorm and a dense layer without being made dense."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

MOSTLY_ZERO = 0.25
"""Up to this share of numbers that are not zero, dense features are worth being looked at as sparse ones."""
Keep = Callable[[Tensor, Tensor], Tensor]
"""Factors of single numbers, by their rows' nodes and their columns."""

_sparse_forms = WeakTensorKeyDictionary()


def sparse_tensor(indptr: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    """Make a tensor in CSR layout, over the same memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        return torch.sparse_csr_tensor(indptr, columns, values, (len(indptr) - 1, width), check_invariants=False)


def is_sparse(features: Tensor) -> bool:
    """Whether features are in CSR layout, which is never made dense in whole."""
    return features.layout == torch.sparse_csr


def sparse_form(features: Tensor) -> Tensor | None:
    """Return dense features on a CPU in CSR layout, made once for as long as they are there; None where few are zero."""
    if features not in _sparse_forms:
        filled = features != 0
        few = int(filled.sum()) <= MOSTLY_ZERO * features.numel()
        _sparse_forms[features] = _as_sparse(features, filled) if few else None
    found: Tensor | None = _sparse_forms[features]
    return found


def _as_sparse(features: Tensor, filled: Tensor) -> Tensor:
    ends = F.pad(filled.sum(1).cumsum(0), (1, 0))
    index = torch.int32 if features.numel() < 2**31 else torch.int64
    return sparse_tensor(ends.to(index), filled.nonzero()[:, 1].to(index), features[filled], features.shape[1])


def select_rows(features: Tensor, nodes: Tensor) -> Tensor:
    """Return (V, F) rows of a CSR matrix as one; on a GPU the host waits for their size."""
    indptr = features.crow_indices()
    start = indptr[nodes]
    length = indptr[nodes + 1] - start
    ends = F.pad(length.cumsum(0, dtype=indptr.dtype), (1, 0))
    entries = torch.arange(int(ends[-1]), device=nodes.device) + torch.repeat_interleave(start - ends[:-1], length)
    return sparse_tensor(ends, features.col_indices()[entries], features.values()[entries], features.shape[1])


def join_rows(upper: Tensor, lower: Tensor) -> Tensor:
    """Return two CSR matrices one below the other."""
    ends = lower.crow_indices()[1:].to(upper.crow_indices().dtype) + upper.crow_indices()[-1]
    columns = torch.cat([upper.col_indices(), lower.col_indices().to(upper.col_indices().dtype)])
    values = torch.cat([upper.values(), lower.values().to(upper.dtype)])
    return sparse_tensor(torch.cat([upper.crow_indices(), ends]), columns, values, upper.shape[1])


def dense_rows(features: Tensor, nodes: Tensor) -> Tensor:
    """Return (V, F) rows of a CSR matrix, with their zeros."""
    rows = select_rows(features, nodes)
    return rows.values().new_zeros(rows.shape).index_put_((row_of_each(rows), rows.col_indices().long()), rows.values())


def project(features: Tensor, nodes: Tensor, norm: nn.Module, dense: nn.Linear, keep: Keep | None = None) -> Tensor:
    """(V, H) dense(norm(features[nodes])), for which only numbers that are not zero are looked at.

    With x the row, μ and σ its mean and deviation, w and c LayerNorm's weight and bias: W((x − μ) / σ · w + c) is
    (Ww · x) / σ − μ / σ · Ww·1 + Wc. Noise is put on x by `keep`; μ and σ are those of the row without it.
    """
    rows = select_rows(features, nodes)
    given = rows.values() if keep is None else rows.values() * keep(nodes[row_of_each(rows)], rows.col_indices())
    if not isinstance(norm, nn.LayerNorm):
        return _product(rows, given, dense.weight) + dense.bias
    mean, deviation = _moments(rows, norm.eps)
    weighted = dense.weight * norm.weight  # (H, F)
    constant = dense.weight @ norm.bias + dense.bias
    return (_product(rows, given, weighted) - mean * weighted.sum(1)) / deviation + constant


def row_of_each(rows: Tensor) -> Tensor:
    """(E,) the row that each number of a CSR matrix is in."""
    indptr = rows.crow_indices()
    return torch.repeat_interleave(torch.arange(len(indptr) - 1, device=indptr.device), indptr[1:] - indptr[:-1])


def _product(rows: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """(V, H) rows · weightᵀ, with `values` in place of those of the rows."""
    indptr, columns = rows.crow_indices().to(rows.col_indices().dtype), rows.col_indices()
    if not len(columns):
        return weight.new_zeros(len(indptr) - 1, len(weight))
    values = values.to(weight.dtype)
    if weight.is_cuda:
        return _bag(indptr, columns, values, weight)
    found: Tensor = _Bag.apply(indptr, columns, values, weight)  # type: ignore[no-untyped-call]
    return found


def _bag(indptr: Tensor, columns: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    return F.embedding_bag(columns, weight.T.contiguous(), indptr[:-1], mode="sum", per_sample_weights=values)


class _Bag(torch.autograd.Function):
    """`_bag` on a CPU, where torch takes ten times as long for its gradient as SciPy for the product that it is."""

    @staticmethod
    def forward(ctx: Any, indptr: Tensor, columns: Tensor, values: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(indptr, columns, values)
        ctx.width = weight.shape[1]
        return _bag(indptr, columns, values, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None, Tensor]:
        indptr, columns, values = (tensor.numpy() for tensor in ctx.saved_tensors)
        rows = sparse.csr_array((values, columns, indptr), shape=(len(indptr) - 1, ctx.width))
        return None, None, None, torch.from_numpy(rows.T @ gradients[0].numpy()).T


def _moments(rows: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the (V, 1) mean and deviation of each row, zeros included."""
    indptr, values, width = rows.crow_indices(), rows.values().double(), rows.shape[1]  # whose squares do not overflow
    length, row = indptr[1:] - indptr[:-1], row_of_each(rows)
    mean = values.new_zeros(len(length)).index_add_(0, row, values) / width
    squares = values.new_zeros(len(length)).index_add_(0, row, (values - mean[row]).square())
    variance = (squares + (width - length) * mean.square()) / width
    return mean[:, None].to(rows.dtype), (variance + epsilon).sqrt()[:, None].to(rows.dtype)
