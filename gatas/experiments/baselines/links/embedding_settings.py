"""Settings of PyKEEN's ComplEx, RotatE and TransE, and where they were published.

- ComplEx: the best configurations of CoDEx (Safavi & Koutra, 2020; tsafavi/codex, LibKGE's configs for codex-s and codex-m),
  reciprocal relations, cross-entropy over all entities, early stopping by validation MRR every 5 epochs with a patience of 50.
  LibKGE's `KvsAll` is PyKEEN's LCWA with cross-entropy: each (source, type) counts once, with all its targets. Its `1vsAll`
  counts each training triple, which the loss `OneVersusAll` does in the same loop; its batches are of (source, type).
  Weights of regularisation, 1e-10 and less, are taken as none.
- TransE on CoDEx: from the same place; 56 corrupted targets, also of reciprocal relations, the L2 norm, no normalisation.
- RotatE, and TransE elsewhere: Sun et al. (2019) for FB15k-237 (best_config.sh, also in PyKEEN's experiments): 1,000
  dimensions, 256 self-adversarial negatives, margin 9, Adam at 5e-5. As in their code, distances are sums over dimensions and
  embeddings start within ± (margin + 2) / dimensions; PyKEEN's own defaults differ in both.
- RotatE on CoDEx, for which nothing is published: the same loss, margin and start in the size of CoDEx's ComplEx, with 64
  negatives and a rate that gets there in minutes, where 5e-5 takes hours. With 128 numbers, two rates were tried on validation
  data of CoDEx-S: 0.012 had an MRR of 0.36 after 15 epochs, 0.004 had 0.25; this is 0.012 times 128 / 256, rounded down.
- Graphs of fewer than 1,000 nodes (UMLS, Kinships, Nations): nothing is published with these splits; sizes and rates are
  ours, a first guess: of RotatE two rates were tried on UMLS, nothing else was tuned.

Epochs are at most 1,000 or more, so that early stopping ends a training, not their number.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from gatas.datasets import Dataset

TINY = 1_000
"""Graphs of fewer nodes have settings of their own."""
CODEX_S_TO_M = 5_889
"""The geometric mean of the numbers of nodes of CoDEx-S and CoDEx-M: other graphs have the settings of the nearer one."""


@dataclass(frozen=True)
class EmbeddingSettings:
    """How a knowledge graph embedding of PyKEEN is made and trained."""

    source: str  # where the settings are from
    size: int  # complex numbers for ComplEx and RotatE
    loop: Literal["lcwa", "slcwa"]  # all entities as targets, or sampled negatives
    loss: str
    optimiser: Literal["Adam", "Adagrad"]
    learning_rate: float
    batch_size: int
    loss_settings: dict[str, Any] = field(default_factory=dict)
    model_settings: dict[str, Any] = field(default_factory=dict)
    inverse: bool = True  # whether types have reciprocal relations
    num_negatives: int = 0  # for each positive, where they are sampled
    corrupts: tuple[str, ...] = ("head", "tail")
    label_smoothing: float = 0.0
    entity_dropout: float = 0.0
    relation_dropout: float = 0.0
    uniform: float | None = None  # weights, but not phases, start within ± this; None: as the model of PyKEEN says
    rate_factor: float = 1.0  # by which the learning rate is multiplied …
    rate_patience: int = 0  # … after so many validations without improvement
    epochs: int = 1000
    every: int = 5  # epochs between two validations
    patience: int = 50  # epochs without improvement


XAVIER = MappingProxyType({"entity_initializer": "xavier_normal", "relation_initializer": "xavier_normal"})
COMPLEX_S = EmbeddingSettings(
    "tsafavi/codex, codex-s/complex", 256, "lcwa", "OneVersusAll", "Adam", 0.00033858, 1024,
    model_settings={**XAVIER, "regularizer": None}, entity_dropout=0.07932, relation_dropout=0.05644,
    rate_factor=0.95, rate_patience=7,
)  # fmt: skip
COMPLEX_M = EmbeddingSettings(
    "tsafavi/codex, codex-m/complex", 256, "lcwa", "CrossEntropy", "Adagrad", 0.25574629, 1024,
    model_settings={"regularizer": None}, label_smoothing=0.2081, entity_dropout=0.11963, relation_dropout=0.36017,
    uniform=0.81333, rate_factor=0.95, rate_patience=6,
)  # fmt: skip
COMPLEX_TINY = EmbeddingSettings(
    "ours, for graphs of fewer than 1,000 nodes", 256, "lcwa", "CrossEntropy", "Adam", 0.003, 256,
    model_settings={**XAVIER, "regularizer": None}, entity_dropout=0.3, relation_dropout=0.3, epochs=2000, patience=100,
)  # fmt: skip
TRANSE_CODEX = EmbeddingSettings(
    "tsafavi/codex, codex-m/transe", 512, "slcwa", "CrossEntropy", "Adagrad", 0.04121773, 128,
    model_settings={**XAVIER, "scoring_fct_norm": 2, "entity_constrainer": None}, num_negatives=56, corrupts=("tail",),
    rate_factor=0.95, rate_patience=6,
)  # fmt: skip
SUN: dict[str, Any] = {
    "loop": "slcwa", "loss": "NSSA", "optimiser": "Adam", "inverse": False, "every": 10, "patience": 100, "epochs": 3000,
    "loss_settings": {"margin": 9.0, "adversarial_temperature": 1.0, "reduction": "mean"},
}  # fmt: skip
SUN_TINY: dict[str, Any] = {
    **SUN, "source": "ours, for graphs of fewer than 1,000 nodes", "size": 100, "learning_rate": 0.01, "batch_size": 512,
    "num_negatives": 16, "uniform": 11 / 100,
}  # fmt: skip
SUN_FB15K237: dict[str, Any] = {
    **SUN, "source": "Sun et al. (2019), FB15k-237", "size": 1000, "learning_rate": 0.00005, "batch_size": 1024,
    "num_negatives": 256, "uniform": 11 / 1000,
}  # fmt: skip
SUN_CODEX: dict[str, Any] = {
    **SUN, "source": "Sun et al. (2019), smaller", "size": 256, "learning_rate": 0.005, "batch_size": 1024,
    "num_negatives": 64, "uniform": 11 / 256, "every": 5, "patience": 50, "rate_factor": 0.5, "rate_patience": 3,
}  # fmt: skip
SUMS: dict[str, dict[str, Any]] = {
    "rotate": {"interaction_kwargs": {"p": 1}},
    "transe": {"scoring_fct_norm": 1, "entity_constrainer": None},
}
"""Distances as sums over dimensions."""


def embedding_settings(name: str, dataset: Dataset) -> EmbeddingSettings:
    """The settings of a model for a data set, or for the one that is nearest in size."""
    nodes = dataset.graph.num_nodes
    if name == "complex":
        return COMPLEX_TINY if nodes < TINY else COMPLEX_S if nodes < CODEX_S_TO_M else COMPLEX_M
    codex = dataset.name in ("codex-s", "codex-m")
    if codex and name == "transe":
        return TRANSE_CODEX
    return EmbeddingSettings(**(SUN_TINY if nodes < TINY else SUN_CODEX if codex else SUN_FB15K237), model_settings=SUMS[name])
