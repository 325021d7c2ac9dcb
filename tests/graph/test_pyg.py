"""Graphs of PyTorch Geometric: edges, types and weights."""

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from gatas.errors import GatasWarning, GraphError
from gatas.graph.pyg import from_pyg

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


def listed(graph):
    return list(zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True))


def test_edges_types_and_weights_of_a_data_object_are_read():
    data = Data(
        x=torch.ones(3, 2, requires_grad=True),
        edge_index=EDGES,
        edge_type=torch.tensor([0, 1, 0]),
        edge_weight=torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
    )
    graph = from_pyg(data)
    assert listed(graph) == [(0, 0, 1), (1, 1, 2), (2, 0, 0)]
    assert graph.weight is not None and graph.weight.tolist() == [1, 2, 3]
    assert graph.inverse_of == (-1, -1)


@pytest.mark.parametrize(
    ("direction", "inverse_of", "edges"),
    [
        ({"inverse": True}, (1, 0), [(0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 0), (2, 0, 0), (2, 1, 1)]),
        ({"undirected": True}, (0,), [(0, 0, 1), (0, 0, 2), (1, 0, 0), (1, 0, 2), (2, 0, 0), (2, 0, 1)]),
    ],
)
def test_edges_lead_back_as_is_asked_for(direction, inverse_of, edges):
    graph = from_pyg(Data(edge_index=EDGES, num_nodes=3), **direction)
    assert listed(graph) == edges and graph.inverse_of == inverse_of


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
        (Data(), "the Data has neither nodes nor edges"),
        ([], "expected Data, HeteroData or a list of Data; a list came"),
        ([1], "expected Data, HeteroData or a list of Data"),
        (HeteroData(), "the HeteroData has no node types"),
    ],
)
def test_data_that_cannot_be_used_is_refused(data, message):
    with pytest.raises(GraphError) as error:
        from_pyg(data)
    assert message in str(error.value)


def test_data_without_edges_is_a_graph_of_isolated_nodes():
    assert from_pyg(Data(x=torch.ones(3, 1))).num_edges == 0


def test_several_graphs_stand_side_by_side():
    part = Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(2, 1), y=torch.tensor([0, 1]))
    lonely = Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(1, 1), y=torch.tensor([1]))
    for graph in (from_pyg([part, lonely, part]), from_pyg(Batch.from_data_list([part, lonely, part]))):
        assert listed(graph) == [(0, 0, 1), (3, 0, 4)]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Data(edge_index=torch.tensor([[2], [3]]), num_nodes=2), "graph 1, edge 0: source is node 2, but there are 2 nodes"),
        (Data(edge_index=torch.tensor([[-1], [-2]]), num_nodes=2), "graph 1, edge 0: source is -1"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, edge_weight=torch.ones(1)),
            "only some of the graphs or edge types have 'edge_weight'",
        ),
    ],
)
def test_an_edge_that_would_land_in_another_graph_is_refused(second, message):
    first = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(GraphError, match=message):
        from_pyg([first, second, first])


def library():
    #   author 0, 1 → paper 0, 1, 2 (writes);  paper 0 → paper 1 (cites)
    data = HeteroData()
    data["author"].x = torch.tensor([[1.0], [2.0]])
    data["paper"].num_nodes = 3
    data["venue"].num_nodes = 1
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 1], [0, 1, 2]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
    data["paper", "at", "venue"].edge_index = torch.empty(2, 0, dtype=torch.long)
    return data


def test_node_types_become_ranges_of_ids():
    graph = from_pyg(library())
    assert [graph.id_of(node) for node in range(6)] == ["author/0", "author/1", "paper/0", "paper/1", "paper/2", "venue/0"]
    assert graph.edge_type_names == ("author__writes__paper", "paper__cites__paper", "paper__at__venue")
    assert listed(graph) == [(0, 0, 2), (1, 0, 3), (1, 0, 4), (2, 1, 3)]


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
        (lambda data: data["author", "knows", "ghost"].update(edge_index=torch.tensor([[0], [0]])), "'ghost'"),
    ],
)  # fmt: skip
def test_hetero_data_that_would_be_misread_is_refused(change, message):
    data = library()
    change(data)
    with pytest.raises(GraphError) as error:
        from_pyg(data)
    assert message in str(error.value)


def test_weights_of_hetero_data_are_read():
    data = library()
    for triple, weights in zip(data.edge_types, ([1.0, 2.0, 3.0], [4.0], []), strict=True):
        data[triple].edge_attr = torch.tensor(weights)
    graph = from_pyg(data)
    assert graph.weight is not None and graph.weight.tolist() == [1, 2, 3, 4]
