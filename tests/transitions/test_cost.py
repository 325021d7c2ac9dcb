import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas.errors import GatasWarning, TooLargeError
from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions, cost, estimate_cost, readable_bytes
from gatas.transitions.cost import available_memory
from tests.transitions.conftest import typed_graphs
from tests.transitions.oracles import one_table
from tests.transitions.test_properties import random_graph


@given(graph=typed_graphs(max_nodes=8), num_steps=st.integers(1, 3))
def test_no_row_has_more_entries_than_estimated(graph, num_steps):
    bound = estimate_cost(graph, num_steps)
    rows = one_table(Transitions.build(graph, num_steps))
    assert (np.diff(rows.indptr) <= bound.entries.ravel() + 1e-9).all()
    assert rows.node.nbytes + rows.path.nbytes + rows.probability.nbytes + rows.indptr.nbytes <= bound.num_bytes + 8


def test_sparse_graphs_are_estimated_closely():
    graph = random_graph(20_000, 40_000, 1, seed=1)
    assert estimate_cost(graph, 2).num_entries < 1.2 * Transitions.build(graph, 2).num_entries


@pytest.fixture(scope="module")
def star():
    leaves = np.arange(1, 1_000_001)
    return Graph.from_edges(np.zeros_like(leaves), leaves, undirected=True)


def test_a_star_of_a_million_leaves_is_refused_with_the_figures_and_the_options(star):
    with pytest.raises(TooLargeError, match=r"up to 1e\+12 entries and take 9\.1 TiB") as refusal:
        Transitions.build(star, num_steps=2)
    for option in ("num_steps", "max_candidates", "targets", "OnDemand", "of memory are available"):
        assert option in str(refusal.value)


def test_one_leaf_of_that_star_is_computed_on_demand(star):
    row = OnDemand(star, num_steps=2).row(17)
    assert row.step.tolist().count(2) == 999_999
    assert row.probability.sum() == pytest.approx(3, rel=1e-5)


def test_some_targets_of_that_star_fit(star):
    table = Transitions.build(star, 2, targets=[0, 5, 9], max_candidates=100)
    assert table.row(5).dropped_mass[2] == pytest.approx(1 - 100 / 999_999, rel=1e-5)


def test_a_build_of_hours_is_announced(star, monkeypatch):
    monkeypatch.setattr("gatas.transitions.build.LONG_BUILD_WALKS", 1e6)
    with pytest.warns(GatasWarning, match="max_candidates saves memory, not time"):
        OnDemand(star, 2, max_candidates=10).rows([1, 2])


def test_what_fits_after_counting_is_not_refused(monkeypatch):
    #   the bound counts walks, the table merges them: between the two, counting decides
    graph = random_graph(60, 3_000, 1, seed=2)
    exact = Transitions.build(graph, 2)
    bound = estimate_cost(graph, 2)
    assert exact.num_bytes < 0.8 * bound.num_bytes
    monkeypatch.setattr(cost, "available_memory", lambda: int((exact.num_bytes + bound.num_bytes) / 2))
    assert Transitions.build(graph, 2).num_entries == exact.num_entries
    monkeypatch.setattr(cost, "available_memory", lambda: exact.num_bytes // 2)
    with pytest.raises(TooLargeError, match="exactly"):
        Transitions.build(graph, 2)


def test_the_memory_available_is_positive_and_a_containers_limit_counts(monkeypatch, tmp_path):
    assert available_memory() > 0
    (tmp_path / "max").write_text("5000\n")
    (tmp_path / "current").write_text("1000\n")
    monkeypatch.setattr(cost, "CGROUP_LIMITS", ((str(tmp_path / "max"), str(tmp_path / "current")),))
    assert available_memory() == 4_000


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (3 * 2**30, "3.0 GiB"), (2**53, "8,192.0 TiB")]
)
def test_bytes_read_well(count, text):
    assert readable_bytes(count) == text
