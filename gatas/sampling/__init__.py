"""Learned depth q, and draws without replacement from P = Σ qₜ T⁽ᵗ⁾ (§3.4)."""

from gatas.sampling.neighbourhood import Neighbourhood
from gatas.sampling.sampler import NeighbourSampler

__all__ = ["NeighbourSampler", "Neighbourhood"]
