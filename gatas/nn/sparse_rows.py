"""Rows of sparse features: chosen, joined, and projected by LayerNorm and a dense layer without being made dense."""

import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def sparse_tensor(indptr: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    """Make a tensor in CSR layout, over the same memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the layout a beta
        return torch.sparse_csr_tensor(indptr, columns, values, (len(indptr) - 1, width), check_invariants=False)


def is_sparse(features: Tensor) -> bool:
    """Whether features are in CSR layout, which is never made dense in whole."""
    return features.layout == torch.sparse_csr


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
    indptr, columns = rows.crow_indices(), rows.col_indices()
    row = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), indptr[1:] - indptr[:-1])
    return rows.values().new_zeros(rows.shape).index_put_((row, columns.long()), rows.values())


def project(features: Tensor, nodes: Tensor, norm: nn.Module, dense: nn.Linear) -> Tensor:
    """(V, H) dense(norm(features[nodes])), for which only numbers that are not zero are looked at.

    With x the row, μ and σ its mean and deviation, w and c LayerNorm's weight and bias: W((x − μ) / σ · w + c) is
    (Ww · x) / σ − μ / σ · Ww·1 + Wc.
    """
    rows = select_rows(features, nodes)
    if not isinstance(norm, nn.LayerNorm):
        return _product(rows, dense.weight) + dense.bias
    mean, deviation = _moments(rows, norm.eps)
    weighted = dense.weight * norm.weight  # (H, F)
    constant = dense.weight @ norm.bias + dense.bias
    return (_product(rows, weighted) - mean * weighted.sum(1)) / deviation + constant


def _product(rows: Tensor, weight: Tensor) -> Tensor:
    """(V, H) rows · weightᵀ."""
    starts, columns, values = rows.crow_indices()[:-1], rows.col_indices(), rows.values()
    if not len(columns):
        return weight.new_zeros(len(starts), len(weight))
    return F.embedding_bag(
        columns, weight.T.contiguous(), starts.to(columns.dtype), mode="sum", per_sample_weights=values.to(weight.dtype)
    )


def _moments(rows: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the (V, 1) mean and deviation of each row, zeros included."""
    indptr, values, width = rows.crow_indices(), rows.values().double(), rows.shape[1]  # whose squares do not overflow
    length = indptr[1:] - indptr[:-1]
    row = torch.repeat_interleave(torch.arange(len(length), device=values.device), length)
    mean = values.new_zeros(len(length)).index_add_(0, row, values) / width
    squares = values.new_zeros(len(length)).index_add_(0, row, (values - mean[row]).square())
    variance = (squares + (width - length) * mean.square()) / width
    return mean[:, None].to(rows.dtype), (variance + epsilon).sqrt()[:, None].to(rows.dtype)
