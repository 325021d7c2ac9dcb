"""The settings that a model of a data set has: what is given, defaults, what suits the data, and numbers in place of `auto`."""

from collections.abc import Mapping
from typing import Any

from gatas.datasets import Dataset, NodeTargets, NumberTargets
from gatas.errors import ConfigError
from gatas.tasks.config import ModelConfig, checked, model_defaults
from gatas.tasks.recommended import Recommended, recommended
from gatas.tasks.walk_limits import Resolved, WalkLimits, resolved, scored_by_paths

FEW_EDGES = 10
"""Nodes with fewer edges on average are too little known by vectors of their own: links are scored by neighbourhoods too."""


def settled_model(dataset: Dataset, settings: Mapping[str, Any]) -> Resolved:
    """Check settings, complete them by defaults, and put what suits the data in place of `auto`; say what, and why."""
    suited = Recommended()
    if len(settings) < len(ModelConfig.model_fields):
        suited = recommended(dataset, settings.get("num_steps", "auto")).part("model")
        suited = suited.without({f"model.{name}" for name in settings})
    config = checked(ModelConfig, {**model_defaults(dataset.task, settings), **suited.by_key, **settings})
    if dataset.mapped and config.node_embedding_start == "structure":
        raise ConfigError(
            "model.node_embedding_start is structure, but the data lies in a store, of which only what is needed is read. Set "
            "node_embedding_start to random, or train from tables."
        )
    found = settled(dataset, config)
    return found._replace(reasons=suited.reasons + found.reasons)


def settled(dataset: Dataset, config: ModelConfig) -> Resolved:
    """Put what suits the data in place of `auto`, and say what, and why."""
    reasons, changed, links = list[str](), dict[str, Any](), is_for_links(dataset)
    if config.link_score == "auto" and links:
        changed["link_score"], reason = _parts(dataset)
        reasons.append(f"link_score: {', '.join(changed['link_score'])}, since nodes have {reason}")
    config = config.model_copy(update=changed)
    if dataset.mapped:  # rows are made when they are needed, of any number of steps
        limits = limits_of(dataset, config)
        changed = {"num_steps": limits.steps_on_demand()} if config.num_steps == "auto" else {}
        changed |= {"max_degree": None} if config.max_degree == "auto" else {}
        config = config.model_copy(update=changed)
    found = resolved(config, limits_of(dataset, config))
    return found._replace(reasons=reasons + found.reasons)


def limits_of(dataset: Dataset, config: ModelConfig) -> WalkLimits:
    """Return how far walks may go where settings leave it open."""
    if not is_for_links(dataset):
        return WalkLimits(dataset.graph, links=False)
    num_types = len(dataset.names) if scored_by_paths(config) else 0
    return WalkLimits(dataset.graph, True, num_types, int((dataset.link_targets.splits["train"].label == 1).sum()))


def is_for_links(dataset: Dataset) -> bool:
    """Whether links are predicted, rather than classes or numbers of nodes."""
    return not isinstance(dataset.targets, NodeTargets | NumberTargets)


def _parts(dataset: Dataset) -> tuple[tuple[str, ...], str]:
    """Return what links are scored by, and what it is about nodes that makes it so."""
    if dataset.nodes.num_features:
        return ("vectors", "neighbourhood", "paths"), "features"
    if dataset.graph.num_edges < FEW_EDGES * dataset.graph.num_nodes:
        return ("vectors", "neighbourhood", "paths"), "few edges"
    return ("vectors", "paths"), "no features and many edges"
