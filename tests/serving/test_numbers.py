"""Numbers of nodes, and the spread over draws, over HTTP."""

import numpy as np
import pytest
from pytest import approx

from gatas.serving import responses
from gatas.serving.loaded_model import LoadedModel
from tests.inference.conftest import trained
from tests.serving.conftest import ready
from tests.tasks.toys import heights, regressor


@pytest.fixture(scope="module")
def number_predictor():
    dataset = heights()
    return trained(regressor(dataset), dataset).predictor


@pytest.fixture(scope="module")
def client(number_predictor):
    with ready(LoadedModel(number_predictor)) as client:
        yield client


def test_numbers_are_those_of_the_model(client, number_predictor):
    answer = client.post("/v1/predict", json={"ids": [3, 4]}).json()
    assert responses.NumbersResponse.model_validate(answer).model_dump() == answer
    assert answer["numbers"] == ["metres", "degrees"]
    assert [one["values"] for one in answer["predictions"]] == number_predictor.predict([3, 4]).values.tolist()
    assert client.get("/v1/model").json()["task"] == "node regression"


def test_a_spread_comes_where_it_is_asked_for(client, number_predictor):
    answer = client.post("/v1/predict", json={"ids": [3], "draws": 4}).json()
    expected = number_predictor.predict([3], draws=4)
    assert answer["predictions"][0]["deviations"] == approx(expected.deviations[0].tolist())
    assert answer["predictions"][0]["values"] == approx(expected.values[0].tolist())


def test_classes_have_a_spread_too(camp_client, camp_predictor):
    answer = camp_client.post("/v1/predict", json={"ids": ["a3"], "draws": 4}).json()
    expected = camp_predictor.predict(["a3"], draws=4)
    assert responses.PredictResponse.model_validate(answer).model_dump() == answer
    assert answer["predictions"][0]["deviations"] == approx(expected.deviations[0].tolist())
    assert np.asarray(answer["predictions"][0]["probabilities"]) == approx(expected.probabilities[0], abs=1e-6)


@pytest.mark.parametrize("draws", [1, 0, 101, "5"])
def test_wrong_draws_are_refused(client, draws):
    assert client.post("/v1/predict", json={"ids": [3], "draws": draws}).status_code == 422


def test_a_number_is_explained_in_its_units(client, number_predictor):
    answer = client.post("/v1/explain", json={"id": 3, "answer": "degrees", "top": 2}).json()
    assert responses.ExplainResponse.model_validate(answer).model_dump() == answer
    assert answer["answer"] == {"name": "degrees", "value": number_predictor.explain(3, answer="degrees").answer.value}
    row = answer["rows"][0]
    assert row["value_without"] == approx(answer["answer"]["value"] - row["effect"]) and row["probability_without"] is None
    assert answer["prediction"]["values"] == number_predictor.predict([3]).values[0].tolist()


def test_links_are_not_asked_of_it(client):
    answer = client.post("/v1/links", json={"pairs": [{"source": 1, "target": 2}]})
    assert answer.status_code == 422 and "predicts numbers of nodes, not links" in answer.text
