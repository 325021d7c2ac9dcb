"""Data sets of PyTorch Geometric, in and out: features, labels and masks of nodes."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Batch, Data, HeteroData

from gatas.datasets import Dataset
from gatas.datasets.pyg import to_pyg
from gatas.datasets.saved import data_fingerprint
from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph
from gatas.graph.saved import graph_fingerprint

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])
TRAIN = torch.tensor([True, True, False])


def listed(graph):
    return list(zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True))


def labelled(**attributes: Any) -> Data:
    given = {"edge_index": EDGES, "num_nodes": 3, "y": torch.tensor([0, 1, 0]), "train_mask": TRAIN} | attributes
    return Data(**{name: value for name, value in given.items() if value is not None})


def read(data: Any, **settings: Any) -> Dataset:
    return Dataset.from_pyg(data, **{"direction": "as given", **settings})


def test_everything_a_data_object_holds_is_read():
    data = Data(
        x=torch.ones(3, 2, requires_grad=True),
        edge_index=EDGES,
        edge_type=torch.tensor([0, 1, 0]),
        edge_weight=torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
        y=torch.tensor([0, 1, 0]),
        train_mask=torch.tensor([True, True, False]),
        test_mask=torch.tensor([False, False, True]),
    )
    dataset = read(data, name="mine", class_names=["cat", "dog"])
    assert listed(dataset.graph) == [(0, 0, 1), (1, 1, 2), (2, 0, 0)]
    assert dataset.graph.weight is not None and dataset.graph.weight.tolist() == [1, 2, 3]
    assert dataset.node_targets.labels.tolist() == [0, 1, 0]
    assert {name: split.tolist() for name, split in dataset.splits.items()} == {"train": [0, 1], "test": [2]}
    assert isinstance(dataset.features, np.ndarray) and dataset.features.shape == (3, 2)
    assert (dataset.name, dataset.task, dataset.names) == ("mine", "node classification", ("cat", "dog"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (labelled(num_nodes=None, x=torch.full((3, 1), torch.nan)), "node 0: feature column 0 is nan"),
        (labelled(num_nodes=4, x=torch.ones(3, 1), y=torch.zeros(4).long(), train_mask=torch.ones(4).bool()),
         "features have 3 rows, but the graph has 4 nodes"),
        (labelled(y=torch.tensor([0, 1]), train_mask=None), "labels have shape (2,), but the graph has 3 nodes"),
        (labelled(y=torch.tensor([0, 1])), "labels have shape (2,), but the graph has 3 nodes"),
        (labelled(y=torch.tensor([0.5, 1, 2])), "labels have type float32"),
        (labelled(train_mask=torch.ones(3, 10).bool()), "train_mask has shape (3, 10)"),
        (labelled(train_mask=torch.tensor([5, 1, 0])), "train_mask holds other values"),
        (labelled(val_mask=torch.zeros(3).bool()), "the split 'valid' is empty"),
        (labelled(y=None), "own data: the data has no y, so no class can be learned. Set y, or task='link prediction'"),
        (labelled(batch=torch.tensor([0, 0, 1])), "the edge from node 1 to node 2 joins two graphs"),
        (Data(), "the Data has neither nodes nor edges"),
        ([], "expected Data, HeteroData or a list of Data; a list came"),
        ([1], "expected Data, HeteroData or a list of Data"),
        (HeteroData(), "the HeteroData has no node types"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used_is_refused(data, message):
    with pytest.raises(GraphError) as error:
        read(data)
    assert message in str(error.value)


def test_link_types_are_for_links():
    with pytest.raises(GraphError, match="link_types was given, which is for link prediction"):
        read(labelled(), link_types=["0"])


@pytest.mark.parametrize("labels", [torch.tensor([1]), torch.tensor(1)])
def test_a_label_of_the_whole_graph_is_left_with_a_warning(labels):
    with (
        pytest.warns(GatasWarning, match="y labels 1 graphs, not their nodes"),
        pytest.raises(GraphError, match="the data has no y"),
    ):
        read(labelled(y=labels))


def test_labels_in_one_column_are_classes_and_in_several_are_sets():
    everyone = torch.ones(3).bool()
    one = read(labelled(y=torch.tensor([[0], [2], [1]]), train_mask=everyone))
    several = read(labelled(y=torch.tensor([[0.0, 1], [1, 1], [0, 0]]), train_mask=everyone))
    assert (one.task, one.node_targets.labels.tolist()) == ("node classification", [0, 2, 1])
    assert several.task == "multi-label node classification"
    assert several.node_targets.labels.tolist() == [[0, 1], [1, 1], [0, 0]]


def test_sparse_features_are_filled_up():
    features = read(labelled(x=torch.eye(3).to_sparse())).features
    assert isinstance(features, np.ndarray) and features.tolist() == np.eye(3).tolist()


def test_features_that_are_a_vector_are_one_column():
    features = read(labelled(x=torch.tensor([1.0, 2.0, 3.0]))).features
    assert isinstance(features, np.ndarray) and features.tolist() == [[1], [2], [3]]


def test_several_graphs_stand_side_by_side():
    everyone = torch.tensor([True, True])
    part = Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 1), y=torch.tensor([0, 1]), train_mask=everyone)
    lonely = Data(
        edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(1, 1), y=torch.tensor([1]), train_mask=everyone[:1]
    )
    for dataset in (read([part, lonely, part]), read(Batch.from_data_list([part, lonely, part]))):
        assert listed(dataset.graph) == [(0, 0, 1), (3, 0, 4)]
        assert dataset.nodes.graph_id is not None and dataset.nodes.graph_id.tolist() == [0, 0, 1, 2, 2]
        assert dataset.nodes.num_graphs == 3
        assert dataset.node_targets.labels.tolist() == [0, 1, 1, 0, 1]


def test_features_that_only_some_graphs_have_are_refused():
    with pytest.raises(GraphError, match="only some of the graphs or edge types have 'x'"):
        read([labelled(), labelled(x=torch.ones(3, 1)), labelled()])


def test_graphs_with_features_of_different_widths_are_refused():
    parts = [labelled(x=torch.ones(3, width)) for width in (1, 2)]
    with pytest.raises(GraphError, match=r"x differs in width between the graphs: \(3, 1\), \(3, 2\)"):
        read(parts)


def test_splits_are_drawn_by_ratios_where_there_are_no_masks():
    ring = torch.stack([torch.arange(20), (torch.arange(20) + 1) % 20])
    data = Data(edge_index=ring, num_nodes=20, y=torch.arange(20) % 2)
    drawn = [read(data, ratios={"train": 0.5, "valid": 0.2, "test": 0.3}, seed=seed).splits for seed in (0, 0, 1)]
    assert {name: len(nodes) for name, nodes in drawn[0].items()} == {"train": 10, "valid": 4, "test": 6}
    assert drawn[0]["train"].tolist() == drawn[1]["train"].tolist() != drawn[2]["train"].tolist()


def test_nodes_without_a_label_are_drawn_for_no_split():
    data = Data(edge_index=EDGES, num_nodes=6, y=torch.tensor([0, -1, 1, 0, -1, 1]))
    splits = read(data, ratios={"train": 0.5, "valid": 0.0, "test": 0.5}).splits
    assert not {1, 4} & {node for nodes in splits.values() for node in nodes.tolist()}


SYMMETRIC = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(
    ("edges", "direction", "inverse_of", "num_edges"),
    [
        (SYMMETRIC, "auto", (0,), 4),
        (EDGES, "auto", (1, 0), 6),
        (EDGES, "inverse", (1, 0), 6),
        (EDGES, "undirected", (0,), 6),
        (EDGES, "as given", (-1,), 3),
        (SYMMETRIC, "as given", (-1,), 4),
        (SYMMETRIC, "inverse", (1, 0), 8),
    ],
)
def test_edges_lead_back_as_is_asked_for(edges, direction, inverse_of, num_edges):
    graph = Dataset.from_pyg(labelled(edge_index=edges), direction=direction).graph
    assert (graph.inverse_of, graph.num_edges) == (inverse_of, num_edges)


def test_edges_lead_back_unless_another_direction_is_chosen():
    assert Dataset.from_pyg(labelled()).graph.edge_type_names == ("0", "0⁻¹")


def library():
    #   author 0, 1 → paper 0, 1, 2 (writes);  paper 0 → paper 1 (cites);  venues without features
    data = HeteroData()
    data["author"].x = torch.tensor([[1.0], [2.0]])
    data["paper"].x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    data["paper"].y = torch.tensor([0, 1, 1])
    data["paper"].train_mask = torch.tensor([True, True, False])
    data["venue"].num_nodes = 1
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 1], [0, 1, 2]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
    data["paper", "at", "venue"].edge_index = torch.empty(2, 0, dtype=torch.long)
    return data


def test_node_types_become_ranges_of_nodes_with_their_labels_and_masks():
    dataset = read(library())
    assert [dataset.graph.id_of(node) for node in (0, 2, 5)] == ["author/0", "paper/0", "venue/0"]
    assert dataset.nodes.node_type is not None and dataset.nodes.node_type.tolist() == [0, 0, 1, 1, 1, 2]
    assert dataset.nodes.node_type_names == ("author", "paper", "venue")
    assert dataset.node_targets.labels.tolist() == [-1, -1, 0, 1, 1, -1]
    assert dataset.splits["train"].tolist() == [2, 3]


def test_features_of_different_widths_get_columns_of_their_own():
    features = read(library()).features
    assert isinstance(features, sparse.csr_array)
    assert features.toarray().tolist() == [[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool])
def test_features_of_any_numeric_type_are_taken_per_node_type(dtype):
    data = library()
    data["author"].x = data["author"].x.to(dtype)
    features = read(data).features
    assert isinstance(features, sparse.csr_array) and features.dtype == np.float32


def test_features_of_one_width_are_stacked_and_zero_where_there_are_none():
    data = library()
    data["author"].x = torch.ones(2, 2)
    features = read(data).features
    assert isinstance(features, np.ndarray) and features[5].tolist() == [0, 0] and features.shape == (6, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["paper"].update(y=torch.tensor([0.7, 1.2, 0.0])), "labels have type float32"),
        (lambda data: data["paper"].update(y=torch.tensor([0, 1])), "y of node type 'paper' has 2 rows for 3 nodes"),
        (lambda data: data["author"].update(y=torch.tensor([[0, 1], [1, 0]])), "y differs in width between the node types"),
        (lambda data: data["paper"].update(train_mask=torch.ones(3, 2).bool()), "train_mask has shape (3, 2); expected (3,)"),
        (lambda data: data["author"].update(train_mask=torch.ones(2).bool()), "split 'train': node 'author/0' has no label"),
        (lambda data: data["author"].update(x=torch.tensor([[1.0], [torch.inf]])), "node author/1: feature column 0 is inf"),
        (lambda data: data["author"].update(num_nodes=3), "features have 2 rows, but the graph has 3 nodes"),
    ],
)
def test_hetero_data_that_would_be_misread_is_refused(change, message):
    data = library()
    change(data)
    with pytest.raises(GraphError) as error:
        read(data)
    assert message in str(error.value)


def test_labels_on_two_node_types_are_counted():
    data = library()
    data["author"].y = torch.tensor([0, 1])
    with pytest.warns(GatasWarning, match=r"2 node types have labels \(author, paper\)"):
        read(data)


def full_dataset():
    graph = Graph.from_edges([0, 1, 2], [1, 0, 3], [0, 1, 1], weight=[0.5, 1, 2])
    splits = {"train": np.array([0, 1]), "valid": np.array([3])}
    return Dataset.for_nodes(
        graph, np.array([0, 1, -1, 1]), splits, features=np.eye(4, dtype=np.float32), graph_id=[0, 0, 1, 1]
    )


def test_a_data_set_without_node_types_survives_a_round_trip():
    data = to_pyg(full_dataset())
    assert isinstance(data, Data)
    again = read(data)
    assert graph_fingerprint(again.graph) == graph_fingerprint(full_dataset().graph)
    assert data_fingerprint(again) == data_fingerprint(full_dataset())


def test_a_graph_alone_goes_out_without_features_and_labels():
    data = to_pyg(full_dataset().graph)
    assert isinstance(data, Data) and "x" not in data and "y" not in data and "batch" not in data
    assert data.edge_type.tolist() == [0, 1, 1] and data.edge_weight.tolist() == [0.5, 1, 2] and data.num_nodes == 4


@pytest.mark.parametrize("inverse", [False, True])
def test_a_data_set_with_node_types_survives_a_round_trip(inverse):
    dataset = read(library(), direction="inverse" if inverse else "as given")
    data = to_pyg(dataset)
    assert isinstance(data, HeteroData)
    again = read(data)
    assert again.graph.num_edge_types == dataset.graph.num_edge_types  # also the type without edges
    assert sorted((i, j) for i, _, j in listed(again.graph)) == sorted((i, j) for i, _, j in listed(dataset.graph))
    assert again.node_targets.labels.tolist() == dataset.node_targets.labels.tolist()
    assert again.splits["train"].tolist() == dataset.splits["train"].tolist()
    assert ("paper", "cites", "paper") in data.edge_types
    assert (("paper", "rev_cites", "paper") in data.edge_types) == inverse
    assert (("paper", "rev_writes", "author") in data.edge_types) == inverse
    assert (("venue", "rev_at", "paper") in data.edge_types) == inverse


def test_what_goes_out_can_be_changed_without_changing_the_data_set():
    dataset = full_dataset()
    before = graph_fingerprint(dataset.graph), data_fingerprint(dataset)
    data = to_pyg(dataset)
    for name in ("edge_index", "edge_type", "edge_weight", "x", "y", "batch", "train_mask"):
        data[name][:] = 0
    assert (graph_fingerprint(dataset.graph), data_fingerprint(dataset)) == before
