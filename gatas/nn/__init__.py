"""The paper's layers as plain modules: inputs, path attention (eq. 1), neighbour attention (eqs. 3, 4), encoder, heads."""

from gatas.nn.ablations import ABLATIONS, Ablation
from gatas.nn.encoder import Encoder
from gatas.nn.heads import NodeHead, PairHead

__all__ = ["ABLATIONS", "Ablation", "Encoder", "NodeHead", "PairHead"]
