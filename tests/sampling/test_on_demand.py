"""Rows on demand that the device makes which draws from them: here a CPU that is taken for one."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from gatas.errors import GatasWarning, TransitionError
from gatas.graph import Graph
from gatas.sampling import NeighbourSampler, on_demand
from gatas.sampling.on_demand import RowsOnDevice, rows_on
from gatas.transitions import HiddenFolds, OnDemand, Transitions, assign_folds, walk_states
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.build import Walks
from gatas.transitions.on_device import DeviceBuilder
from tests.transitions.conftest import typed_graphs
from tests.transitions.test_properties import random_graph

CPU = torch.device("cpu")


@pytest.fixture
def device_rows(monkeypatch):
    """As if CPUs made rows on demand as GPUs do."""
    monkeypatch.setattr(on_demand, "MAKES_ROWS", {"cpu"})


def assert_same_rows(source, targets, most=1 << 22):
    """The device's rows are the host's, probabilities and dropped mass to float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_demand, "MOST_WALKS", most)
        maker = RowsOnDevice(source, CPU)
    wanted = np.unique(targets).astype(np.int64)
    ours, table = source.rows(wanted), maker.table(torch.tensor(targets, dtype=torch.int64))
    made = maker.builder.rows(torch.from_numpy(wanted), maker.num_walks[wanted].numpy()).on_host()
    assert table.targets is not None and table.targets.tolist() == wanted.tolist() and made.path.dtype == ours.path.dtype
    for name in ("indptr", "node", "path"):
        assert getattr(made, name).tolist() == getattr(ours, name).tolist() == getattr(table, name).tolist(), name
    assert made.probability == approx(ours.probability, rel=1e-6) and table.probability.numpy() == approx(ours.probability)
    assert made.dropped_mass == approx(ours.dropped_mass, abs=1e-6)
    assert table.longest == np.diff(ours.indptr[:: ours.num_steps + 1]).max(initial=0)


@settings(max_examples=150, deadline=None)
@given(
    graph=typed_graphs(max_nodes=9),
    num_steps=st.integers(1, 3),
    kind=st.sampled_from(["walk", "count"]),
    cap=st.none() | st.integers(1, 4) | st.just((1, 3, 2)),
    most_edges=st.none() | st.integers(1, 5),
    revisits=st.booleans(),
    most_walks=st.sampled_from([1, 3, 10, 1 << 22]),
    data=st.data(),
)
def test_the_devices_rows_are_the_hosts(graph, num_steps, kind, cap, most_edges, revisits, most_walks, data):
    targets = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=12))
    caps = cap[:num_steps] if isinstance(cap, tuple) else cap
    source = OnDemand(graph, num_steps, kind, caps, max_degree=most_edges, revisits=revisits)
    assert_same_rows(source, targets, most_walks)


@settings(max_examples=30, deadline=None)
@given(
    graph=typed_graphs(max_nodes=9),
    kind=st.sampled_from(["walk", "count"]),
    cap=st.none() | st.integers(1, 4),
    most_walks=st.sampled_from([2, 1 << 22]),
)
def test_links_that_are_hidden_are_hidden_on_the_device_too(graph, kind, cap, most_walks):
    count = graph.num_edges
    links = (graph.source, graph.edge_type, graph.neighbour)
    fold = assign_folds(count, 2, 0)
    folds = HiddenFolds(graph, Walks(2, kind, cap), *links, fold, np.arange(graph.num_edge_types), on_demand=True)
    for number in range(folds.num_folds):
        assert_same_rows(folds.table(number), list(range(graph.num_nodes)), most_walks)


@pytest.mark.parametrize("kind", ["walk", "count"])
@pytest.mark.parametrize(
    "limits", [{}, {"max_candidates": 20}, {"max_degree": 50}, {"max_candidates": (9, 30), "max_degree": 50}]
)
def test_hubs_have_the_hosts_rows_in_pieces_of_few_walks(kind, limits, monkeypatch):
    hub, leaves = np.zeros(2_000, np.int64), np.arange(1, 2_001)
    others = np.random.default_rng(0).integers(1, 2_001, (2, 6_000))
    graph = Graph.from_edges(
        np.concatenate([hub, others[0]]),
        np.concatenate([leaves, others[1]]),
        np.concatenate([hub, others[0] % 3]),
        num_nodes=2_100,
        inverse=True,
    )
    sizes, expanded = [], walk_states.expanded

    def watched(edges, states, first, ends, walks):
        sizes.append(len(walks))
        return expanded(edges, states, first, ends, walks)

    monkeypatch.setattr(walk_states, "expanded", watched)
    assert_same_rows(OnDemand(graph, 2, kind, **limits), [0, 7, 7, 1_500, 2_050, 33], most=700)
    assert max(sizes) <= 700 and len(sizes) > 10


@pytest.mark.parametrize("mode", ["sample", "top", "all"])
@pytest.mark.parametrize("uniform_steps", [False, True])
def test_draws_from_the_devices_rows_are_those_from_the_hosts(mode, uniform_steps, monkeypatch):
    graph = random_graph(300, 3_000, 2, seed=3, inverse=True)
    targets = torch.tensor([4, 299, 4, 0, 17])
    host, device = (NeighbourSampler(OnDemand(graph, 2), 25, mode=mode, uniform_steps=uniform_steps) for _ in range(2))
    expected = host(targets)
    monkeypatch.setattr(on_demand, "MAKES_ROWS", {"cpu"})
    found = device(targets)
    assert torch.equal(found.node, expected.node) and torch.equal(found.path, expected.path)
    torch.testing.assert_close(found.log_probability, expected.log_probability)
    assert (
        device.num_candidates(targets).tolist()
        == NeighbourSampler(Transitions.build(graph, 2), 1).num_candidates(targets).tolist()
    )


def test_vmapped_samplers_draw_from_the_rows_of_all(device_rows):
    graph = random_graph(300, 3_000, 2, seed=3, inverse=True)
    sampler, targets = NeighbourSampler(OnDemand(graph, 2), 25), torch.tensor([[4, 299], [17, 4]])
    together = torch.vmap(lambda own: sampler(own, draw=3).node)(targets)
    assert torch.equal(together, torch.stack([sampler(own, draw=3).node for own in targets]))


def test_edges_are_copied_once_and_let_go_with_their_source(device_rows):
    source = OnDemand(random_graph(50, 200, 1, seed=0), 2)
    maker = rows_on(source, CPU)
    assert maker is not None and rows_on(ReadAhead(source), CPU) is maker
    assert rows_on(OnDemand(random_graph(50, 200, 1, seed=0), 2), CPU) is not maker
    assert rows_on(Transitions.build(random_graph(50, 200, 1, seed=0), 2), CPU) is None
    kept = weakref.ref(maker)
    del source, maker
    gc.collect()
    assert kept() is None


def test_rows_are_made_once_for_several_draws(device_rows, monkeypatch):
    made, built = [], DeviceBuilder.rows

    def counted(self, *given):
        made.append(given)
        return built(self, *given)

    monkeypatch.setattr(DeviceBuilder, "rows", counted)
    sampler = NeighbourSampler(OnDemand(random_graph(50, 200, 1, seed=0), 2), 5)
    for targets in ([3, 4], [4, 3], [3, 5], [3, 5], [3]):
        sampler(torch.tensor(targets))
    assert len(made) == 3


def test_a_cpu_has_kernels_of_its_own():
    assert rows_on(OnDemand(random_graph(50, 200, 1, seed=0), 2), CPU) is None


def test_edges_that_do_not_fit_are_left_to_the_host_which_is_said_once(device_rows, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(on_demand, "RowsOnDevice", full)
    source = OnDemand(random_graph(50, 200, 1, seed=0), 2)
    with pytest.warns(
        GatasWarning, match=r"the graph's edges take 0\.0 GB, which do not fit on cpu: rows are made by the host"
    ):
        assert rows_on(source, CPU) is None
    assert NeighbourSampler(source, 5)(torch.tensor([3])).mask.any()


def test_rows_that_do_not_fit_say_what_to_do(device_rows, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(walk_states, "expanded", full)
    with pytest.raises(TransitionError, match=r"the rows of 2 targets do not fit on cpu\. Set max_degree"):
        NeighbourSampler(OnDemand(random_graph(50, 200, 1, seed=0), 2), 5)(torch.tensor([3, 4]))


def test_no_target_has_no_rows(device_rows):
    drawn = NeighbourSampler(OnDemand(random_graph(50, 200, 1, seed=0), 2), 5)(torch.tensor([], dtype=torch.int64))
    assert drawn.node.shape == (0, 5)
