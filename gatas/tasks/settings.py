"""`ModelSettings`: the settings of `ModelConfig` as typed keyword arguments, which editors complete and mypy checks."""

from typing import Literal, TypedDict

from gatas.tasks.config import AblationName


class ModelSettings(TypedDict, total=False):
    """Settings of a model, all optional; `ModelConfig` has their defaults and says what they mean."""

    num_steps: int | Literal["auto"]
    sample_size: int
    transition_kind: Literal["walk", "count"]
    max_candidates: int | tuple[int, ...] | None
    max_degree: int | Literal["auto"] | None
    layer_norm: bool | None
    hidden_size: int
    node_embedding_size: int | None
    node_embedding_start: Literal["random", "structure"]
    node_embedding_scale: float | None
    hide_own_embedding: bool
    relation_embedding_size: int
    neighbour_size: int
    head_size: int
    num_heads: int
    input_noise: float
    dropout: float
    path_attention: Literal["linear", "mlp", "none"]
    skip_connection: bool
    output_norm: bool
    output_dropout: float
    path_mean_size: int
    label_inputs: bool
    label_dropout: float
    label_spreading: bool
    hidden_sizes: tuple[int, ...]
    pair_hidden_size: int
    pair_products: bool
    link_score: tuple[Literal["pair", "vectors", "neighbourhood", "paths"], ...] | Literal["auto"]
    decoder: Literal["complex", "distmult", "bilinear"]
    vector_size: int
    path_factors: int
    revisits: bool
    exclude_targets: bool
    late_decay: bool
    positions_from_neighbour: bool
    path_score_dropout: bool
    l2_on_depth: bool
    ablation: AblationName
