"""h = [l ‖ b]: a learned embedding and transformed features, side by side (§3.2, §4.2)."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gatas.errors import GatasError
from gatas.nn import sparse_rows
from gatas.nn.dropout import Dropout
from gatas.ops import noisy_linear, normalise, sparse_noisy_linear
from gatas.ops.random import NoiseSource
from gatas.ops.torch_private import unwrapped

LARGE = {torch.float32: 2.0**50, torch.float64: 2.0**500}
"""Features beyond these have squares whose sum may overflow."""
DENSE_NUMBERS = 1 << 24
"""Numbers of sparse rows that are made dense at once, where noise and no operator for it leave no other way."""


class Inputs(nn.Module):
    """LayerNorm → feature noise → dense with ELU → dropout, beside a learned embedding; either may be absent.

    LayerNorm takes each node's mean and scale away: of few features, that is most of what they say. Features that are NaN or
    infinite, or too large for a dense layer, are refused where the host can look at them: on a CPU, outside of compiled
    programs and of vmap. On a GPU to look is to wait, and nothing is checked.
    """

    def __init__(
        self,
        feature_size: int,
        hidden_size: int,
        num_nodes: int,
        node_embedding_size: int,
        *,
        node_embedding_scale: float | None = None,
        layer_norm: bool = True,
        input_noise: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not feature_size and not node_embedding_size:
            raise GatasError("nodes need features, learned embeddings, or both: give feature_size or node_embedding_size.")
        self.feature_size, self.size = feature_size, (hidden_size if feature_size else 0) + node_embedding_size
        if feature_size:
            self.norm = nn.LayerNorm(feature_size) if layer_norm else nn.Identity()
            self.noise = Dropout(input_noise, place=2)
            self.dense = nn.Linear(feature_size, hidden_size)
            self.feature_dropout = Dropout(dropout, place=3)
        self.embeddings = nn.Embedding(num_nodes, node_embedding_size) if node_embedding_size else None
        if self.embeddings is not None:
            if node_embedding_scale is None:
                nn.init.xavier_uniform_(self.embeddings.weight)
            else:
                nn.init.normal_(self.embeddings.weight, std=node_embedding_scale)
            self.embedding_dropout = Dropout(dropout, place=4)

    def forward(self, nodes: Tensor, features: Tensor | None, noise: NoiseSource, rows: Tensor | None = None) -> Tensor:
        """(V, R + F) for V distinct nodes; `features` is the whole (N, feature_size) matrix, dense or sparse.

        In evaluation they may be those of some nodes: `rows` says where among them each of the V is.
        """
        parts = []
        if self.embeddings is not None:
            parts.append(self.embedding_dropout(self.embeddings(nodes), noise, nodes))  # (V, R)   l
        if self.feature_size:
            if features is None or features.shape[-1] != self.feature_size:
                came = "none" if features is None else f"{features.shape[-1]} columns"
                raise GatasError(f"the encoder was made for {self.feature_size} features; {came} came.")
            refuse_half(features, "features are")
            if self.embeddings is not None and rows is None and len(features) < len(self.embeddings.weight):
                expected = f"one for each of {len(self.embeddings.weight)} nodes"
                raise GatasError(f"features have {len(features)} rows; expected {expected}, as there are embeddings.")
            projected = self._projected(nodes if rows is None else rows, features, noise)
            parts.append(self.feature_dropout.of_elu(projected, noise, nodes))  # (V, F)   b
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def _projected(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor:
        """LayerNorm → feature noise → dense: (V, F)."""
        if sparse_rows.is_sparse(features):
            return self._projected_sparse(nodes, features, noise)
        return self._projected_dense(nodes, features, noise)

    def _projected_sparse(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor:
        """Keep rows sparse where there is a way; else some at a time are made dense, since noise hides zeros too."""
        out = self._fused_sparse(nodes, features, noise)
        if out is not None and not _overflowed(out):
            return out
        parts = torch.split(nodes, max(1, DENSE_NUMBERS // self.feature_size))

        def projected(part: Tensor) -> Tensor:  # rows are made again for gradients; noise is a function of node and column
            again: Tensor = checkpoint(
                self._projected_dense, part, features, noise, use_reentrant=False, preserve_rng_state=False
            )
            return again

        return torch.cat([projected(part) for part in parts])

    def _projected_dense(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor:
        out = self._fused(nodes, features, noise)
        if out is None or _overflowed(out):
            rows = _rows(features, nodes)
            given = _scaled_down(rows) if isinstance(self.norm, nn.LayerNorm) and _visible(rows) else rows
            out = self.dense(self.noise(self.norm(given), noise, nodes))
            if _overflowed(out):
                _refuse_features(nodes, rows)
        return out

    def _fused(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor | None:
        """LayerNorm → feature noise → dense by an operator, where there is one for it."""
        norm, dense, place = self.norm, self.dense, self.noise.place
        if not isinstance(norm, nn.LayerNorm) or features.layout != torch.strided or features.requires_grad:
            return None
        probability, rate = (self.noise.probability, self.noise.rate) if self.noise.active else (0.0, None)
        if features.is_cuda and features.dtype == torch.float32 and self.feature_size <= normalise.WIDEST:
            given = normalise.normalise(features, nodes, norm.weight, norm.bias, noise, place, probability, norm.eps, rate)
            return dense(given)  # type: ignore[no-any-return]
        if not features.is_cuda and probability >= 0.5 and rate is None and self.feature_size <= noisy_linear.WIDEST:
            layers = (norm.weight, norm.bias, dense.weight, dense.bias)
            return noisy_linear.noisy_linear(features, nodes, *layers, noise, place, probability, norm.eps)
        return None

    def _fused_sparse(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor | None:
        """Look at numbers that are not zero alone where no noise is; with noise an operator hides what it takes of each row."""
        norm, dense, dropout = self.norm, self.dense, self.noise
        if not dropout.active or not dropout.probability:
            return sparse_rows.project(features, nodes, norm, dense)
        if features.is_cuda or not isinstance(norm, nn.LayerNorm) or dropout.rate is not None:
            return None
        layers = (norm.weight, norm.bias, dense.weight, dense.bias)
        return sparse_noisy_linear.sparse_noisy_linear(
            features, nodes, *layers, noise, dropout.place, dropout.probability, norm.eps
        )


def refuse_half(tensor: Tensor, what: str) -> None:
    """Raise for numbers of half precision on a CPU, where no kernel computes with them."""
    if tensor.device.type == "cpu" and tensor.dtype in (torch.float16, torch.bfloat16):
        raise GatasError(
            f"{what} {str(tensor.dtype).removeprefix('torch.')} on a CPU; expected float32 or float64. "
            "Call .float() on the model and on the features, or move both to a GPU."
        )


def _rows(features: Tensor, nodes: Tensor) -> Tensor:
    if sparse_rows.is_sparse(features):
        return sparse_rows.dense_rows(features, nodes)
    given = features.index_select(0, nodes)
    return given.to_dense() if given.is_sparse else given


def _visible(tensor: Tensor) -> bool:
    """Whether the host can look at values without waiting for a GPU, and outside of compiled programs and vmap."""
    return not torch.compiler.is_compiling() and tensor.device.type == "cpu" and unwrapped(tensor) is tensor


def _overflowed(out: Tensor) -> bool:
    """Whether a layer's output has NaN or infinities that the host can see."""
    return _visible(out) and not bool(out.isfinite().all())


def _scaled_down(rows: Tensor) -> Tensor:
    """Rows that are so large that LayerNorm would overflow, times a power of two, which LayerNorm takes away again."""
    limit = LARGE.get(rows.dtype, torch.inf)
    low, high = torch.aminmax(rows.detach()) if rows.numel() else rows.new_zeros(2)
    if -limit <= float(low) and float(high) <= limit:
        return rows
    largest = rows.detach().abs().amax(-1, keepdim=True)
    power = torch.where(largest > limit, 40 - torch.frexp(largest).exponent, 0)  # still so large that ε plays no part
    return rows * torch.exp2(power.to(rows.dtype))


def _refuse_features(nodes: Tensor, rows: Tensor) -> None:
    """Raise if it is features that made the layer's output NaN or infinite; else it is the weights, as of training astray."""
    rows = rows.detach()
    size = rows.abs().nan_to_num(torch.inf)
    row, column = divmod(int(size.argmax()), rows.shape[1])
    if float(size[row, column]) > LARGE.get(rows.dtype, torch.inf):
        raise GatasError(
            f"feature {column} of node {int(nodes[row])} is {float(rows[row, column]):g}; expected a finite number that layers "
            "can compute with. Replace missing values, and scale features, such as to a deviation of 1."
        )
