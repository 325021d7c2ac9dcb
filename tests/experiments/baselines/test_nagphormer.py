"""NAGphormer's tokens, attention and positions against direct computation."""

import numpy as np
import torch
from torch import nn

from gatas.experiments.baselines.nagphormer import NAGphormer, TransformerLayer, eigenvectors
from tests.tasks.toys import camps


def nagphormer(**settings):
    sizes = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "num_steps": 2, "num_eigenvectors": 3, "dropout": 0.0}
    return NAGphormer(camps(), **{**sizes, **settings}).eval()


def test_tokens_are_hops_of_features_and_positions():
    model = nagphormer()
    matrix = torch.zeros(30, 30)
    matrix[model.edges[1], model.edges[0]] = model.edge_values
    x = torch.cat([model.features, model.positions], 1)
    expected = torch.stack([model.first(torch.linalg.matrix_power(matrix, steps) @ x) for steps in range(3)], 1)
    torch.testing.assert_close(model.tokens(), expected, rtol=1e-4, atol=1e-6)


def test_a_layer_attends_as_torchs_does():
    layer = TransformerLayer(8, 2, dropout=0.0, attention_dropout=0.0)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(layer.query_key_value.weight)
        theirs.in_proj_bias.copy_(layer.query_key_value.bias)
        theirs.out_proj.load_state_dict(layer.out.state_dict())
    tokens = torch.randn(5, 3, 8)
    torch.testing.assert_close(layer.attended(tokens), theirs(tokens, tokens, tokens)[0], rtol=1e-4, atol=1e-6)


def test_the_targets_own_token_is_joined_by_a_mean_of_the_others():
    model = nagphormer()
    tokens = torch.randn(4, 3, 8)
    own, first, second = tokens.unbind(1)
    scores = torch.cat([model.score(torch.cat([own, other], 1)) for other in (first, second)], 1).softmax(1)
    expected = model.last(own + scores[:, :1] * first + scores[:, 1:] * second)
    torch.testing.assert_close(model.read(tokens), expected)


def test_positions_are_eigenvectors_of_the_normalised_laplacian():
    #   0 ─ 1 ─ … ─ 7; eigenvalues of a path's normalised Laplacian are 1 − cos(πk / 7)
    edges = np.array([[n, n + 1] for n in range(7)]).T
    found = eigenvectors(edges, 8, 2)
    degree = np.array([1, 2, 2, 2, 2, 2, 2, 1.0])
    adjacency = np.zeros((8, 8))
    adjacency[edges[0], edges[1]] = adjacency[edges[1], edges[0]] = 1
    laplacian = np.eye(8) - adjacency / np.sqrt(np.outer(degree, degree))
    for place in (0, 1):
        value = 1 - np.cos(np.pi * (place + 1) / 7)
        np.testing.assert_allclose(laplacian @ found[:, place], value * found[:, place], atol=0.02)
    assert eigenvectors(edges, 8, 0).shape == (8, 0)
