"""Typed-path transition probabilities T⁽⁰⁾ … T⁽ᶜ⁾ (§3.3): exact, sorted, in memory, on disk or on demand."""

from gatas.transitions.build import Rows
from gatas.transitions.cost import Cost, estimate_cost, readable_bytes
from gatas.transitions.nearby import Nearby
from gatas.transitions.table import OnDemand, Row, Transitions, TransitionSource

__all__ = ["Cost", "Nearby", "OnDemand", "Row", "Rows", "TransitionSource", "Transitions", "estimate_cost", "readable_bytes"]
