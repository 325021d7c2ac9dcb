"""Typed-path transition probabilities T⁽⁰⁾ … T⁽ᶜ⁾ (§3.3): exact, sorted, in memory, on disk or on demand."""

from gatas.transitions.build import Rows
from gatas.transitions.cost import Cost, estimate_cost, readable_bytes
from gatas.transitions.hidden import HiddenFolds, assign_folds, link_edges, link_groups
from gatas.transitions.nearby import Nearby
from gatas.transitions.table import OnDemand, Row, Transitions, TransitionSource

__all__ = [
    "Cost",
    "HiddenFolds",
    "Nearby",
    "OnDemand",
    "Row",
    "Rows",
    "TransitionSource",
    "Transitions",
    "assign_folds",
    "estimate_cost",
    "link_edges",
    "link_groups",
    "readable_bytes",
]
