"""Links ranked among all nodes that may stand at their ends: as defined, as in PyKEEN, and in bounded memory."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from torch.utils._python_dispatch import TorchDispatchMode

from gatas.datasets import Dataset, Pairs
from gatas.datasets.held_out import IndexedPairs
from gatas.datasets.permitted_ends import PermittedEnds
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.tasks import ranking as module
from gatas.tasks.ranking import LinkRanking, Ranks, known_links, ranking_metrics


class Table:
    """Scores looked up in a (num_types, N, N) table; counts what it is asked."""

    def __init__(self, scores):
        self.scores, self.asked, self.shapes = torch.as_tensor(scores), [], []

    def score_targets(self, source, edge_type):
        return self._counted(self.scores[edge_type, source], "target", source, edge_type)

    def score_sources(self, target, edge_type):
        return self._counted(self.scores.transpose(1, 2)[edge_type, target], "source", target, edge_type)

    def _counted(self, scores, side, node, edge_type):
        self.asked += [(side, *query) for query in zip(node.tolist(), edge_type.tolist(), strict=True)]
        self.shapes.append(tuple(scores.shape))
        return scores


def indexed(rows, num_nodes):
    source, kind, target = np.array(rows, np.int64).reshape(-1, 3).T
    return IndexedPairs(source, kind, target, num_nodes)


def ranks_by_hand(scores, asked, known, permitted):
    """Definition: one more than the better ones, and half of the equal ones, of those that are no known answers."""
    found = []
    known, num_nodes = {*known, *asked}, scores.shape[1]
    for s, k, t in asked:
        targets = [v for v in range(num_nodes) if permitted[1][k][v] and (s, k, v) not in known]
        sources = [u for u in range(num_nodes) if permitted[0][k][u] and (u, k, t) not in known]
        own, row, column = scores[k, s, t], scores[k, s, targets], scores[k, sources, t]
        found.append([1 + (other > own).sum() + (other == own).sum() / 2 for other in (row, column)])
    return np.array(found).T


NODES, KINDS = 7, 3
LINK = st.tuples(st.integers(0, NODES - 1), st.integers(0, KINDS - 1), st.integers(0, NODES - 1))


@given(
    asked=st.lists(LINK, min_size=1, max_size=12),
    known=st.lists(LINK, max_size=40),
    node_type=st.none() | st.lists(st.integers(0, 2), min_size=NODES, max_size=NODES),
    num_scores=st.sampled_from([1, 2, 5, 1000]),
    batch_size=st.none() | st.integers(1, 9),
    cells=st.sampled_from([1, 3 * NODES, 1 << 23]),
    seed=st.integers(0, 99),
)
def test_ranks_are_as_defined_for_any_batch_size(asked, known, node_type, num_scores, batch_size, cells, seed):
    values = np.append(np.random.default_rng(seed).normal(size=num_scores), -np.inf)
    scores = np.random.default_rng(seed + 1).choice(values, size=(KINDS, NODES, NODES)).astype(np.float32)
    permitted, ends = np.ones((2, KINDS, NODES), np.bool_), None
    if node_type is not None:
        types, every = np.array(node_type), indexed([*asked, *known], NODES)
        ends = PermittedEnds.seen(every.source, every.kind, every.target, KINDS, types)
        permitted = np.stack([ends.sources[:, types], ends.targets[:, types]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS", cells)
        patch.setattr(module, "BLOCK", min(cells, 2 * NODES))
        found = LinkRanking(indexed(asked, NODES), indexed(known, NODES), ends).ranks(Table(scores), batch_size)
    assert np.array_equal([found.target, found.source], ranks_by_hand(scores, asked, known, permitted))
    assert found.edge_type.tolist() == [kind for _, kind, _ in asked]


def test_a_query_of_several_links_is_scored_once():
    asked = [(0, 0, 1), (0, 0, 2), (3, 0, 1), (0, 1, 1)]
    table = Table(np.random.default_rng(0).normal(size=(2, 5, 5)))
    LinkRanking(indexed(asked, 5), indexed([], 5)).ranks(table, 2)
    assert sorted(table.asked) == [
        *(("source", 1, 0), ("source", 1, 1), ("source", 2, 0)),
        *(("target", 0, 0), ("target", 0, 1), ("target", 3, 0)),
    ]


class Largest(TorchDispatchMode):
    """Records the largest tensor that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numel = max(self.numel, result.numel())
        return result


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("batch_size", [None, 1000])
def test_no_tensor_has_more_cells_than_the_bound(monkeypatch, typed, batch_size):
    monkeypatch.setattr(module, "CELLS", 1000)
    generator = np.random.default_rng(0)
    asked = np.stack([generator.integers(3, size=400), np.zeros(400, np.int64), generator.integers(100, size=400)], 1)

    class Random:
        def score_targets(self, source, edge_type):
            assert len(source) * 100 <= 1000
            return torch.randn(len(source), 100)

        score_sources = score_targets

    links = indexed(asked, 100)
    ends = PermittedEnds.seen(links.source, links.kind, links.target, 1, np.arange(100) % 2) if typed else None
    ranking = LinkRanking(links, indexed([], 100), ends)
    with Largest() as largest:
        ranking.ranks(Random(), batch_size)
    assert 0 < largest.numel <= 1000  # 400 ranks and 300 known links are less


def test_progress_goes_up_to_one():
    shares: list[float] = []
    ranking = LinkRanking(indexed([(0, 0, 1), (1, 0, 2)], 3), indexed([], 3))
    ranking.ranks(Table(torch.zeros(1, 3, 3)), 1, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("where", [(0, 0, 2), (0, 2, 1)])
def test_a_score_that_is_nan_is_refused(where):
    scores = torch.zeros(1, 3, 3)
    scores[where] = torch.nan
    with pytest.raises(GatasError, match="NaN, which has no rank"):
        LinkRanking(indexed([(0, 0, 1)], 3), indexed([], 3)).ranks(Table(scores))


@pytest.mark.parametrize("scores", [torch.zeros(1, 3, 4), torch.zeros(1, 3, 3, dtype=torch.int64)])
def test_scores_of_another_shape_or_type_are_refused(scores):
    with pytest.raises(GatasError, match=r"expected floats of shape \(1, 3\)"):
        LinkRanking(indexed([(0, 0, 1)], 3), indexed([], 3)).ranks(Table(scores))


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def toy(**direction):
    """Edges 0→1, 0→2 and 3→0; 0→4 and 4→1 are held out, and 0→3 is a negative."""
    graph = Graph.from_edges([0, 0, 3], [1, 2, 0], num_nodes=5, edge_type_names=["knows"], **direction)
    splits = {
        "train": pairs((0, 0, 1, 1), (0, 0, 2, 1), (3, 0, 0, 1)),
        "valid": pairs((4, 0, 1, 1)),
        "test": pairs((0, 0, 4, 1), (0, 0, 3, 0)),
    }
    return Dataset.for_links(graph, splits, ["knows"])


def triples(links):
    return set(zip(links.source.tolist(), links.kind.tolist(), links.target.tolist(), strict=True))


def test_links_of_all_splits_and_edges_are_known():
    directed = {(0, 0, 1), (0, 0, 2), (3, 0, 0), (4, 0, 1), (0, 0, 4)}
    assert triples(known_links(toy())) == triples(known_links(toy(inverse=True))) == directed
    assert triples(known_links(toy(undirected=True))) == directed | {(t, k, s) for s, k, t in directed}


def test_edges_of_an_inverse_type_are_known_turned_around():
    graph = Graph.from_edges([0, 1], [1, 2], [0, 1], edge_type_names=["parent", "child"], inverse_of=[1, 0], num_nodes=4)
    splits = {"train": pairs((0, 0, 1, 1)), "test": pairs((3, 0, 2, 1), (2, 1, 0, 1))}
    both = Dataset.for_links(graph, splits, ["parent", "child"])
    assert triples(known_links(both)) == {
        *((0, 0, 1), (2, 0, 1), (3, 0, 2), (0, 0, 2)),
        *((1, 1, 0), (1, 1, 2), (2, 1, 3), (2, 1, 0)),
    }
    one = Dataset.for_links(graph, {"test": pairs((3, 0, 2, 1))}, ["parent"])
    assert triples(known_links(one)) == {(0, 0, 1), (2, 0, 1), (3, 0, 2)}


def test_links_of_undirected_data_are_filtered_in_both_directions():
    scores = np.array([[[9.0, 8, 7, 6, 5], *[[0.0] * 5] * 4]])
    # as targets of 0: 0 itself is better than 4, and 3 where 3→0 does not say 0→3
    assert LinkRanking.of_split(toy(inverse=True), "test").ranks(Table(scores)).target.tolist() == [3]
    assert LinkRanking.of_split(toy(undirected=True), "test").ranks(Table(scores)).target.tolist() == [2]


def test_answers_are_of_the_node_types_seen_at_that_end():
    #  people 0, 1, 2 like films 3, 4, 5; a person knows a person
    graph = Graph.from_edges([0, 1, 0], [3, 4, 1], [0, 0, 1], edge_type_names=["likes", "knows"], num_nodes=6)
    splits = {"train": pairs((0, 0, 3, 1), (1, 0, 4, 1), (0, 1, 1, 1)), "test": pairs((2, 0, 5, 1), (2, 1, 1, 1))}
    typed = Dataset.for_links(graph, splits, node_type=[0, 0, 0, 1, 1, 1], node_type_names=["person", "film"])
    scores = np.ones((2, 6, 6))  # of 3 people or films, all equal: rank 2, but for those who know 1 already
    found = LinkRanking.of_split(typed, "test").ranks(Table(scores))
    assert (found.target.tolist(), found.source.tolist()) == ([2, 2], [2, 1.5])
    untyped = LinkRanking.of_split(Dataset.for_links(graph, splits), "test").ranks(Table(scores))
    assert (untyped.target.tolist(), untyped.source.tolist()) == ([3.5, 3.5], [3.5, 3])


def test_a_split_without_positives_has_nothing_to_rank():
    dataset = toy()
    negatives = dataset.with_splits({**dataset.splits, "test": pairs((0, 0, 3, 0))})
    with pytest.raises(GatasError, match="'test' has no positives"):
        LinkRanking.of_split(negatives, "test")
    with pytest.raises(GatasError, match="no split 'tst'; it has train, valid, test"):
        LinkRanking.of_split(dataset, "tst")


def test_metrics_are_means_over_links_over_types_and_over_directions():
    ranks = Ranks(np.array([0, 0, 2]), np.array([1.0, 2, 4]), np.array([1.0, 10, 20]))
    found = ranking_metrics(ranks, ("a", "b", "c"))
    reciprocal_a, reciprocal_c = (1 + 1 / 2 + 1 + 1 / 10) / 4, (1 / 4 + 1 / 20) / 2
    assert found["mrr"] == approx((4 * reciprocal_a + 2 * reciprocal_c) / 6)
    assert [found[f"hits_at_{k}"] for k in (1, 3, 10)] == approx([2 / 6, 3 / 6, 5 / 6]) and found["count"] == 3
    assert found["macro"] == approx(
        {"mrr": (reciprocal_a + reciprocal_c) / 2, "hits_at_1": 1 / 4, "hits_at_3": 3 / 8, "hits_at_10": 3 / 4}
    )
    assert list(found["by_type"]) == ["a", "c"] and found["by_type"]["c"]["hits_at_10"] == 0.5
    assert found["by_direction"]["target"]["mrr"] == approx((1 + 1 / 2 + 1 / 4) / 3)
    assert found["by_direction"]["source"] == approx(
        {"mrr": (1 + 1 / 10 + 1 / 20) / 3, "hits_at_1": 1 / 3, "hits_at_3": 1 / 3, "hits_at_10": 2 / 3, "count": 3}
    )
