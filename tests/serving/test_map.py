"""The map of the nodes: made once, in the background, and asked for again until it is there."""

import json
import threading

import httpx
import numpy as np
import pytest

from gatas.errors import GatasError
from gatas.inference.embedding_map import MapSample, draw_nodes, map_sample
from gatas.serving.background_map import BackgroundMap, making_maps
from gatas.serving.loaded_model import LoadedModel, load_model
from gatas.serving.run_results import read_results
from tests.inference.conftest import trained
from tests.serving.conftest import WAIT, ready, until
from tests.tasks.toys import classifier, heights, labelled_graphs, regressor


def finished(client):
    """Ask until the map is there."""
    answers = list[httpx.Response]()

    def there():
        answers.append(client.get("/v1/map"))
        return answers[-1].status_code != 202

    until(there)
    return answers


def test_the_map_has_every_node_with_its_class(camp_client):
    found = finished(camp_client)[-1].json()
    assert (found["status"], found["method"], found["known_as"], found["num_nodes"]) == ("ready", "t-SNE", "class", 30)
    assert found["ids"] == [f"a{node}" for node in range(30)] and found["values"][:2] == ["even", "odd"]
    assert found["model"] == camp_client.get("/v1/model").json()["model"]
    assert len({*zip(found["x"], found["y"], strict=True)}) == 30


def test_requests_are_answered_while_the_map_is_made_once(camp_predictor):
    model, opened, made = LoadedModel(camp_predictor), threading.Event(), []

    def slow():
        made.append(1)
        assert opened.wait(WAIT)
        raise GatasError("there is nothing to map.")

    model.map = BackgroundMap(model.fingerprint, slow)
    with ready(model) as client:
        first = client.get("/v1/map")
        assert (first.status_code, first.headers["retry-after"], first.json()["status"]) == (202, "1", "computing")
        assert client.post("/v1/predict", json={"ids": ["a1"]}).status_code == 200
        assert client.get("/v1/map").json()["ids"] == [] and client.service.busy
        opened.set()
        last = finished(client)[-1].json()
        assert (last["status"], last["reason"], made) == ("unavailable", "there is nothing to map.", [1])
    until(lambda: not making_maps())


def test_a_map_that_fails_tells_nothing_of_the_inside(camp_predictor, caplog):
    model = LoadedModel(camp_predictor)
    model.map = BackgroundMap(model.fingerprint, lambda: [][0])
    with ready(model) as client:
        last = finished(client)[-1].json()
    assert last["status"] == "unavailable" and last["reason"] == "the map could not be made; the server's log says why."
    assert "map failed" in caplog.text


def test_without_representations_of_all_nodes_there_is_no_map(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off")) as client:
        last = finished(client)[-1].json()
    assert last["status"] == "unavailable" and "--neighbours off" in last["reason"]


@pytest.mark.parametrize(
    ("make", "dataset", "known_as"), [(regressor, heights(), "metres"), (classifier, labelled_graphs(), "class")]
)
def test_maps_show_numbers_and_first_labels(make, dataset, known_as):
    with ready(LoadedModel(trained(make(dataset), dataset).predictor)) as client:
        found = finished(client)[-1].json()
    assert found["known_as"] == known_as and len(found["values"]) == dataset.graph.num_nodes


def test_of_many_nodes_the_same_ones_are_drawn_every_time():
    one, other = draw_nodes(np.arange(100), 10), draw_nodes(np.arange(100), 10)
    assert len(one) == 10 and (one == other).all() and len(set(one.tolist())) == 10


def test_nodes_that_are_all_alike_are_refused(camp_predictor):
    sample = MapSample(np.arange(5), np.ones((5, 3), np.float32), 5)
    with pytest.raises(GatasError, match="all 5 nodes have the same representation"):
        map_sample(camp_predictor, sample)


def test_the_model_says_what_its_run_measured(shop_folder):
    written = json.loads((shop_folder / "metrics.json").read_text())
    with ready(load_model(shop_folder, "cpu")) as client:
        found = client.get("/v1/model").json()["results"]
    assert found["epochs_to_best"] == written["best_epoch"] + 1 and found["epochs"] == written["epochs"]
    splits = [name for name, measured in written.items() if isinstance(measured, dict)]
    assert list(found["metrics"]) == splits
    assert found["metrics"][splits[-1]]["loss"] == written[splits[-1]]["loss"]


def test_a_model_of_no_folder_has_no_results(camp_client):
    assert camp_client.get("/v1/model").json()["results"] is None


def test_metrics_that_are_damaged_are_refused_and_missing_ones_are_none(tmp_path):
    assert read_results(tmp_path) is None
    (tmp_path / "metrics.json").write_text("[]")
    (tmp_path / "about.json").write_text("{}")
    with pytest.raises(GatasError, match=r"metrics\.json that cannot be read"):
        read_results(tmp_path)
