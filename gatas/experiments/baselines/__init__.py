"""Peers: other models for node classification, each with the settings of its paper, trained by our loop."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from gatas.datasets import Dataset
from gatas.errors import ConfigError
from gatas.experiments.baselines.appnp import APPNP
from gatas.experiments.baselines.chebyshev import Chebyshev
from gatas.experiments.baselines.classic import NormalisedGAT, NormalisedGCN, NormalisedMLP, NormalisedSAGE
from gatas.experiments.baselines.gat import GAT
from gatas.experiments.baselines.gatv2 import GATv2
from gatas.experiments.baselines.gcn import GCN
from gatas.experiments.baselines.gcnii import GCNII
from gatas.experiments.baselines.grand import GRAND
from gatas.experiments.baselines.hgt import HGT
from gatas.experiments.baselines.mlp import MLP
from gatas.experiments.baselines.monet import MoNet
from gatas.experiments.baselines.nagphormer import NAGphormer
from gatas.experiments.baselines.peer import OWN, Peer, PeerRecipe, PeerSpace, dense_features, featureless
from gatas.experiments.baselines.pprgo import PPRGo
from gatas.experiments.baselines.rgcn import RGCN
from gatas.experiments.baselines.sage import GraphSAGE
from gatas.experiments.baselines.sgat import SGAT
from gatas.training.config import TrainingConfig

__all__ = ["PEERS", "Peer", "PeerRecipe", "changed_recipe", "recipe_of", "seeded", "space_of"]

PEERS: dict[str, type[Peer]] = {
    "mlp": MLP,
    "mlp-norm": NormalisedMLP,
    "chebyshev": Chebyshev,
    "gcn": GCN,
    "gcn-norm": NormalisedGCN,
    "monet": MoNet,
    "sage": GraphSAGE,
    "sage-norm": NormalisedSAGE,
    "gat": GAT,
    "gat-norm": NormalisedGAT,
    "sgat": SGAT,
    "gatv2": GATv2,
    "appnp": APPNP,
    "gcnii": GCNII,
    "pprgo": PPRGo,
    "grand": GRAND,
    "nagphormer": NAGphormer,
    "rgcn": RGCN,
    "hgt": HGT,
}
EMBEDDING_SIZE = 64
"""Of nodes without features, on data that nobody has tuned peers for."""


def recipe_of(name: str, dataset: Dataset) -> PeerRecipe:
    """A peer's settings for a data set; for one that its paper does not know, ordinary ones or those for the most similar."""
    recipes = PEERS[name].recipes
    if dataset.name in recipes:
        return recipes[dataset.name]
    usual = OWN if OWN in recipes else "cora"
    nearest = "ppi" if dataset.task == "multi-label node classification" else usual
    if nearest not in recipes:
        raise ConfigError(f"{name} has no settings for multi-label data, as {dataset.name} is.")
    model, training = recipes[nearest]
    more = {"rows_sum_to_one": False, **({"embedding_size": EMBEDDING_SIZE} if featureless(dataset).any() else {})}
    by_graph = dataset.nodes.graph_id is not None and training.consistency == 0
    return PeerRecipe({**model, **more}, training.model_copy(update={"by_graph": by_graph}))


def space_of(name: str, dataset: Dataset) -> PeerSpace:
    """What a search of a peer's settings tries on a data set: the peer's own space, and what its features leave open."""
    space, bare = dict(PEERS[name].space), featureless(dataset)
    if bare.any() and not bare.all():
        space["embedding_size"] = (0, EMBEDDING_SIZE)
    if not bare.all() and dense_features(dataset).min() >= 0:
        space["rows_sum_to_one"] = (False, True)
    return space


def changed_recipe(recipe: PeerRecipe, settings: Mapping[str, Any]) -> PeerRecipe:
    """A recipe with some settings changed, of the model or of training by their names."""
    training = {name: value for name, value in settings.items() if name in TrainingConfig.model_fields}
    model = {name: value for name, value in settings.items() if name not in training}
    return PeerRecipe({**recipe.model, **model}, recipe.training.model_copy(update=training))


def seeded(peer: Peer, seeds: Sequence[int]) -> list[Peer]:
    """A peer for each seed; they share features and edges."""
    peers = [deepcopy(peer, {id(buffer): buffer for buffer in peer.buffers()}) for _ in seeds]
    for one, seed in zip(peers, seeds, strict=True):
        one.reset(seed)
    return peers
