"""h = [l ‖ b]: a learned embedding and transformed features, side by side (§3.2, §4.2)."""

import torch
from torch import Tensor, nn

from gatas.errors import GatasError
from gatas.nn.dropout import Dropout
from gatas.ops import noisy_linear, normalise
from gatas.ops.random import NoiseSource


class Inputs(nn.Module):
    """LayerNorm → feature noise → dense with ELU → dropout, beside a learned embedding; either may be absent.

    LayerNorm takes each node's mean and scale away: of few features, that is most of what they say.
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

    def forward(self, nodes: Tensor, features: Tensor | None, noise: NoiseSource) -> Tensor:
        """(V, R + F) for V distinct nodes; `features` is the whole (N, feature_size) matrix, dense or sparse."""
        parts = []
        if self.embeddings is not None:
            parts.append(self.embedding_dropout(self.embeddings(nodes), noise, nodes))  # (V, R)   l
        if self.feature_size:
            if features is None or features.shape[-1] != self.feature_size:
                came = "none" if features is None else f"{features.shape[-1]} columns"
                raise GatasError(f"the encoder was made for {self.feature_size} features; {came} came.")
            if self.embeddings is not None and len(features) < len(self.embeddings.weight):
                expected = f"one for each of {len(self.embeddings.weight)} nodes"
                raise GatasError(f"features have {len(features)} rows; expected {expected}, as there are embeddings.")
            parts.append(self.feature_dropout.of_elu(self._projected(nodes, features, noise), noise, nodes))  # (V, F)   b
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def _projected(self, nodes: Tensor, features: Tensor, noise: NoiseSource) -> Tensor:
        """LayerNorm → feature noise → dense: (V, F)."""
        norm, dense, place = self.norm, self.dense, self.noise.place
        if not isinstance(norm, nn.LayerNorm):
            return dense(self.noise(_rows(features, nodes), noise, nodes))  # type: ignore[no-any-return]
        probability = self.noise.probability if self.noise.active else 0.0
        fused = not features.is_sparse and not features.requires_grad
        if fused and features.is_cuda and features.dtype == torch.float32 and self.feature_size <= normalise.WIDEST:
            given = normalise.normalise(features, nodes, norm.weight, norm.bias, noise, place, probability, norm.eps)
            return dense(given)  # type: ignore[no-any-return]
        if fused and not features.is_cuda and probability >= 0.5 and self.feature_size <= noisy_linear.WIDEST:
            layers = (norm.weight, norm.bias, dense.weight, dense.bias)
            return noisy_linear.noisy_linear(features, nodes, *layers, noise, place, probability, norm.eps)
        return dense(self.noise(norm(_rows(features, nodes)), noise, nodes))  # type: ignore[no-any-return]


def _rows(features: Tensor, nodes: Tensor) -> Tensor:
    given = features.index_select(0, nodes)
    return given.to_dense() if given.is_sparse else given
