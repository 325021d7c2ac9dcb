"""What the data says of nodes, and what lies between two of them."""

import pytest

from gatas.serving.loaded_model import LoadedModel
from tests.inference.conftest import trained
from tests.serving.conftest import ready
from tests.tasks.toys import classifier, heights, labelled_graphs, regressor


def node(client, one, top=50):
    (found,) = client.post("/v1/nodes/data", json={"ids": [one], "top": top}).json()["nodes"]
    return found


def test_columns_are_those_of_the_table_by_type_of_node(shop_client):
    customer, thing = node(shop_client, "c3"), node(shop_client, "t4")
    assert (customer["type"], customer["labels"], customer["columns"]) == ("customer", ["y"], {"age": 23.0, "town": "rome"})
    assert (thing["type"], thing["labels"], thing["split"], thing["columns"]) == ("thing", None, None, {"colour": "red"})
    assert customer["split"] in ("train", "valid", "test") and customer["num_columns"] == 2


def test_edges_have_types_and_weights(shop_client):
    found = node(shop_client, "c3")
    edges = [(one["type"], one["node"], one["weight"], one["in_graph"], one["split"]) for one in found["edges"]]
    assert edges == [("buys", "t3", 6.0, True, None)] and found["num_edges"] == 1


def test_features_without_a_table_are_known_by_their_place(camp_client, camp_predictor):
    found = node(camp_client, "a0", top=3)
    features = camp_predictor.dataset.features[0]
    assert list(found["columns"]) == ["feature 0", "feature 1", "feature 2"] and found["num_columns"] == 5
    assert found["columns"]["feature 1"] == pytest.approx(float(features[1]), rel=1e-5)
    assert (found["labels"], found["split"], len(found["edges"])) == (["even"], "train", 3) and found["num_edges"] > 3


def test_links_are_marked_by_what_was_trained_on_and_what_was_held_out(like_client):
    edges = {(one["type"], one["node"]): (one["in_graph"], one["split"]) for one in node(like_client, 0)["edges"]}
    assert edges == {
        ("likes", 2): (False, "valid"),
        ("likes", 1): (True, "train"),
        ("knows", 6): (True, "train"),
        ("likes⁻¹", 10): (True, "train"),
        ("likes⁻¹", 11): (True, "train"),
    }
    assert next(iter(node(like_client, 8)["edges"])) == {
        "type": "likes⁻¹", "node": 6, "weight": None, "in_graph": False, "split": "test",
    }  # fmt: skip
    assert node(like_client, 0, top=1)["num_edges"] == 5


def test_numbers_and_any_number_of_labels_are_told():
    dataset = heights()
    with ready(LoadedModel(trained(regressor(dataset), dataset).predictor, "off")) as client:
        found = node(client, 0)
    assert found["values"] == [pytest.approx(dataset.number_targets.values[0, 0]), None] and found["labels"] is None
    dataset = labelled_graphs()
    with ready(LoadedModel(trained(classifier(dataset), dataset).predictor, "off")) as client:
        labels = dataset.node_targets.labels
        assert node(client, 0)["labels"] == [name for name, own in zip("abc", labels[0], strict=True) if own]


def test_without_rows_only_labels_are_told(camp_client):
    found = node(camp_client, "a1", top=0)
    assert (found["labels"], found["edges"], found["num_edges"], found["columns"]) == (["odd"], [], None, {})


def test_too_many_rows_are_refused(camp_client):
    answer = camp_client.post("/v1/nodes/data", json={"ids": ["a1"] * 20, "top": 1000})
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many")
    assert camp_client.post("/v1/nodes/data", json={"ids": ["nobody"]}).json()["code"] == "unknown_id"


def test_shared_neighbours_are_those_of_the_graph(camp_client, camp_predictor):
    graph = camp_predictor.dataset.graph
    near = [set(graph.neighbour[graph.indptr[one] : graph.indptr[one + 1]].tolist()) for one in (0, 2)]
    shared = sorted((near[0] & near[1]) - {0, 2})
    found = camp_client.post("/v1/between", json={"source": "a0", "target": "a2", "top": 50}).json()
    assert found["shared_neighbours"] == [f"a{one}" for one in shared] and found["num_shared_neighbours"] == len(shared)
    assert (found["num_walks"], found["walks"]) == (None, [])


def test_walks_of_a_row_go_over_its_path(like_client):
    # 0 likes 1 likes 2, and 0 knows 6
    asked = {"source": 0, "target": 2, "relations": ["likes", "likes"]}
    found = like_client.post("/v1/between", json=asked).json()
    assert found["walks"] == [{"nodes": [0, 1, 2], "share": 1.0}] and found["num_walks"] == 1
    assert found["between"] == [{"node": 1, "step": 1, "share": 1.0}] and found["num_between"] == 1
    none = like_client.post("/v1/between", json={**asked, "relations": ["knows", "knows"]}).json()
    assert (none["num_walks"], none["walks"], none["num_between"]) == (0, [], 0)


def test_paths_of_unknown_types_and_of_many_steps_are_refused(like_client):
    asked = {"source": 0, "target": 2}
    wrong = like_client.post("/v1/between", json={**asked, "relations": ["hates"]})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "unknown_type")
    long = like_client.post("/v1/between", json={**asked, "relations": ["likes"] * 9})
    assert (long.status_code, long.json()["code"]) == (422, "too_many")
