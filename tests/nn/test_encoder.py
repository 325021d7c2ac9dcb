import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.nn import Encoder
from gatas.sampling import NeighbourSampler
from gatas.transitions import OnDemand, Transitions
from tests.nn.transcription import represent
from tests.transitions.conftest import typed_graphs
from tests.transitions.test_properties import random_graph


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def small_encoder(graph, *, feature_size=5, node_embedding_size=3, path_attention="linear", num_steps=2, **settings):
    torch.manual_seed(0)
    return Encoder(
        feature_size,
        graph.num_relations,
        num_steps=num_steps,
        num_nodes=graph.num_nodes,
        hidden_size=4,
        node_embedding_size=node_embedding_size,
        relation_embedding_size=5,
        neighbour_size=4,
        head_size=3,
        num_heads=2,
        path_attention=path_attention,
        **settings,
    )


def features_of(graph, size=5):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(graph.num_nodes, size))) if size else None


def represent_slowly(encoder, targets, drawn, features):
    """One target after another, by the equations."""
    rows = []
    for b, (target, mask) in enumerate(zip(targets.tolist(), drawn.mask, strict=True)):
        pairs = list(zip(drawn.node[b][mask].tolist(), drawn.path[b][mask].tolist(), strict=True))
        rows.append(represent(encoder, target, pairs, drawn.log_probability[b][mask], features))
    return torch.stack(rows)


@settings(max_examples=25)
@given(
    graph=typed_graphs(),
    path_attention=st.sampled_from(["linear", "mlp", "none"]),
    sizes=st.sampled_from([(5, 3), (5, 0), (0, 3)]),
    sample_size=st.integers(1, 6),
)
def test_the_encoder_is_the_papers_equations_with_gradients(graph, path_attention, sizes, sample_size):
    feature_size, node_embedding_size = sizes
    encoder = small_encoder(
        graph, feature_size=feature_size, node_embedding_size=node_embedding_size, path_attention=path_attention
    )
    sampler = NeighbourSampler(OnDemand(graph, 2), sample_size)
    features, targets = features_of(graph, feature_size), torch.arange(graph.num_nodes).repeat(2)
    parameters = [*encoder.parameters(), *sampler.parameters()]

    fast = encoder(targets, sampler(targets, draw=3), features)
    slow = represent_slowly(encoder, targets, sampler(targets, draw=3), features)
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-10)
    weights = torch.linspace(-1, 1, fast.numel()).view_as(fast)
    gradients = [torch.autograd.grad((out * weights).sum(), parameters, allow_unused=True) for out in (fast, slow)]
    for parameter, ours, theirs in zip(parameters, *gradients, strict=True):
        exact = torch.zeros_like(parameter) if theirs is None else theirs
        torch.testing.assert_close(torch.zeros_like(parameter) if ours is None else ours, exact, rtol=1e-7, atol=1e-9)


@pytest.fixture(scope="module")
def graph():
    return random_graph(60, 200, 2, seed=31, inverse=True)


def test_other_targets_in_the_batch_change_nothing(graph):
    encoder, sampler = small_encoder(graph), NeighbourSampler(Transitions.build(graph, 2), 8)
    features, targets = features_of(graph), torch.arange(60)
    whole = encoder(targets, sampler(targets, draw=1), features)
    for chunk in (1, 7):
        parts = [encoder(part, sampler(part, draw=1), features) for part in targets.split(chunk)]
        torch.testing.assert_close(torch.cat(parts), whole)


def test_relabelled_nodes_have_the_same_representations(graph):
    order = np.random.default_rng(1).permutation(60)
    renamed = Graph.from_edges(
        order[graph.source], order[graph.neighbour], graph.edge_type, num_nodes=60, num_edge_types=graph.num_edge_types
    )
    encoder, features = small_encoder(graph, node_embedding_size=0), features_of(graph)
    moved = torch.empty_like(features)
    moved[order] = features
    targets = torch.arange(60)
    here = encoder(targets, NeighbourSampler(Transitions.build(graph, 2), 9)(targets, mode="all"), features)
    there = encoder(targets, NeighbourSampler(Transitions.build(renamed, 2), 9)(targets, mode="all"), moved)
    torch.testing.assert_close(there[order], here)


def test_an_unreachable_part_changes_nothing(graph):
    larger = Graph.from_edges(
        np.concatenate([graph.source, [60, 61]]),
        np.concatenate([graph.neighbour, [61, 62]]),
        np.concatenate([graph.edge_type, [0, 1]]),
        num_nodes=63,
        num_edge_types=graph.num_edge_types,
    )
    encoder, targets = small_encoder(graph, node_embedding_size=0), torch.arange(60)
    features = features_of(larger)
    here = encoder(targets, NeighbourSampler(Transitions.build(graph, 2), 9)(targets, draw=2), features[:60])
    there = encoder(targets, NeighbourSampler(Transitions.build(larger, 2), 9)(targets, draw=2), features)
    torch.testing.assert_close(there, here)


def test_sparse_features_do_what_dense_ones_do(graph):
    encoder, sampler, targets = small_encoder(graph), NeighbourSampler(Transitions.build(graph, 2), 8), torch.arange(20)
    features = features_of(graph) * (torch.rand(60, 5) < 0.3)
    drawn = sampler(targets)
    torch.testing.assert_close(encoder(targets, drawn, features.to_sparse()), encoder(targets, drawn, features))


def test_a_training_run_is_a_function_of_its_seed(graph):
    sampler, targets, features = NeighbourSampler(Transitions.build(graph, 2), 8), torch.arange(20), features_of(graph)

    def passes(seed, targets):
        encoder = small_encoder(graph, input_noise=0.3, dropout=0.5, seed=seed).train()
        return [encoder(targets, sampler(targets, draw=step), features) for step in range(2)]

    first, again, other = passes(0, targets), passes(0, targets), passes(1, targets)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], other[0])
    torch.testing.assert_close(passes(0, targets[:7])[1], first[1][:7])  # noise belongs to nodes and pairs, not to batches


@pytest.mark.parametrize("noise", [0.3, 0.8])
@pytest.mark.parametrize("path_attention", ["linear", "mlp", "none"])
def test_many_models_at_once_are_each_as_alone(graph, path_attention, noise):
    """Sampling, encoding and gradients under vmap: own weights, own depth, own noise."""
    table, targets, features = Transitions.build(graph, 2), torch.arange(20), features_of(graph)

    def model(seed):
        torch.manual_seed(seed)
        encoder = small_encoder(graph, input_noise=noise, dropout=0.5, seed=seed, path_attention=path_attention).train()
        for parameter in encoder.parameters():
            nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(seed))
        return nn.ModuleDict({"sampler": NeighbourSampler(table, 8, seed=seed), "encoder": encoder})

    def outcome(run, models):
        run(models)  # draws and passes advance
        return run(models)

    def alone(models):
        return torch.stack([m["encoder"](targets, m["sampler"](targets), features) for m in models])

    models = [model(seed) for seed in range(3)]
    expected = outcome(alone, models)
    wanted = [parameter for m in models for parameter in m.parameters()]
    gradients = torch.autograd.grad(expected.square().sum(), wanted, allow_unused=True)

    copies = [model(seed) for seed in range(3)]
    parameters, buffers = torch.func.stack_module_state(list(copies))

    def one(parameters, buffers):
        own = {**parameters, **buffers}
        sampler, encoder = ({k[8:]: v for k, v in own.items() if k.startswith(part)} for part in ("sampler.", "encoder."))
        drawn = torch.func.functional_call(copies[0]["sampler"], sampler, (targets,))
        return torch.func.functional_call(copies[0]["encoder"], encoder, (targets, drawn, features))

    together = outcome(lambda _: torch.vmap(one)(parameters, buffers), None)
    torch.testing.assert_close(together, expected, rtol=1e-8, atol=1e-9)
    ours = torch.autograd.grad(together.square().sum(), list(parameters.values()), allow_unused=True)
    for number, grads in enumerate(ours):
        each = [gradients[m * len(ours) + number] for m in range(3)]
        if grads is not None:
            torch.testing.assert_close(grads, torch.stack(each), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("path_attention", ["linear", "none"])
def test_a_window_of_nodes_gives_the_same(graph, path_attention, monkeypatch):
    encoder = small_encoder(graph, input_noise=0.3, dropout=0.5, path_attention=path_attention).train()
    targets, features = torch.arange(20), features_of(graph)
    drawn = NeighbourSampler(Transitions.build(graph, 2), 30)(targets)
    expected = encoder(targets, drawn, features)
    monkeypatch.setattr("gatas.nn.encoder.shapes_are_fixed", lambda _: True)
    for window in (None, *((torch.tensor(0), size) for size in (graph.num_nodes, graph.num_nodes + 5, 10**6))):
        encoder.passes.zero_()
        torch.testing.assert_close(encoder(targets, drawn, features, window=window), expected)


def test_evaluation_has_no_noise(graph):
    encoder = small_encoder(graph, input_noise=0.9, dropout=0.5).eval()
    sampler, targets, features = NeighbourSampler(Transitions.build(graph, 2), 8), torch.arange(5), features_of(graph)
    drawn = sampler(targets)
    assert torch.equal(encoder(targets, drawn, features), encoder(targets, drawn, features))


def test_attention_starts_near_the_prior(graph):
    torch.manual_seed(0)
    encoder = Encoder(5, graph.num_relations, num_steps=2)
    inputs, neighbours = torch.randn(10, 50), torch.randn(40, 50)
    attention = encoder.neighbours
    hidden = torch.nn.functional.elu(attention.hidden_of_target(inputs)[:, None] + attention.hidden_of_neighbour(neighbours))
    logits = torch.einsum("bukf,kf->buk", hidden.view(10, 40, 8, 50), attention.score)
    assert logits.std(dim=1).mean() < 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feature_size": 0, "node_embedding_size": 0}, "features, learned embeddings, or both"),
        ({"feature_size": 5, "node_embedding_size": 3, "num_nodes": 0}, "learned embeddings need num_nodes"),
        ({"feature_size": 5, "dropout": 1.0}, "dropout probability is 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(GatasError, match=message):
        Encoder(num_relations=2, **settings)


def test_paths_of_another_graph_are_refused(graph):
    sampler, targets = NeighbourSampler(Transitions.build(graph, 3), 200), torch.arange(10)
    with pytest.raises(GatasError, match=r"steps make \d+ paths"):
        small_encoder(graph)(targets, sampler(targets), features_of(graph))


def test_too_few_rows_of_features_are_refused(graph):
    sampler, targets = NeighbourSampler(Transitions.build(graph, 2), 20), torch.arange(10)
    with pytest.raises(GatasError, match="features have 7 rows"):
        small_encoder(graph)(targets, sampler(targets), features_of(graph)[:7])
    without = small_encoder(graph, node_embedding_size=0, input_noise=0.9).train()
    with pytest.raises(IndexError, match="features have 7 rows"):
        without(targets, sampler(targets), features_of(graph)[:7])


@pytest.mark.parametrize("path_attention", ["linear", "mlp", "none"])
def test_no_targets_have_no_representations(graph, path_attention):
    encoder = small_encoder(graph, path_attention=path_attention)
    none = torch.empty(0, dtype=torch.int64)
    drawn = NeighbourSampler(Transitions.build(graph, 2), 5)(none)
    assert encoder(none, drawn, features_of(graph)).shape == (0, encoder.output_size)


def test_features_of_another_width_are_refused(graph):
    encoder, sampler = small_encoder(graph), NeighbourSampler(Transitions.build(graph, 2), 8)
    targets = torch.arange(5)
    with pytest.raises(GatasError, match="made for 5 features; 4 columns came"):
        encoder(targets, sampler(targets), torch.randn(60, 4))


@pytest.mark.parametrize("path_attention", ["linear", "mlp", "none"])
@pytest.mark.parametrize("how", ["compile", "export"])
def test_compiled_and_exported_encoders_give_the_eager_result(graph, path_attention, how):
    encoder = small_encoder(graph, path_attention=path_attention).eval()
    sampler, features = NeighbourSampler(Transitions.build(graph, 2), 8), features_of(graph)
    targets = torch.arange(10)
    with torch.no_grad():
        drawn = sampler(targets)
        eager = encoder(targets, drawn, features)
        if how == "compile":
            torch._dynamo.reset()
            changed = torch.compile(encoder, fullgraph=True, backend="aot_eager")
        else:
            changed = torch.export.export(encoder, (targets, drawn, features)).module()
        torch.testing.assert_close(changed(targets, drawn, features), eager)
        others, again = torch.arange(20, 30), sampler(torch.arange(20, 30))
        torch.testing.assert_close(changed(others, again, features), encoder(others, again, features))


def test_the_authors_positions_count_from_the_far_end_of_a_path(graph):
    """Turned round for paths of two steps, they are what they were for those of one."""
    targets, features = torch.arange(20), features_of(graph)
    drawn = NeighbourSampler(Transitions.build(graph, 2), 30)(targets)
    encoders = [small_encoder(graph, positions_from_neighbour=kind).eval() for kind in (False, True)]
    encoders[1].load_state_dict(encoders[0].state_dict())
    ours, theirs = (encoder(targets, drawn, features) for encoder in encoders)
    near = dataclasses.replace(drawn, mask=drawn.mask & (drawn.path < graph.num_relations))
    assert not torch.allclose(ours, theirs)
    torch.testing.assert_close(*(encoder(targets, near, features) for encoder in encoders))


@pytest.mark.parametrize("num_steps", [1, 3, 4])
@pytest.mark.parametrize("path_attention", ["linear", "mlp"])
def test_positions_from_the_far_end_are_those_of_the_loop_however_many_steps(graph, path_attention, num_steps):
    settings = {"path_attention": path_attention, "num_steps": num_steps, "positions_from_neighbour": True}
    encoder, targets, features = small_encoder(graph, **settings).eval(), torch.arange(8), features_of(graph)
    drawn = NeighbourSampler(Transitions.build(graph, num_steps), 30)(targets)
    expected = represent_slowly(encoder, targets, drawn, features)
    torch.testing.assert_close(encoder(targets, drawn, features), expected, rtol=1e-9, atol=1e-10)


def test_dropped_path_scores_change_only_training(graph):
    targets, features = torch.arange(20), features_of(graph)
    drawn = NeighbourSampler(Transitions.build(graph, 2), 30)(targets)
    encoders = [small_encoder(graph, dropout=0.5, path_score_dropout=kind) for kind in (False, True)]
    encoders[1].load_state_dict(encoders[0].state_dict())
    assert not torch.allclose(*(encoder.train()(targets, drawn, features) for encoder in encoders))
    torch.testing.assert_close(*(encoder.eval()(targets, drawn, features) for encoder in encoders))
