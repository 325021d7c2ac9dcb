"""Graphs of PyTorch Geometric, in and out."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Batch, Data, HeteroData

from gatas.errors import GatasWarning, GraphError
from gatas.graph import Graph, NodeTable
from gatas.graph.pyg import from_pyg, to_pyg
from gatas.graph.saved import graph_fingerprint

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


def listed(graph):
    return list(zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True))


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
    graph = from_pyg(data)
    assert listed(graph) == [(0, 0, 1), (1, 1, 2), (2, 0, 0)]
    assert graph.weight is not None and graph.weight.tolist() == [1, 2, 3]
    assert graph.nodes.labels is not None and graph.nodes.labels.tolist() == [0, 1, 0]
    assert {name: split.tolist() for name, split in graph.nodes.splits.items()} == {"train": [0, 1], "test": [2]}
    assert isinstance(graph.nodes.features, np.ndarray) and graph.nodes.features.shape == (3, 2)


@pytest.mark.parametrize(
    ("attributes", "weight"),
    [
        ({"edge_attr": None}, None),
        ({}, None),
        ({"edge_attr": torch.tensor([1.0, 2.0, 3.0])}, [1, 2, 3]),
        ({"edge_attr": torch.tensor([[1.0], [2.0], [3.0]])}, [1, 2, 3]),
        ({"edge_weight": torch.tensor([1, 2, 3])}, [1, 2, 3]),
    ],
)
def test_weights_come_from_edge_weight_or_one_column_of_edge_attr(attributes, weight):
    graph = from_pyg(Data(edge_index=EDGES, num_nodes=3, **attributes))
    assert (None if graph.weight is None else graph.weight.tolist()) == weight


def test_edge_attr_of_several_columns_is_left_with_a_warning():
    with pytest.warns(GatasWarning, match="edge_attr has 4 columns and was not used"):
        assert from_pyg(Data(edge_index=EDGES, num_nodes=3, edge_attr=torch.ones(3, 4))).weight is None


def adjacency(values, layout, *, repeat=1):
    #   adj_t[target, source]
    index = torch.stack([EDGES[1], EDGES[0]]).repeat(1, repeat)
    matrix = torch.sparse_coo_tensor(index, torch.tensor(values).repeat(repeat), (3, 3), check_invariants=True)
    if layout == "uncoalesced":
        return matrix
    return {"coo": matrix.coalesce, "csr": matrix.to_sparse_csr, "csc": matrix.to_sparse_csc}[layout]()


@pytest.mark.filterwarnings("ignore:Sparse (CS[RC] tensor support is in beta|invariant checks are implicitly disabled)")
@pytest.mark.parametrize("layout", ["coo", "uncoalesced", "csr", "csc"])
def test_a_sparse_adjacency_gives_edges_and_its_values_are_weights_unless_all_one(layout):
    plain = from_pyg(Data(adj_t=adjacency([1.0, 1.0, 1.0], layout), num_nodes=3))
    assert listed(plain) == [(0, 0, 1), (1, 0, 2), (2, 0, 0)] and plain.weight is None
    weighted = from_pyg(Data(adj_t=adjacency([1.0, 2.0, 3.0], layout), num_nodes=3))
    assert weighted.weight is not None and weighted.weight.tolist() == [1, 2, 3]


def test_repeats_in_an_uncoalesced_adjacency_collapse_as_repeated_edges_do():
    graph = from_pyg(Data(adj_t=adjacency([1.0, 1.0, 1.0], "uncoalesced", repeat=2), num_nodes=3))
    assert (graph.num_edges, graph.num_repeated, graph.weight) == (3, 3, None)


class SparseTensor:
    """Stands for torch_sparse's."""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(adj_t=SparseTensor(), num_nodes=3), "adj_t is a SparseTensor; expected a torch sparse tensor"),
        (Data(adj_t=torch.eye(3), num_nodes=3), "adj_t is a dense tensor"),
        (Data(edge_index=EDGES, num_nodes=2), "edge 2: source is node 2, but there are 2 nodes (0 to 1). Set num_nodes=3"),
        (Data(edge_index=-EDGES, num_nodes=3), "edge 1: source is -1"),
        (Data(edge_index=EDGES.float(), num_nodes=3), "of type float32; expected integers"),
        (Data(edge_index=EDGES.bool(), num_nodes=3), "of type bool; expected integers"),
        (Data(edge_index=EDGES.T, num_nodes=3), "edge_index has shape (3, 2); expected (2, number of edges)"),
        (Data(edge_index=EDGES, num_nodes=3, edge_type=torch.tensor([0.0, 1.0, 2.0])), "edge_type is 0.0, of type float32"),
        (Data(edge_index=EDGES, num_nodes=3, edge_weight=torch.ones(2)), "weight has 2 values, but source has 3"),
        (Data(edge_index=EDGES, x=torch.full((3, 1), torch.nan)), "node 0: feature column 0 is nan"),
        (Data(edge_index=EDGES, num_nodes=4, x=torch.ones(3, 1)), "features have 3 rows, but the graph has 4 nodes"),
        (Data(edge_index=EDGES, num_nodes=3, y=torch.tensor([0, 1])), "labels have shape (2,), but the graph has 3 nodes"),
        (Data(edge_index=EDGES, num_nodes=3, y=torch.tensor([0.5, 1, 2])), "labels have type float32"),
        (Data(edge_index=EDGES, num_nodes=3, train_mask=torch.ones(3, 10).bool()), "train_mask has shape (3, 10)"),
        (Data(edge_index=EDGES, num_nodes=3, train_mask=torch.tensor([5, 1, 0])), "train_mask holds other values"),
        (Data(edge_index=EDGES, num_nodes=3, val_mask=torch.zeros(3).bool()), "the split 'valid' is empty"),
        (Data(), "the Data has neither nodes nor edges"),
        ([], "from_pyg takes Data, HeteroData or a list of Data; a list came"),
        ([1], "from_pyg takes Data"),
        (HeteroData(), "the HeteroData has no node types"),
    ],
)
def test_data_that_cannot_be_used_is_refused(data, message):
    with pytest.raises(GraphError) as error:
        from_pyg(data)
    assert message in str(error.value)


def test_data_without_edges_is_a_graph_of_isolated_nodes():
    assert from_pyg(Data(x=torch.ones(3, 1))).num_edges == 0


@pytest.mark.parametrize("labels", [torch.tensor([1]), torch.tensor(1)])
def test_a_label_of_the_whole_graph_is_left_with_a_warning(labels):
    with pytest.warns(GatasWarning, match="y labels 1 graphs, not their nodes"):
        assert from_pyg(Data(edge_index=EDGES, num_nodes=3, y=labels)).nodes.labels is None


def test_labels_in_one_column_are_classes_and_in_several_are_sets():
    one = from_pyg(Data(edge_index=EDGES, num_nodes=3, y=torch.tensor([[0], [2], [1]]))).nodes.labels
    several = from_pyg(Data(edge_index=EDGES, num_nodes=3, y=torch.tensor([[0.0, 1], [1, 1], [0, 0]]))).nodes.labels
    assert one is not None and one.tolist() == [0, 2, 1]
    assert several is not None and several.tolist() == [[0, 1], [1, 1], [0, 0]]


def test_sparse_features_are_filled_up():
    features = from_pyg(Data(edge_index=EDGES, x=torch.eye(3).to_sparse())).nodes.features
    assert isinstance(features, np.ndarray) and features.tolist() == np.eye(3).tolist()


def test_several_graphs_stand_side_by_side():
    part = Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 1), y=torch.tensor([0, 1]))
    lonely = Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(1, 1), y=torch.tensor([1]))
    for graph in (from_pyg([part, lonely, part]), from_pyg(Batch.from_data_list([part, lonely, part]))):
        assert listed(graph) == [(0, 0, 1), (3, 0, 4)]
        assert graph.graph_id is not None and graph.graph_id.tolist() == [0, 0, 1, 2, 2]
        assert graph.nodes.labels is not None and graph.nodes.labels.tolist() == [0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Data(edge_index=torch.tensor([[2], [3]]), num_nodes=2), "graph 1, edge 0: source is node 2, but there are 2 nodes"),
        (Data(edge_index=torch.tensor([[-1], [-2]]), num_nodes=2), "graph 1, edge 0: source is -1"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, x=torch.ones(2, 1)),
            "only some of the graphs or edge types have 'x'",
        ),
    ],
)
def test_an_edge_that_would_land_in_another_graph_is_refused(second, message):
    first = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(GraphError, match=message):
        from_pyg([first, second, first])


def test_graphs_with_features_of_different_widths_are_refused():
    parts = [Data(x=torch.ones(2, width), edge_index=torch.tensor([[0], [1]])) for width in (1, 2)]
    with pytest.raises(GraphError, match=r"x differs in width between the graphs: \(2, 1\), \(2, 2\)"):
        from_pyg(parts)


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


def test_node_types_become_ranges_of_named_nodes():
    graph = from_pyg(library())
    assert [graph.name(node) for node in range(6)] == ["author/0", "author/1", "paper/0", "paper/1", "paper/2", "venue/0"]
    assert graph.edge_type_names == ("author__writes__paper", "paper__cites__paper", "paper__at__venue")
    assert listed(graph) == [(0, 0, 2), (1, 0, 3), (1, 0, 4), (2, 1, 3)]
    assert graph.nodes.node_type is not None and graph.nodes.node_type.tolist() == [0, 0, 1, 1, 1, 2]
    assert graph.nodes.labels is not None and graph.nodes.labels.tolist() == [-1, -1, 0, 1, 1, -1]
    assert graph.nodes.splits["train"].tolist() == [2, 3]


def test_features_of_different_widths_get_columns_of_their_own():
    features = from_pyg(library()).nodes.features
    assert isinstance(features, sparse.csr_array)
    assert features.toarray().tolist() == [[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool])
def test_features_of_any_numeric_type_are_taken_per_node_type(dtype):
    data = library()
    data["author"].x = data["author"].x.to(dtype)
    features = from_pyg(data).nodes.features
    assert isinstance(features, sparse.csr_array) and features.dtype == np.float32


def test_features_of_one_width_are_stacked_and_zero_where_there_are_none():
    data = library()
    data["author"].x = torch.ones(2, 2)
    features = from_pyg(data).nodes.features
    assert isinstance(features, np.ndarray) and features[5].tolist() == [0, 0] and features.shape == (6, 2)


def _no_count(data):
    del data["venue"].num_nodes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_no_count, "the node type 'venue' has neither x nor num_nodes. Set data['venue'].num_nodes"),
        (lambda data: data["author", "writes", "paper"].update(edge_index=torch.tensor([[2], [0]])),
         "edge type ('author', 'writes', 'paper'), edge 0: source is node 2, but there are 2 nodes"),
        (lambda data: data["author", "writes", "paper"].update(edge_index=torch.tensor([[0], [-1]])), "target is -1"),
        (lambda data: data["paper", "cites", "paper"].update(edge_weight=torch.ones(1)), "only some of the graphs"),
        (lambda data: data["paper"].update(y=torch.tensor([0.7, 1.2, 0.0])), "labels have type float32"),
        (lambda data: data["author"].update(y=torch.tensor([[0, 1], [1, 0]])), "y differs in width between the node types"),
        (lambda data: data["paper"].update(train_mask=torch.ones(3, 2).bool()), "train_mask has shape (3, 2); expected (3,)"),
        (lambda data: data["author"].update(x=torch.tensor([[1.0], [torch.inf]])), "node author/1: feature column 0 is inf"),
        (lambda data: data["author"].update(num_nodes=3), "features have 2 rows, but the graph has 3 nodes"),
        (lambda data: data["author", "knows", "ghost"].update(edge_index=torch.tensor([[0], [0]])), "'ghost'"),
    ],
)  # fmt: skip
def test_hetero_data_that_would_be_misread_is_refused(change, message):
    data = library()
    change(data)
    with pytest.raises(GraphError) as error:
        from_pyg(data)
    assert message in str(error.value)


def test_labels_on_two_node_types_are_counted():
    data = library()
    data["author"].y = torch.tensor([0, 1])
    with pytest.warns(GatasWarning, match=r"2 node types have labels \(author, paper\)"):
        from_pyg(data)


def test_weights_of_hetero_data_are_read():
    data = library()
    for triple, weights in zip(data.edge_types, ([1.0, 2.0, 3.0], [4.0], []), strict=True):
        data[triple].edge_attr = torch.tensor(weights)
    graph = from_pyg(data)
    assert graph.weight is not None and graph.weight.tolist() == [1, 2, 3, 4]


def full_graph():
    nodes = NodeTable(
        4,
        features=np.eye(4, dtype=np.float32),
        labels=np.array([0, 1, -1, 1]),
        splits={"train": np.array([0, 1]), "valid": np.array([3])},
    )
    return Graph.from_edges([0, 1, 2], [1, 0, 3], [0, 1, 1], weight=[0.5, 1, 2], graph_id=[0, 0, 1, 1], nodes=nodes)


def test_a_graph_without_node_types_survives_a_round_trip():
    data = to_pyg(full_graph())
    assert isinstance(data, Data)
    assert graph_fingerprint(from_pyg(data)) == graph_fingerprint(full_graph())


@pytest.mark.parametrize("inverse", [False, True])
def test_a_graph_with_node_types_survives_a_round_trip(inverse):
    graph = from_pyg(library(), inverse=inverse)
    data = to_pyg(graph)
    assert isinstance(data, HeteroData)
    again = from_pyg(data)
    assert again.num_edge_types == graph.num_edge_types  # also the type without edges
    assert sorted((i, j) for i, _, j in listed(again)) == sorted((i, j) for i, _, j in listed(graph))
    assert ("paper", "cites", "paper") in data.edge_types
    assert (("paper", "cites⁻¹", "paper") in data.edge_types) == inverse


def test_what_goes_out_can_be_changed_without_changing_the_graph():
    graph = full_graph()
    before = graph_fingerprint(graph)
    data = to_pyg(graph)
    for name in ("edge_index", "edge_type", "edge_weight", "x", "y", "batch", "train_mask"):
        data[name][:] = 0
    assert graph_fingerprint(graph) == before
