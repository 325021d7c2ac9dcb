"""GRAND's random propagation against dense matrices and frequencies."""

import torch

from gatas.experiments.baselines.grand import GRAND
from tests.tasks.toys import camps


def grand(**settings):
    return GRAND(camps(), **{"num_steps": 3, "hidden_size": 4, "dropout": 0.0, "input_dropout": 0.0, **settings})


def test_features_walk_all_lengths_alike():
    model = grand()
    matrix = torch.zeros(30, 30)
    matrix[model.edges[1], model.edges[0]] = model.edge_values
    x = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    expected = sum(torch.linalg.matrix_power(matrix, steps) @ x for steps in range(4)) / 4
    torch.testing.assert_close(model.walked(x, model.edges, model.edge_values), expected, rtol=1e-4, atol=1e-5)


def test_whole_nodes_are_dropped_and_the_rest_stays_as_it_is():
    model = grand(drop_nodes=0.25).train()
    x = torch.ones(30, 5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        kept = torch.stack([model.kept_nodes(x) for _ in range(1000)])
    torch.testing.assert_close(kept, (kept > 0).float())
    assert (kept == kept[..., :1]).all()
    assert ((kept[..., 0].mean(0) - 0.75).abs() < 5 * (0.1875 / 1000) ** 0.5).all()
    torch.testing.assert_close(model.eval().kept_nodes(x), 0.75 * x)


def test_every_recipe_asks_for_agreement_of_draws_on_all_nodes():
    for recipe in GRAND.recipes.values():
        training = recipe.training
        assert training.consistency > 0 and training.consistency_draws in (2, 4) and training.consistency_nodes >= 1 << 20
    assert GRAND.recipes["citeseer"].training.temperature == 0.3 and GRAND.recipes["pubmed"].training.temperature == 0.2


def test_a_perceptron_reads_what_has_walked():
    model = grand().eval()
    x = model.walked(0.5 * model.features, model.edges, model.edge_values)
    expected = model.second(torch.relu(model.first(x)))
    torch.testing.assert_close(model(torch.arange(30)), expected)
