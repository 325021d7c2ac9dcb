"""PPRGo's weights on a path of three nodes."""

import math

import torch
from pytest import approx

from gatas.experiments.baselines.pprgo import likeliest

#   0 ─ 1 ─ 2   with teleport 1/2:  π₁ = (1/6, 2/3, 1/6),  π₀ = (7/12, 1/3, 1/12)
EDGES = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])


def test_weights_are_page_rank_weighted_by_degrees():
    neighbours, weights = likeliest(EDGES, 3, teleport=0.5, threshold=1e-7, top=3)
    found = [dict(zip(*both, strict=True)) for both in zip(neighbours.tolist(), weights.tolist(), strict=True)]
    assert found[1] == approx({0: math.sqrt(2) / 6, 1: 2 / 3, 2: math.sqrt(2) / 6}, abs=1e-4)
    assert found[0] == approx({0: 7 / 12, 1: 1 / math.sqrt(2) / 3, 2: 1 / 12}, abs=1e-4)


def test_only_the_likeliest_are_kept_and_missing_ones_weigh_nothing():
    neighbours, weights = likeliest(EDGES, 3, teleport=0.5, threshold=1e-7, top=2)
    assert neighbours[0].tolist() == [0, 1] and neighbours[1, 0] == 1
    neighbours, weights = likeliest(EDGES, 3, teleport=0.5, threshold=1e-7, top=5)
    assert (weights[:, 3:] == 0).all() and (weights[:, :3] > 0).all()
