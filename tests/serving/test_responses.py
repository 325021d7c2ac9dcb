"""Over HTTP comes what the model itself says."""

import numpy as np
import pytest
from pydantic import BaseModel

import gatas
from gatas.inference import Predictor
from gatas.serving import app, responses
from gatas.serving.loaded_model import LoadedModel
from tests.inference.conftest import trained
from tests.inference.test_explain_link import by_parts
from tests.inference.test_link_parts import model_of, shop
from tests.serving.conftest import ready
from tests.tasks.toys import camps, classifier, labelled_graphs

DESCRIBED: dict[str, type[BaseModel]] = {
    "/v1/embed": responses.EmbedResponse,
    "/v1/predict": responses.PredictResponse,
    "/v1/links": responses.LinksResponse,
    "/v1/links/rank": responses.LinksResponse,
    "/v1/links/likeliest": responses.LinksResponse,
    "/v1/explain": responses.ExplainResponse,
    "/v1/neighbours": responses.NeighboursResponse,
}


def post(client, path, **question):
    """The answer, which is as it is described, no more and no less."""
    answer = client.post(path, json=question)
    assert answer.status_code == 200, answer.text
    assert DESCRIBED[path].model_validate(answer.json()).model_dump() == answer.json()
    return answer.json()


NEW = {"ids": ["zoe", "yan"], "features": [[1, 0, 0, 0, 0], [3.5, 0, 1, 0, 0]], "edges": [
    {"source": "zoe", "target": "a3"}, {"source": "yan", "target": "zoe"}]}  # fmt: skip
LISTED = (["zoe", "yan"], ["a3", "zoe"])


def test_embeddings_are_the_models_to_the_bit(camp_client, camp_predictor):
    found = post(camp_client, "/v1/embed", ids=["a3", "a0", "a3"])
    assert found["ids"] == ["a3", "a0", "a3"]
    np.testing.assert_array_equal(np.array(found["embeddings"], np.float32), camp_predictor.embed(["a3", "a0", "a3"]))


def test_classes_come_with_probabilities(camp_client, camp_predictor):
    found, own = post(camp_client, "/v1/predict", ids=["a7", "a8"]), camp_predictor.predict(["a7", "a8"])
    assert found["classes"] == ["even", "odd"] and found["multi_label"] is False
    assert [row["labels"] for row in found["predictions"]] == [[label] for label in own.labels]
    assert [row["probabilities"] for row in found["predictions"]] == own.probabilities.tolist()


def test_a_node_may_have_any_number_of_labels():
    dataset = labelled_graphs()
    predictor = trained(classifier(dataset), dataset).predictor
    with ready(LoadedModel(predictor, "off")) as client:
        found, own = post(client, "/v1/predict", ids=[0, 7, 12]), predictor.predict([0, 7, 12])
    assert found["multi_label"] is True and found["classes"] == ["a", "b", "c"]
    assert [row["labels"] for row in found["predictions"]] == own.labels
    assert [row["probabilities"] for row in found["predictions"]] == own.probabilities.tolist()


def test_what_spread_labels_add_is_served_and_explained():
    dataset = camps()
    predictor = trained(classifier(dataset, label_spreading=True), dataset).predictor
    with ready(LoadedModel(predictor, "off")) as client:
        found, explained = post(client, "/v1/predict", ids=[3, 25]), post(client, "/v1/explain", id=25)
    assert [row["probabilities"] for row in found["predictions"]] == predictor.predict([3, 25]).probabilities.tolist()
    own = predictor.explain(25).label_spreading
    assert own is not None and explained["label_spreading"] == {"without": own.without, "effect": own.effect}


def test_links_are_scored(like_client, like_predictor):
    pairs = [{"source": 0, "type": "likes", "target": "2"}, {"source": 3, "type": "knows", "target": 4}]
    rows = post(like_client, "/v1/links", pairs=pairs)["links"]
    assert [row["probability"] for row in rows] == like_predictor.predict_links([0, 3], ["likes", "knows"], [2, 4]).tolist()
    assert [(row["source"], row["type"], row["target"]) for row in rows] == [(0, "likes", 2), (3, "knows", 4)]


def test_ranked_links_are_not_known_yet(like_client, like_predictor):
    found = post(like_client, "/v1/links/rank", source=0, type="likes", top=3)
    assert found["links"] == like_predictor.rank_links([0], "likes", 3).table().to_pylist()
    assert post(like_client, "/v1/links/likeliest", source=0, type="likes", top=3) == found  # the name that it had before


def test_links_to_a_node_are_ranked(like_client, like_predictor):
    found = post(like_client, "/v1/links/rank", target=4, type="likes", top=3)
    assert found["links"] == like_predictor.rank_links(target=4, edge_type="likes", top=3).table().to_pylist()


def test_links_that_are_scored_by_parts_are_served(part_client, part_predictor):
    pairs = [{"source": 0, "type": "likes", "target": 2}]
    assert post(part_client, "/v1/links", pairs=pairs)["links"][0]["probability"] == pytest.approx(
        part_predictor.predict_links(0, "likes", 2)[0], rel=1e-7
    )
    for end in ("source", "target"):
        found = post(part_client, "/v1/links/rank", type="likes", top=3, **{end: 0})
        assert found["links"] == part_predictor.rank_links(edge_type="likes", top=3, **{end: 0}).table().to_pylist()
    rows = post(part_client, "/v1/embed", ids=[3, 4])["embeddings"]
    np.testing.assert_array_equal(np.array(rows, np.float32), part_predictor.embed([3, 4]))
    assert len(post(part_client, "/v1/neighbours", id=3, top=2)["neighbours"]) == 2
    new = {"ids": [12], "edges": [{"source": 12, "type": "likes", "target": 0}]}
    assert len(post(part_client, "/v1/links/rank", source=12, type="likes", top=2, new=new)["links"]) == 2


def test_new_nodes_come_with_the_request(camp_client, camp_predictor):
    found = post(camp_client, "/v1/embed", new=NEW)
    own = camp_predictor.embed_new(NEW["features"], LISTED, ids=NEW["ids"])
    assert found["ids"] == ["zoe", "yan"]
    np.testing.assert_array_equal(np.array(found["embeddings"], np.float32), own)
    extended = camp_predictor.with_new_nodes(NEW["features"], LISTED, ids=NEW["ids"])
    rows = post(camp_client, "/v1/predict", ids=["a3", "zoe"], new=NEW)["predictions"]
    assert [row["probabilities"] for row in rows] == extended.predict(["a3", "zoe"]).probabilities.tolist()
    assert post(camp_client, "/v1/predict", ids=["a3"])["predictions"][0] != rows[0]  # its new edge is gone again


def test_new_nodes_may_have_links_and_neighbours(like_client, camp_client):
    new = {"ids": [12], "edges": [{"source": 12, "type": "likes", "target": 0}]}
    row = post(like_client, "/v1/links", pairs=[{"source": 12, "type": "likes", "target": 1}], new=new)["links"][0]
    assert row["source"] == 12 and 0 < row["probability"] < 1
    assert len(post(like_client, "/v1/links/rank", source=12, type="likes", top=2, new=new)["links"]) == 2
    near = post(camp_client, "/v1/neighbours", id="zoe", top=3, new=NEW)["neighbours"]
    assert len(near) == 3 and near[0]["similarity"] >= near[1]["similarity"]


def test_new_nodes_are_explained(camp_client, camp_predictor, like_client):
    extended = camp_predictor.with_new_nodes(NEW["features"], LISTED, ids=NEW["ids"])
    found, own = post(camp_client, "/v1/explain", id="zoe", new=NEW, top=3), extended.explain("zoe")
    assert found["target"] == "zoe" and [row["neighbour"] for row in found["rows"]] == list(own.neighbour[:3])
    assert found["answer"]["log_odds"] == own.answer.log_odds
    assert found["prediction"] == post(camp_client, "/v1/predict", ids=["zoe"], new=NEW)["predictions"][0]
    new = {"ids": [12], "edges": [{"source": 12, "type": "likes", "target": 0}]}
    link = post(like_client, "/v1/explain", source=12, type="likes", target=1, new=new)
    assert (link["target"], link["other"]["target"]) == (12, 1)
    refused = camp_client.post("/v1/explain", json={"id": "zoe"})
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_id")


ZOE = {"kind": "customer", "age": 25, "town": "rome"}


def test_new_nodes_may_bring_values_by_column(shop_client, shop_folder):
    new = {"ids": ["zoe"], "values": [ZOE], "edges": [{"source": "zoe", "type": "buys", "target": "t1", "weight": 2}]}
    found = post(shop_client, "/v1/embed", new=new)
    own = gatas.load(shop_folder).with_new_nodes([ZOE], (["zoe"], ["buys"], ["t1"]), ids=["zoe"], weights=[2.0])
    np.testing.assert_array_equal(np.array(found["embeddings"], np.float32), own.embed(["zoe"]))
    assert shop_client.get("/v1/model").json()["columns"] == ["kind", "age", "town", "colour"]


@pytest.mark.parametrize(
    ("new", "code", "message"),
    [
        ({"ids": ["z"], "values": [{**ZOE, "town": "lima"}]}, "wrong_features", "'lima' was in no node of training"),
        ({"ids": ["z"], "values": [{**ZOE, "height": 3}]}, "wrong_features", "trained on 'kind', 'age', 'town', 'colour'"),
        ({"ids": ["z"], "values": [{**ZOE, "age": None}]}, "wrong_features", "1 of 1 node of type 'customer' has no value"),
        ({"ids": ["z"], "values": [{**ZOE, "age": [1]}]}, "wrong_features", "column 'age' holds list"),
        ({"ids": ["z"], "values": [{**ZOE, "town": [1]}]}, "wrong_features", "column 'town' holds list"),
        ({"ids": ["z"], "values": [{**ZOE, "kind": [1]}]}, "wrong_features", "expected"),
        ({"ids": ["z"], "values": [{**ZOE, "kind": "robot"}]}, "wrong_features", "no node of training was of type 'robot'"),
        ({"ids": ["z"], "values": [ZOE], "features": [[1] * 5]}, "invalid", "both features and values. Give one"),
        ({"ids": ["z", "y"], "values": [ZOE]}, "unusable_new_nodes", "2 ids and 1 rows"),
        ({"ids": ["z"], "values": [{"age": {"a": 1}}]}, "invalid", "new.values.0.age"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_encoded_are_refused(shop_client, new, code, message):
    answer = shop_client.post("/v1/predict", json={"new": new})
    assert (answer.status_code, answer.json()["code"]) == (422, code) and message in answer.json()["message"]


def test_values_need_a_model_of_tables(camp_client):
    answer = camp_client.post("/v1/predict", json={"new": {"ids": ["zoe"], "values": [{"a": 1}]}})
    assert (answer.status_code, answer.json()["code"]) == (422, "wrong_features")
    assert camp_client.get("/v1/model").json()["columns"] == []


def test_an_explanation_has_all_that_a_page_shows(camp_client, camp_predictor):
    found, own = post(camp_client, "/v1/explain", id="a5", top=4), camp_predictor.explain("a5")
    assert found["target"] == "a5" and found["other"] is None and len(found["rows"]) == min(4, len(own))
    assert found["answer"]["name"] == own.answer.name and found["depth_coefficients"] == own.depth_coefficients.tolist()
    assert found["prediction"] == post(camp_client, "/v1/predict", ids=["a5"])["predictions"][0]
    row = found["rows"][0]
    assert row["neighbour"] == own.neighbour[0] and row["path"] == " → ".join(row["relations"])
    assert {"probability", "attention", "share", "effect", "probability_without", "step"} <= set(row)
    assert post(camp_client, "/v1/explain", id="a5", answer="odd", mode="all")["answer"]["name"] == "odd"


def test_a_link_is_explained_from_both_ends(like_client):
    found = post(like_client, "/v1/explain", source=0, type="likes", target=2)
    assert (found["target"], found["other"]["target"], found["prediction"]) == (0, 2, None)
    assert found["answer"]["name"] == "likes" and found["classes"] == ["likes", "knows"]
    assert post(like_client, "/v1/explain", id=0)["answer"] is None


def test_nearest_nodes_are_those_with_the_most_similar_vectors(camp_client, camp_predictor):
    rows = camp_predictor.embed([f"a{node}" for node in range(30)]).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = [f"a{node}" for node in np.argsort(-(rows @ rows[4])) if node != 4]
    found = post(camp_client, "/v1/neighbours", id="a4", top=3)
    assert [row["id"] for row in found["neighbours"]] == order[:3] and found["method"] == "exact"


@pytest.mark.parametrize(
    ("query", "limit", "ids", "more"),
    [
        ("A1", 3, ["a1", "a10", "a11"], True),
        ("9", 20, ["a9", "a19", "a29"], False),
        ("x", 20, [], False),
        ("a29", 1, ["a29"], False),
    ],
)
def test_ids_are_searched_for_by_how_they_begin_and_by_what_they_contain(camp_client, query, limit, ids, more):
    found = camp_client.get("/v1/nodes", params={"query": query, "limit": limit}).json()
    assert (found["ids"], found["more"]) == (ids, more)


def test_numbered_nodes_are_searched_for_too(like_client):
    assert like_client.get("/v1/nodes?query=1").json()["ids"] == [1, 10, 11]


def test_the_model_describes_itself(camp_client, like_client):
    about = camp_client.get("/v1/model").json()
    assert (about["task"], about["names"], about["num_nodes"]) == ("node classification", ["even", "odd"], 30)
    assert about["num_features"] == 5 and about["limits"]["max_ids"] == 1000
    held_out = [f"a{node}" for node in camps().splits["test"]]
    assert (
        about["first_ids"][: len(held_out)] == held_out[:10]
        and len(about["first_ids"]) == 10
        and about["limits"]["max_ids"] == 1000
    )
    assert like_client.get("/v1/model").json()["edge_types"] == ["likes", "knows", "likes⁻¹", "knows⁻¹"]


def test_the_page_is_shown_where_there_is_one(camp_predictor, tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("<h1>explorer</h1>")
    monkeypatch.setattr(app, "PAGE", tmp_path)
    with ready(LoadedModel(camp_predictor, "off")) as client:
        answer = client.get("/")
        assert answer.text == "<h1>explorer</h1>" and answer.headers["content-type"].startswith("text/html")
        assert client.get("/nothing.js").json()["code"] == "not_found"
        assert client.get("/v1/model").status_code == 200


@pytest.mark.parametrize("parts", [("vectors", "paths"), ("vectors", "neighbourhood", "paths")], ids="+".join)
def test_a_link_is_explained_by_what_its_log_odds_add_up_from(parts):
    predictor = by_parts(parts)
    with ready(LoadedModel(predictor, "off")) as client:
        answer = client.post("/v1/explain", json={"source": 0, "type": "likes", "target": 5, "top": 1})
        node = post(client, "/v1/explain", id=0)
    assert answer.status_code == 200, answer.text
    found, own = answer.json(), predictor.explain_link(0, "likes", 5)
    assert responses.LinkExplanationResponse.model_validate(found).model_dump() == found
    assert found == {"model": predictor.fingerprint, "classes": ["likes", "knows"], **own.to_dict(1)}
    assert len(found["paths"]) == 1 < found["num_paths"] and (found["neighbourhood"] is None) == ("neighbourhood" not in parts)
    assert node["target"] == 0 and node["answer"] is None
    assert (node["note"] is None) == bool(node["rows"]) == ("neighbourhood" in parts)


def test_a_node_that_no_such_link_has_at_that_end_is_refused():
    with ready(LoadedModel(Predictor(model_of(shop(), ("vectors", "paths")), shop()))) as client:
        refused = client.post("/v1/links/rank", json={"source": 7, "type": "buys"})
        assert refused.status_code == 422 and refused.json()["code"] == "wrong_node_type"
        assert "start from nodes of the type 'customer'" in refused.text
        assert post(client, "/v1/links/rank", target=7, type="buys")["links"]


def test_a_model_of_paths_alone_is_served_without_representations():
    with ready(LoadedModel(Predictor(model_of(shop(), ("paths",)), shop()))) as client:
        assert post(client, "/v1/links/rank", source=0, type="buys", top=2)["links"]
        assert client.get("/v1/model").json()["neighbours"] == "off"
        refused = client.post("/v1/embed", json={"ids": [0]})
        assert refused.status_code == 422 and "typed paths alone" in refused.text
