"""Parts of a link's score: the decoders' formulas, weights of paths, and that all ways of asking give the same score."""

from typing import Any

import numpy as np
import pytest
import torch

from gatas.errors import ConfigError, GatasError, GatasWarning
from gatas.nn.link_decoders import VectorDecoder
from gatas.nn.path_weights import PathWeights
from gatas.tasks.link_paths import reversed_paths
from gatas.transitions.paths import path_of, relation_table
from tests.tasks.toys import likes, predictor

PARTS: dict[str, Any] = {"link_score": ("vectors", "neighbourhood", "paths"), "vector_size": 6, "revisits": True}


def formula(kind, source, relation, target):
    if kind == "distmult":
        return (source * relation * target).sum()
    if kind == "bilinear":
        return source @ relation @ target
    first, second, third = (torch.complex(*vector.chunk(2)) for vector in (source, relation, target))
    return (first * second * third.conj()).sum().real


@pytest.mark.parametrize("kind", ["complex", "distmult", "bilinear"])
def test_a_decoder_is_its_formula_in_both_directions(kind):
    torch.manual_seed(0)
    decoder, types = VectorDecoder(kind, 3, 6).double(), torch.tensor([2, 0, 2, 1])
    sources, targets = torch.randn(2, 4, 6, dtype=torch.float64)
    expected = torch.stack([formula(kind, u, decoder.relations[r], v) for u, r, v in zip(sources, types, targets, strict=True)])
    torch.testing.assert_close(decoder(sources, targets, types), expected)
    torch.testing.assert_close((decoder.query(targets, types, backward=True) * sources).sum(1), expected)


def test_complex_numbers_come_in_pairs():
    with pytest.raises(GatasError, match="5 numbers; expected an even number"):
        VectorDecoder("complex", 2, 5)


def test_cubes_are_of_moduli():
    decoder = VectorDecoder("complex", 1, 2)
    decoder.relations.data[:] = 0.0
    found = decoder.cubes(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]]), torch.tensor([0]))
    assert found.item() == pytest.approx(125 + 8)


def path_weights(num_types=2, rank=4, own=(-1, -1)):
    relations = torch.tensor([[1, -1], [2, -1], [1, 1], [1, 2], [2, 1], [2, 2]])
    return PathWeights(relations, num_types, 3, torch.tensor(own), rank)


def test_few_weights_are_a_table_and_many_are_products_of_factors(monkeypatch):
    assert path_weights().is_table and path_weights()().shape == (2, 6, 3)
    monkeypatch.setattr("gatas.nn.path_weights.TABLE_SIZE", 1)
    factored = path_weights(rank=5)
    assert not factored.is_table and factored.of_type.shape == (2, 3, 5)
    step, kind = factored.of_step, factored.of_type
    torch.testing.assert_close(factored()[1, 3], (kind[1] * step[0, 1] * step[1, 2]).sum(-1))
    torch.testing.assert_close(factored()[0, 1], (kind[0] * step[0, 2] * step[1, 3]).sum(-1))  # no second step


def test_factors_are_as_many_as_asked_for(monkeypatch):
    monkeypatch.setattr("gatas.nn.path_weights.TABLE_SIZE", 1)
    assert predictor(likes(), seed=0, **PARTS, path_factors=5).head.paths.of_step.shape == (2, 6, 5)


def test_a_link_is_no_evidence_for_itself():
    weights = path_weights(own=(1, -1))
    weights.table.data[:] = 1.0
    found = weights()
    assert not found[0, 1].any() and found[1].all() and found[0, [0, 2, 3, 4, 5]].all()


def test_paths_are_turned_around_relation_by_relation():
    graph = likes().graph  # likes, knows, and their inverses
    paths = np.arange(1, path_of((4, 4), 5) + 1)
    turned = reversed_paths(relation_table(paths, 5, 2), graph)
    assert turned[path_of((1, 2), 5) - 1] == path_of((4, 3), 5) and turned[path_of((3,), 5) - 1] == path_of((1,), 5)
    both_ways = reversed_paths(relation_table(turned, 5, 2), graph)
    np.testing.assert_array_equal(both_ways, paths)


@pytest.fixture(scope="module", params=[{"inverse": True}, {"undirected": True}], ids=str)
def model(request):
    made = predictor(likes(**request.param), seed=0, **PARTS).eval()
    torch.manual_seed(3)
    for parameter in made.head.parameters():
        torch.nn.init.normal_(parameter)
    made.head.part_weights[:] = torch.tensor([0.5, 2.0, 1.5])
    made.head.type_bias[:] = torch.tensor([0.3, -1.0])
    return made


@torch.no_grad()
def test_a_link_has_one_score_whichever_way_it_is_asked_for(model):
    everyone, draw = torch.arange(12), torch.tensor(-1)
    seen, slot = model.represent(everyone, draw=draw), torch.arange(12, dtype=torch.int32)
    source, target = torch.cartesian_prod(everyone, everyone).T
    for kind in (0, 1):
        types = torch.full((144,), kind)
        pairs = model.part_scores(seen[source], seen[target], types, (source, target)).view(3, 12, 12)
        asked = everyone, types[:12], seen, seen, slot
        targets = torch.stack(model.candidate_scores(*asked, backward=False))
        sources = torch.stack(model.candidate_scores(*asked, backward=True))
        other = ~torch.eye(12, dtype=torch.bool)
        torch.testing.assert_close(targets[:, other], pairs[:, other])
        torch.testing.assert_close(sources.mT[:2, other], pairs[:2, other], rtol=1e-4, atol=1e-4)
        # by paths to about Ψ, which leaves out a little more of the walks from one end than of those from the other
        torch.testing.assert_close(sources.mT[2, other], pairs[2, other], rtol=0.1, atol=0.1)
        together = model.score(seen[source], seen[target], types, (source, target))
        bias = model.head.type_bias[kind]
        torch.testing.assert_close(together, torch.einsum("p,pq->q", model.head.part_weights, pairs.flatten(1)) + bias)


@torch.no_grad()
def test_candidates_may_be_some_nodes_in_any_slots(model):
    everyone, draw = torch.arange(12), torch.tensor(-1)
    seen = model.represent(everyone, draw=draw)
    chosen, slot = torch.tensor([7, 2, 11]), torch.full((12,), -1, dtype=torch.int32)
    slot[chosen] = torch.arange(3, dtype=torch.int32)
    asked = torch.tensor([0, 5]), torch.tensor([0, 1]), seen[[0, 5]]
    some = torch.stack(model.candidate_scores(*asked, seen[chosen], slot, backward=False))
    every = torch.stack(model.candidate_scores(*asked, seen, everyone.int(), backward=False))
    torch.testing.assert_close(some, every[:, :, chosen])


def test_paths_are_left_out_where_edges_cannot_be_walked_back():
    with pytest.warns(GatasWarning, match="cannot be walked back"):
        model = predictor(likes(inverse=False), seed=0, **PARTS)
    assert model.parts == ("vectors", "neighbourhood")
    model.reset(1)  # says it no second time, nor does a model over the same rows
    predictor(likes(inverse=False), seed=0, transitions=model.transitions, **PARTS)
    with pytest.raises(ConfigError, match="Add vectors"):
        predictor(likes(inverse=False), seed=0, link_score=("paths",))
