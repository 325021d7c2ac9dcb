"""The search for default recipes: it resumes, and test data never reaches it."""

import json

import pytest

from benchmarks import search
from gatas.errors import TrainingError
from gatas.inference import Run
from gatas.training import Config, Runs
from tests.tasks.toys import camps


@pytest.fixture
def trained(monkeypatch):
    """What was trained, in place of training it."""
    asked = []

    def fit_many(config, seeds, *, dataset, device):
        asked.append((config, list(seeds), set(dataset.splits)))
        if config.model.num_steps == 4:
            raise TrainingError("the loss became nan.")
        metrics = {"valid": {"accuracy": 0.5, "loss": 1.0}, "epochs": 3}
        return Runs([Run(Config(), seed, metrics, [{"depth": [0.6, 0.4]}], None, dataset) for seed in seeds])

    monkeypatch.setattr(search, "fit_many", fit_many)
    monkeypatch.setattr(search, "load_dataset", lambda *_: camps())
    return asked


def test_a_search_goes_on_where_it_was_and_sees_no_test_data(tmp_path, trained):
    assert "test" in camps().splits
    log = tmp_path / "log.jsonl"
    search.main(["cora", "--seeds", "2", "--only", "milder;agree", "--log", str(log)])
    search.main(["cora", "--seeds", "2", "--trials", "3", "--only", "milder;trial 2", "--log", str(log)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["name"] for line in lines] == ["milder", "agree", "trial 2"]
    assert lines[0]["valid_accuracy"] == 0.5 and lines[0]["settings"] == search.MILDER and lines[0]["seeds"] == 2
    assert [splits for *_, splits in trained] == [{"train", "valid"}] * 3


def test_settings_that_fail_are_told_of_and_the_rest_goes_on(tmp_path, trained):
    log = tmp_path / "log.jsonl"
    search.main(["cora", "--seeds", "1", "--trials", "12", "--log", str(log)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    failed = [line["name"] for line in lines if "failed" in line]
    assert failed and len(lines) == len(search.candidates("cora", 12)) > len(failed)


def test_a_trial_is_the_same_however_many_there_are():
    few, many = search.candidates("pubmed", 2), search.candidates("pubmed", 9)
    assert few["trial 1"] == many["trial 1"] != many["trial 8"]
    assert few["trial 0"] != search.candidates("cora", 1)["trial 0"]
