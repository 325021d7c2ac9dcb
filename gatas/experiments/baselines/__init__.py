"""Peers: other models for node classification, each with the settings of its paper, trained by our loop."""

from collections.abc import Sequence
from copy import deepcopy

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments.baselines.appnp import APPNP
from gatas.experiments.baselines.chebyshev import Chebyshev
from gatas.experiments.baselines.gat import GAT
from gatas.experiments.baselines.gatv2 import GATv2
from gatas.experiments.baselines.gcn import GCN
from gatas.experiments.baselines.gcnii import GCNII
from gatas.experiments.baselines.mlp import MLP
from gatas.experiments.baselines.monet import MoNet
from gatas.experiments.baselines.peer import Peer, PeerRecipe
from gatas.experiments.baselines.pprgo import PPRGo
from gatas.experiments.baselines.sage import GraphSAGE
from gatas.experiments.baselines.sgat import SGAT

__all__ = ["PEERS", "Peer", "PeerRecipe", "recipe_of", "seeded"]

PEERS: dict[str, type[Peer]] = {
    "mlp": MLP,
    "chebyshev": Chebyshev,
    "gcn": GCN,
    "monet": MoNet,
    "sage": GraphSAGE,
    "gat": GAT,
    "sgat": SGAT,
    "gatv2": GATv2,
    "appnp": APPNP,
    "gcnii": GCNII,
    "pprgo": PPRGo,
}


def recipe_of(name: str, dataset: Dataset) -> PeerRecipe:
    """A peer's settings for a data set; for one that its paper does not know, those for the most similar."""
    recipes = PEERS[name].recipes
    if dataset.name in recipes:
        return recipes[dataset.name]
    nearest = "ppi" if dataset.task == "multi-label node classification" else "cora"
    if nearest not in recipes:
        raise ConfigError(f"{name} has no settings for multi-label data, as {dataset.name} is.")
    model, training = recipes[nearest]
    by_graph = dataset.nodes.graph_id is not None
    return PeerRecipe({**model, "rows_sum_to_one": False}, training.model_copy(update={"by_graph": by_graph}))


def seeded(peer: Peer, seeds: Sequence[int]) -> list[Peer]:
    """A peer for each seed; they share features and edges."""
    peers = [deepcopy(peer, {id(buffer): buffer for buffer in peer.buffers()}) for _ in seeds]
    for one, seed in zip(peers, seeds, strict=True):
        one.reset(seed)
    return peers
