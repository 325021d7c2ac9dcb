"""A recipe for each experiment: the paper's settings (its Table 5), the authors' code's, and our own.

>>> recipe("cora")                  # the paper's, S = 100
>>> recipe("pubmed-500")            # another sample size
>>> recipe("cora-without_paths")    # a row of Table 3
>>> recipe("cora-reference")        # with five departures of the authors' code; cora-reference-10 and -500
>>> recipe("ppi-raw")               # features as they were released, batches over all graphs
>>> recipe("cora-default")          # ours
"""

from difflib import get_close_matches
from typing import Any, get_args

from gatas.errors import ConfigError
from gatas.tasks.config import AblationName
from gatas.training.config import Config

SAMPLE_SIZES = (10, 100, 500)
OTHER_SIZES = (10, 500)
"""Sample sizes of the recipes `…-reference-SIZE`; the one without a size has 100."""
ABLATIONS = tuple(name for name in get_args(AblationName) if name != "none")

TRANSDUCTIVE: dict[str, Any] = {
    "model": {
        "num_steps": 3, "sample_size": 100, "hidden_size": 50, "neighbour_size": 50, "head_size": 50, "num_heads": 8,
        "node_embedding_size": 10, "relation_embedding_size": 10, "input_noise": 0.9, "dropout": 0.5, "max_degree": None,
    },
    "training": {
        "batch_size": 5000, "l2": 0.05, "epochs": 1000, "patience": 100, "learning_rate": 0.001, "monitor": "metric",
    },
}  # fmt: skip
INDUCTIVE: dict[str, Any] = {
    "model": {
        "num_steps": 3, "sample_size": 500, "hidden_size": 50, "neighbour_size": 50, "head_size": 50, "num_heads": 10,
        "node_embedding_size": 0, "relation_embedding_size": 5, "hidden_sizes": (256, 256), "dropout": 0.0, "max_degree": None,
    },
    "training": {
        "batch_size": 100, "by_graph": True, "epochs": 1000, "patience": 10, "learning_rate": 0.001, "monitor": "metric",
    },
}  # fmt: skip
LINKS: dict[str, Any] = {
    "model": {
        "link_score": ("pair",), "num_steps": 2, "sample_size": 100, "neighbour_size": 50, "head_size": 50, "num_heads": 10,
        "node_embedding_size": 50, "relation_embedding_size": 50, "pair_hidden_size": 256, "exclude_targets": False,
        "dropout": 0.0, "pair_products": False,
    },
    "training": {
        "batch_size": 200, "epochs": 1000, "patience": 5, "learning_rate": 0.001, "negatives": "once", "monitor": "loss",
        "l2": 0.0,
    },
}  # fmt: skip
PAPER = {
    **dict.fromkeys(("cora", "citeseer", "pubmed"), TRANSDUCTIVE),
    "ppi": INDUCTIVE,
    **dict.fromkeys(("twitter", "youtube", "youtube-lite"), LINKS),
}
"""Table 5. It is silent on what early stopping looks at: here accuracy or micro-F1, and for links the loss."""

REFERENCE: dict[str, Any] = {
    "model.transition_kind": "count",  # walks are counted, not weighted by what their steps divide among
    "model.positions_from_neighbour": True,  # position 1 is the step next to the neighbour
    "model.late_decay": True,  # q̃ starts alike for the target itself and one step
    "model.path_score_dropout": True,  # dropout on the scores of steps, before their softmax
    "model.l2_on_depth": True,  # λ pulls q̃ too
}
"""Five of the things that the authors' code does otherwise than the paper; docs/results.md lists those that are not in it."""

MACRO: dict[str, Any] = {"training.monitor": "metric", "training.negative_types": "all alike"}
"""The paper's recipe for links, as the authors' code has it: stopped on macro ROC-AUC, types of negatives drawn alike."""

RAW: dict[str, Any] = {"data.standardise": False, "training.by_graph": False}
"""The paper's recipe for PPI with features as they were released and batches over all graphs, as the authors' code has it."""

FAR: dict[str, Any] = {
    "model.num_steps": 4, "model.sample_size": 50, "model.input_noise": 0.8, "model.dropout": 0.3,
    "training.monitor": "loss", "training.epochs": 600, "training.patience": 60, "training.learning_rate": 0.005,
    "training.consistency": 1.5, "training.consistency_draws": 3, "training.consistency_nodes": 1000,
}  # fmt: skip
DEFAULT: dict[str, dict[str, Any]] = {
    "cora": FAR,
    "citeseer": FAR,
    "pubmed": {
        **FAR, "model.dropout": 0.7, "model.num_heads": 4, "model.transition_kind": "count", "training.consistency": 1.0,
        "training.consistency_nodes": 500, "training.temperature": 0.7,
    },
    "ppi": {
        "training.batch_size": 500, "training.learning_rate": 0.003, "training.schedule": "cosine", "training.epochs": 120,
        "training.patience": 120, "training.l2": 1e-5, "model.hidden_size": 256, "model.hidden_sizes": (1024, 1024),
    },
}  # fmt: skip
"""The best of the search on validation data (`benchmarks/search.py`): 10 seeds each, of PPI a single one.

Data that is not here has the settings that any data has by default."""

OWN: dict[str, dict[str, Any]] = {
    "digits": {
        "model": {"num_steps": 3, "max_degree": None, "sample_size": 50, "dropout": 0.5, "num_heads": 4},
        "training": {
            "batch_size": 100, "epochs": 60, "patience": 40, "learning_rate": 0.01, "schedule": "cosine", "l2": 0.005,
            "monitor": "loss",
        },
    },
    "kinship": {
        "model": {
            "link_score": ("vectors", "paths"), "num_steps": 3, "max_degree": None, "revisits": True, "vector_size": 32,
        },
        "training": {
            "loss": "list", "batch_size": 250, "epochs": 12, "patience": 100, "hidden_folds": 4, "n3": 0.02,
            "ema_decay": 0.98, "monitor": "metric",
        },
    },
}  # fmt: skip
"""Ours, chosen on validation data."""


def names() -> list[str]:
    """All recipes there are."""
    found = list(OWN)
    for data, base in PAPER.items():
        if base is TRANSDUCTIVE:
            found += [f"{data}-reference-{size}" for size in OTHER_SIZES]
        if base is INDUCTIVE:
            found.append(f"{data}-raw")
        found += [data, f"{data}-reference", f"{data}-default"]
        if base is LINKS:
            found.append(f"{data}-macro")
        else:
            found += [f"{data}-{size}" for size in SAMPLE_SIZES]
            found += [
                f"{data}-{ablation}" for ablation in ABLATIONS if base is TRANSDUCTIVE or ablation != "without_embeddings"
            ]
    return found


def recipe(name: str) -> Config:
    """The config of an experiment."""
    if name not in names():
        near = get_close_matches(name, names(), n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`gatas config list` shows all."
        raise ConfigError(f"there is no recipe {name!r}. {hint} Or give the path of a YAML file.")
    if name in OWN:
        return made(name, OWN[name])
    data = max((known for known in PAPER if name == known or name.startswith(f"{known}-")), key=len)
    variant = name.removeprefix(data).removeprefix("-")
    config = made(data, PAPER[data])
    if not variant:
        return config
    if variant == "default" and data not in DEFAULT:
        return made(data, {})
    if variant.startswith("reference-"):
        return config.with_settings({**REFERENCE, "model.sample_size": int(variant.removeprefix("reference-"))})
    changed = {"reference": REFERENCE, "default": DEFAULT.get(data, {}), "macro": MACRO, "raw": RAW}
    if variant in changed:
        return config.with_settings(changed[variant])
    setting = ("model.sample_size", int(variant)) if variant.isdigit() else ("model.ablation", variant)
    return config.with_settings(dict([setting]))


def made(data: str, sections: dict[str, Any]) -> Config:
    """Make a config whose settings are all given, since recipes do not follow from data; without any, one that does."""
    config = Config.model_validate({"data": {"name": data}, **sections})
    return config.complete() if sections else config


def paper_settings(task: str) -> dict[str, Any]:
    """Sections of a config with the paper's settings for a task, for any data."""
    return LINKS if task == "link prediction" else INDUCTIVE if task.startswith("multi-label") else TRANSDUCTIVE
