"""`TrainingSettings`: the settings of `TrainingConfig` as typed keyword arguments, which editors complete and mypy checks."""

from typing import Literal, TypedDict


class TrainingSettings(TypedDict, total=False):
    """Settings of a training, all optional; `TrainingConfig` has their defaults and says what they mean."""

    epochs: int
    batch_size: int | Literal["auto"]
    by_graph: bool
    optimiser: Literal["nadam", "adam"]
    learning_rate: float
    schedule: Literal["constant", "cosine"]
    momentum_decay: float
    ema_decay: float
    max_norm: float | None
    l2: float
    loss: Literal["binary", "list"]
    regression_loss: Literal["squared", "huber"]
    negatives: Literal["once", "each epoch"]
    negative_types: Literal["as links", "all alike"]
    num_negatives: int
    negatives_by: Literal["uniform", "degree"]
    hidden_folds: int
    n3: float
    consistency: float
    consistency_draws: int
    consistency_nodes: int
    temperature: float
    class_weights: Literal["none", "balanced"] | dict[str, float]
    label_smoothing: float
    calibrate: bool
    monitor: Literal["loss", "metric", "either", "both"]
    patience: int
    evaluation_mode: Literal["sample", "top", "all"]
    evaluation_draws: int
    embedding_updates: Literal["auto", "all", "seen"]
    precision: Literal["float32", "tf32", "bfloat16"]
    storage: Literal["auto", "float32", "bfloat16", "float16"]
    checkpoint_seconds: float
    keep_checkpoints: int
