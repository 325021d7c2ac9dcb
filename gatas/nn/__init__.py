"""The paper's layers as plain modules: inputs, path attention (eq. 1), neighbour attention (eqs. 3, 4), the encoder."""

from gatas.nn.encoder import Encoder

__all__ = ["Encoder"]
