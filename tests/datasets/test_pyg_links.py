"""Links of PyTorch Geometric: edges held out by ratios, and the pairs of RandomLinkSplit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import RandomLinkSplit, ToUndirected

from gatas.datasets import Dataset
from gatas.datasets.pyg import to_pyg
from gatas.errors import GraphError

SIZE = 40
SOME = {"train": 0.6, "valid": 0.2, "test": 0.2}


def chords(*steps: int) -> torch.Tensor:
    """Edges from each node of a circle to those so many steps on."""
    nodes = torch.arange(SIZE)
    return torch.cat([torch.stack([nodes, (nodes + step) % SIZE]) for step in steps], dim=1)


def both_ways(edges: torch.Tensor) -> torch.Tensor:
    return torch.cat([edges, edges.flip(0)], dim=1)


def links(data: Any, **settings: Any) -> Dataset:
    return Dataset.from_pyg(data, task="link prediction", **{"ratios": SOME, **settings})


def asked(dataset, split, label=1):
    pairs = dataset.splits[split]
    rows = zip(pairs.source.tolist(), pairs.edge_type.tolist(), pairs.target.tolist(), pairs.label.tolist(), strict=True)
    return [(one, dataset.names[kind], other) for one, kind, other, found in rows if found == label]


def known(graph):
    names = graph.edge_type_names
    ends = zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True)
    return {(one, names[kind], other) for one, kind, other in ends}


def ends_of(rows):
    return {frozenset((one, other)) for one, _, other in rows}


def assert_nothing_is_given_away(dataset):
    """No held-out link joins two nodes that the graph joins, in either direction or under any type."""
    dataset.check_leaks(strict=True)
    joined = ends_of(known(dataset.graph))
    for split in ("valid", "test"):
        assert not ends_of(asked(dataset, split)) & joined
        assert not ends_of(asked(dataset, split)) & ends_of(asked(dataset, "train"))


def test_edges_of_a_plain_graph_are_held_out_by_ratios():
    data = Data(edge_index=chords(1), num_nodes=SIZE, x=torch.ones(SIZE, 2))
    dataset = links(data, name="circle")
    assert (dataset.task, dataset.name, dataset.names) == ("link prediction", "circle", ("0",))
    assert {split: len(asked(dataset, split)) for split in dataset.splits} == {"train": 24, "valid": 8, "test": 8}
    assert {split: len(asked(dataset, split, 0)) for split in dataset.splits} == {"train": 0, "valid": 8, "test": 8}
    every = [row for split in dataset.splits for row in asked(dataset, split)]
    assert {(one, other) for one, _, other in every} == set(map(tuple, chords(1).T.tolist()))
    assert dataset.graph.edge_type_names == ("0", "0⁻¹") and dataset.graph.num_edges == 48
    assert dataset.features is not None and dataset.features.shape == (SIZE, 2)
    assert_nothing_is_given_away(dataset)
    again, other = links(data), links(data, seed=1)
    assert asked(again, "test") == asked(dataset, "test") != asked(other, "test")


def test_of_a_symmetric_graph_both_directions_are_held_out_and_asked_for_once():
    dataset = links(Data(edge_index=both_ways(chords(1)), num_nodes=SIZE))
    assert dataset.graph.inverse_of == (0,) and dataset.graph.num_edges == 48
    assert {split: len(asked(dataset, split)) for split in dataset.splits} == {"train": 24, "valid": 8, "test": 8}
    assert_nothing_is_given_away(dataset)


@pytest.mark.parametrize(
    ("direction", "inverse_of", "num_edges"),
    [("inverse", (1, 0), 48), ("undirected", (0,), 48), ("as given", (-1,), 24)],
)
def test_edges_lead_back_as_is_asked_for(direction, inverse_of, num_edges):
    dataset = links(Data(edge_index=chords(1), num_nodes=SIZE), direction=direction)
    assert (dataset.graph.inverse_of, dataset.graph.num_edges) == (inverse_of, num_edges)


def test_weights_stay_with_the_edges_that_are_kept():
    data = Data(edge_index=chords(1), num_nodes=SIZE, edge_weight=1.0 + torch.arange(SIZE))
    graph = links(data, direction="as given").graph
    assert graph.weight is not None and graph.weight.tolist() == (graph.source + 1.0).tolist()


def typed_chords():
    return Data(edge_index=chords(1, 3), edge_type=torch.arange(2).repeat_interleave(SIZE), num_nodes=SIZE)


def test_links_of_several_edge_types_are_held_out_type_by_type():
    dataset = links(typed_chords())
    assert dataset.names == ("0", "1") and dataset.graph.edge_type_names == ("0", "1", "0⁻¹", "1⁻¹")
    for split, count in (("train", 24), ("valid", 8), ("test", 8)):
        for name in dataset.names:
            assert sum(kind == name for _, kind, _ in asked(dataset, split)) == count
    assert_nothing_is_given_away(dataset)


def test_only_links_of_the_types_asked_for_are_held_out():
    dataset = links(typed_chords(), link_types=["1"])
    assert dataset.names == ("1",) and np.bincount(dataset.graph.edge_type).tolist() == [40, 24, 40, 24]
    with pytest.raises(GraphError, match="'2' is not an edge type of the data; it has '0', '1'"):
        links(typed_chords(), link_types=["2"])


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("negatives", [False, True])
def test_the_pairs_of_random_link_split_are_the_splits(undirected, negatives):
    torch.manual_seed(0)
    edges = both_ways(chords(1, 3)) if undirected else chords(1, 3)
    data = Data(edge_index=edges, num_nodes=SIZE, x=torch.ones(SIZE, 1))
    parts = RandomLinkSplit(0.1, 0.2, is_undirected=undirected, add_negative_train_samples=negatives)(data)
    dataset = links(parts)
    for split, part in zip(("train", "valid", "test"), parts, strict=True):
        found = dataset.splits[split]
        assert found.source.tolist() == part.edge_label_index[0].tolist()
        assert found.target.tolist() == part.edge_label_index[1].tolist()
        assert found.label.tolist() == part.edge_label.int().tolist()
    assert len(asked(dataset, "train", 0)) == (56 if negatives else 0)
    assert dataset.graph.inverse_of == ((0,) if undirected else (1, 0))
    directed = [row for row in known(dataset.graph) if row[1] == "0"]
    assert sorted((one, other) for one, _, other in directed) == sorted(map(tuple, parts[0].edge_index.T.tolist()))
    assert_nothing_is_given_away(dataset)


def test_a_split_without_pairs_is_left_out():
    torch.manual_seed(0)
    parts = RandomLinkSplit(0.0, 0.25)(Data(edge_index=chords(1), num_nodes=SIZE))
    assert list(links(parts).splits) == ["train", "test"]


def test_pairs_of_one_graph_are_shared_out_by_ratios():
    #   asked for: 20 edges of the circle and 20 pairs that are no edges
    pairs = torch.cat([chords(1)[:, :20], chords(7)[:, 20:]], dim=1)
    label = torch.cat([torch.ones(20), torch.zeros(20)])
    dataset = links(Data(edge_index=chords(1), num_nodes=SIZE, edge_label_index=pairs, edge_label=label))
    every = [row for split in dataset.splits for row in (*asked(dataset, split), *asked(dataset, split, 0))]
    assert sorted((one, other) for one, _, other in every) == sorted(map(tuple, pairs.T.tolist()))
    held = ends_of(asked(dataset, "valid")) | ends_of(asked(dataset, "test"))
    assert ends_of(known(dataset.graph)) == {frozenset(edge) for edge in map(tuple, chords(1).T.tolist())} - held


def test_pairs_of_several_edge_types_say_their_type():
    data = typed_chords()
    data.edge_label_index, data.edge_label_type = chords(3)[:, :20], torch.ones(20).long()
    dataset = links(data)
    assert {kind for split in dataset.splits for _, kind, _ in asked(dataset, split)} == {"1"}
    assert {kind for split in links(data, link_types=["1"]).splits for _, kind, _ in asked(dataset, split)} == {"1"}
    del data.edge_label_type
    with pytest.raises(GraphError, match="several edge types, but its edge_label_index does not say of which type"):
        links(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_label_index": torch.tensor([[0], [SIZE]])}, "edge_label_index, edge 0: target is node 40"),
        ({"edge_label_index": torch.tensor([[-1], [0]])}, "edge_label_index, edge 0: source is -1"),
        (
            {"edge_label_index": chords(1), "edge_label": torch.ones(3)},
            "edge_label has shape (3,), but edge_label_index has 40",
        ),
        ({"edge_label_index": chords(1), "edge_label_type": torch.ones(3)}, "edge_label_type has 3 values for 40 pairs"),
        (
            {"edge_label_index": chords(1), "edge_label_type": torch.full((40,), 7)},
            "edge_label_type holds 7, which is not asked",
        ),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(change, message):
    data = typed_chords()
    count = change.get("edge_label_index", chords(1)).shape[1]
    data.update({"edge_label_index": chords(1), "edge_label_type": torch.zeros(count).long(), **change})
    with pytest.raises(GraphError) as error:
        links(data)
    assert message in str(error.value)


def plain(size=SIZE, **more: Any) -> Data:
    return Data(edge_index=chords(1), num_nodes=size, **more)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "for links, expected Data or HeteroData, or training, validation and test data of RandomLinkSplit"),
        ([plain()] * 4, "for links, expected Data or HeteroData"),
        ("edges.csv", "for links, expected Data or HeteroData"),
        ([plain(), plain()], "the valid data has no edge_label_index, so it asks for no links"),
        ([plain(), plain(SIZE + 1, edge_label_index=chords(1))], "have different nodes"),
    ],
)
def test_data_without_links_is_refused(data, message):
    with pytest.raises(GraphError, match=message):
        links(data)


def shop() -> HeteroData:
    data = HeteroData()
    data["person"].x, data["thing"].num_nodes = torch.ones(SIZE, 2), SIZE
    data["person", "buys", "thing"].edge_index = chords(1, 3)
    data["person", "knows", "person"].edge_index = chords(5)
    return data


def test_links_of_hetero_data_join_nodes_of_their_types():
    dataset = links(shop(), link_types=["person__buys__thing"])
    assert dataset.names == ("person__buys__thing",) and dataset.nodes.node_type_names == ("person", "thing")
    for split in dataset.splits:
        for label in (0, 1):
            assert all(one < SIZE <= other for one, _, other in asked(dataset, split, label))  # also of negatives
    assert len(asked(dataset, "test")) == 16
    assert_nothing_is_given_away(dataset)


def test_all_edge_types_of_hetero_data_are_asked_for_by_default():
    assert links(shop()).names == ("person__buys__thing", "person__knows__person")


def test_pairs_on_one_edge_type_of_hetero_data_are_of_this_type():
    data = shop()
    data["person", "buys", "thing"].edge_label_index = chords(1)
    dataset = links(data)
    assert dataset.names == ("person__buys__thing",)
    every = [(one, other - SIZE) for split in dataset.splits for one, _, other in asked(dataset, split)]
    assert sorted(every) == sorted(map(tuple, chords(1).T.tolist()))
    assert_nothing_is_given_away(dataset)


def test_pairs_on_several_edge_types_of_hetero_data_are_told_apart():
    data = shop()
    data["person", "buys", "thing"].edge_label_index = chords(1)
    data["person", "knows", "person"].edge_label_index = chords(5)
    dataset = links(data)
    assert dataset.names == ("person__buys__thing", "person__knows__person")
    every = [row for split in dataset.splits for row in asked(dataset, split)]
    assert all((other >= SIZE) == (kind == "person__buys__thing") for _, kind, other in every) and len(every) == 80


def test_a_pair_that_would_land_in_another_node_type_is_refused():
    data = shop()
    data["thing", "like", "thing"].edge_index = chords(2)
    data["person", "buys", "thing"].edge_label_index = torch.tensor([[SIZE + 1], [0]])
    with pytest.raises(GraphError, match=r"edge_label_index, edge 0: source is node 41, but there are 40 nodes"):
        links(data)


@pytest.mark.parametrize("negatives", [False, True])
def test_random_link_split_of_hetero_data_with_reverse_edges_gives_nothing_away(negatives):
    torch.manual_seed(0)
    both = ToUndirected(merge=False)(shop())
    transform = RandomLinkSplit(
        0.1,
        0.2,
        add_negative_train_samples=negatives,
        edge_types=[("person", "buys", "thing")],
        rev_edge_types=[("thing", "rev_buys", "person")],
    )
    parts = transform(both)
    dataset = links(parts)
    assert dataset.names == ("person__buys__thing",)
    for split, part in zip(("train", "valid", "test"), parts, strict=True):
        store, found = part["person", "buys", "thing"], dataset.splits[split]
        assert found.source.tolist() == store.edge_label_index[0].tolist()
        assert (found.target - SIZE).tolist() == store.edge_label_index[1].tolist()
        assert found.label.tolist() == store.edge_label.int().tolist()
    assert_nothing_is_given_away(dataset)


@pytest.mark.parametrize("direction", ["auto", "inverse", "as given"])
def test_reverse_edges_that_to_undirected_added_are_held_out_with_their_links(direction):
    plain_links, dataset = links(shop(), direction=direction), links(ToUndirected(merge=False)(shop()), direction=direction)
    assert dataset.names == ("person__buys__thing", "person__knows__person")
    assert all(asked(dataset, split) == asked(plain_links, split) for split in dataset.splits)
    assert_nothing_is_given_away(dataset)
    graph = dataset.graph
    if direction == "as given":
        assert graph.edge_type_names == (
            *("person__buys__thing", "person__knows__person"),
            *("thing__rev_buys__person", "person__rev_knows__person"),
        )
        assert graph.inverse_of == (2, 3, 0, 1) and graph.num_edges == 2 * plain_links.graph.num_edges
    else:
        assert known(graph) == known(plain_links.graph) and graph.inverse_of == (2, 3, 0, 1)


def test_a_reverse_type_may_be_asked_for_but_not_beside_its_original():
    both = ToUndirected(merge=False)(shop())
    dataset = links(both, link_types=["thing__rev_buys__person"])
    assert dataset.names == ("thing__rev_buys__person",)
    assert all(one >= SIZE > other for one, _, other in asked(dataset, "test"))
    assert_nothing_is_given_away(dataset)
    with pytest.raises(GraphError, match="list the same edges in opposite directions, so one gives links of the other away"):
        links(both, link_types=["person__buys__thing", "thing__rev_buys__person"])


def test_types_that_are_the_reverse_of_each_other_in_part_are_both_kept():
    data = shop()
    data["thing", "suits", "person"].edge_index = chords(1).flip(0)
    assert links(data).names == ("person__buys__thing", "person__knows__person", "thing__suits__person")


def test_links_go_out_beside_the_edges():
    dataset = links(typed_chords(), link_types=["1"])
    data = to_pyg(dataset)
    assert isinstance(data, Data)
    assert data.edge_label_index.tolist() == [dataset.splits["train"].source.tolist(), dataset.splits["train"].target.tolist()]
    assert data.test_edge_label.int().tolist() == dataset.splits["test"].label.tolist()
    assert set(data.valid_edge_label_type.tolist()) == {1}  # as edge_type numbers it


def test_links_of_hetero_data_go_out_beside_their_type():
    dataset = links(shop(), link_types=["person__buys__thing"])
    data = to_pyg(dataset)
    store, train = data["person", "buys", "thing"], dataset.splits["train"]
    assert store.edge_label_index.tolist() == [train.source.tolist(), (train.target - SIZE).tolist()]
    assert store.test_edge_label.int().tolist() == dataset.splits["test"].label.tolist()
    assert "edge_label_index" not in data["person", "knows", "person"]
    assert data["thing", "rev_buys", "person"].edge_index.shape == store.edge_index.shape
