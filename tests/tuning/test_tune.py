"""`tune`: trials are compared on validation data, go on after any end, and the best is trained."""

import csv
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gatas
from gatas.datasets import NodeTargets, Pairs
from gatas.errors import ConfigError, TrainingError
from gatas.training import Config, load_config
from gatas.training.folder import verify_run
from gatas.tuning import trainer as trainer_module
from gatas.tuning import tune
from gatas.tuning.tuning import without_test
from tests.tasks.toys import SMALL, camps, likes

CONFIG = Config.model_validate({"model": SMALL, "training": {"epochs": 2, "batch_size": 5}})
SPACE: dict[str, Any] = {
    "model": {"dropout": {"low": 0.0, "high": 0.6}, "num_heads": [1, 2]},
    "training": {"learning_rate": {"low": 0.001, "high": 0.1, "log": True}},
}


def tuned(trials=3, **given):
    return tune(CONFIG, **{"trials": trials, "dataset": camps(), "space": SPACE, "device": "cpu", "train_best": False, **given})


def tried(tuning):
    return [(trial.settings, trial.outcome, trial.metric, trial.loss) for trial in tuning.trials]


def test_the_first_trial_is_the_config_and_the_best_is_never_worse():
    tuning = tuned()
    first = tuning.trials[0]
    assert first.settings == {"model.dropout": 0.1, "model.num_heads": 2, "training.learning_rate": 0.005}
    assert first.metric is not None and tuning.best.metric is not None and tuning.best.metric >= first.metric
    assert [trial.number for trial in tuning.trials] == [1, 2, 3]
    assert len({repr(trial.settings) for trial in tuning.trials}) == 3


def test_one_seed_gives_the_same_trials_and_another_gives_others():
    assert tried(tuned()) == tried(tuned()) != tried(tuned(seed=1))


def test_the_best_is_trained_and_answers(tmp_path):
    tuning = tuned(folder=tmp_path, train_best=True)
    assert tuning.run is not None and "accuracy" in tuning.run.metrics["test"]
    assert tuning.run.metrics["valid"]["accuracy"] == pytest.approx(tuning.best.metric)
    assert load_config(tmp_path / "best.yaml") == tuning.config
    assert gatas.load(tmp_path, device="cpu").predict([0, 1]) is not None
    verify_run(tmp_path)
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert [row["outcome"] for row in rows] == ["finished"] * 3 and float(rows[0]["model.dropout"]) == 0.1
    assert (tmp_path / "trials.png").read_bytes()[:4] == b"\x89PNG"


def test_a_search_goes_on_in_its_folder_as_if_it_had_not_ended(tmp_path):
    whole = tuned(4)
    tuned(2, folder=tmp_path)
    assert tried(tuned(4, folder=tmp_path)) == tried(whole)
    assert tried(tuned(2, folder=tmp_path)) == tried(whole)  # nothing left to do


def test_a_torn_last_line_of_the_journal_is_no_obstacle(tmp_path):
    tuned(2, folder=tmp_path)
    with (tmp_path / "tuning" / "journal.log").open("ab") as file:
        file.write(b'{"op_code": 6, "worker')
    assert tried(tuned(3, folder=tmp_path)) == tried(tuned(3))


def test_a_trial_that_was_interrupted_is_tried_again(tmp_path, monkeypatch):
    train, calls = trainer_module.Trainer.train, iter(range(100))

    def interrupted(self, *args, **given):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return train(self, *args, **given)

    monkeypatch.setattr(trainer_module.Trainer, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuned(3, folder=tmp_path)
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 2 and (tmp_path / "best.yaml").exists()
    assert tried(tuned(3, folder=tmp_path)) == tried(tuned(3))


def test_another_search_in_the_same_folder_is_refused(tmp_path):
    tuned(1, folder=tmp_path)
    with pytest.raises(TrainingError, match=r"the folder holds another search: .*seeds was \[0\] and is \[1\]"):
        tuned(2, folder=tmp_path, seed=1)
    with pytest.raises(TrainingError, match=r"values of model.num_heads was \[1, 2\] and is \[1, 4\]"):
        tuned(2, folder=tmp_path, space={**SPACE, "model": {"dropout": {"low": 0.0, "high": 0.6}, "num_heads": [1, 4]}})


def test_trials_of_other_epochs_are_no_part_of_a_search(tmp_path):
    """Those of five epochs are better than those of three, whatever their settings."""
    tuned(1, folder=tmp_path)
    longer = CONFIG.with_settings({"training.epochs": 3})
    with pytest.raises(TrainingError, match=r"training.epochs was 2 and is 3\. Choose another folder"):
        tune(longer, trials=2, dataset=camps(), space=SPACE, device="cpu", folder=tmp_path)


def test_the_path_of_a_config_is_refused_in_one_line():
    path: Any = "mine.yaml"
    for learn in (gatas.tune, lambda config: gatas.fit_many(config, [0])):
        with pytest.raises(ConfigError, match="expected a Config: gatas"):
            learn(path)


def test_a_new_best_is_trained_in_place_of_the_one_before(tmp_path, monkeypatch):
    tuned(1, folder=tmp_path, train_best=True)
    tuning = tuned(4, folder=tmp_path, train_best=True)
    assert load_config(tmp_path / "config.yaml").model.dropout == tuning.best.settings["model.dropout"]


def corrupted(dataset):
    targets = dataset.targets
    if isinstance(targets, NodeTargets):
        labels = targets.labels.copy()
        labels[targets.splits["test"]] = 1 - labels[targets.splits["test"]]
        return replace(dataset, targets=replace(targets, labels=labels, splits={**targets.splits, "test": np.array([20, 29])}))
    test = targets.splits["test"]
    turned = Pairs(test.target, test.edge_type, test.source, 1 - test.label)
    return dataset.with_splits({**targets.splits, "test": turned})


LINKS = Config.model_validate({"data": {"name": "kinship"}, "model": {"num_steps": 2}, "training": {"epochs": 2}})
PAPER = Config.model_validate(
    {"data": {"name": "kinship"}, "model": {**SMALL, "node_embedding_size": 4}, "training": {"epochs": 2, "batch_size": 9}}
)
OF_LINKS: dict[str, Any] = {"model": {"vector_size": [4, 8]}, "training": {"n3": [0.0, 0.01], "learning_rate": [0.01, 0.1]}}


@pytest.mark.parametrize(
    ("config", "dataset", "space"),
    [(CONFIG, camps(), SPACE), (LINKS, likes(), OF_LINKS), (PAPER, likes(), SPACE)],
    ids=["nodes", "links by parts", "links by pairs"],
)
def test_the_test_split_is_not_looked_at_before_the_end(config, dataset, space, tmp_path):
    given: Any = {"trials": 3, "space": space, "device": "cpu"}
    honest = tune(config, dataset=dataset, folder=tmp_path / "a", train_best=False, **given)
    blind = tune(config, dataset=corrupted(dataset), folder=tmp_path / "b", train_best=False, **given)
    assert tried(blind) == tried(honest) and blind.config == honest.config
    journals = [(tmp_path / name / "tuning" / "journal.log").read_text() for name in ("a", "b")]
    varying = r'"worker_id": ?"[^"]*"|"datetime_[a-z]*": ?"[^"]*"|"seconds": ?[0-9.e-]+'
    assert re.sub(varying, "", journals[0]) == re.sub(varying, "", journals[1])
    final = tune(config, dataset=dataset, folder=tmp_path / "a", **given).run
    assert final is not None and "test" in final.metrics


def test_labels_of_the_test_split_are_hidden():
    dataset = camps()
    seen = without_test(dataset)
    assert set(seen.splits) == {"train", "valid"} and seen.names == dataset.names
    assert (seen.node_targets.labels[dataset.splits["test"]] == -1).all()
    kept = np.concatenate([dataset.splits["train"], dataset.splits["valid"]])
    assert (seen.node_targets.labels[kept] == dataset.node_targets.labels[kept]).all()


def test_trials_of_one_shape_learn_in_one_program():
    tuning = tuned(4, at_once=4)
    assert len({trial.settings["model.num_heads"] for trial in tuning.trials}) == 1
    assert len({trial.settings["training.learning_rate"] for trial in tuning.trials}) == 4
    for trial in tuning.trials:  # as each would have been alone
        alone = tune(
            CONFIG.with_settings(trial.settings), trials=1, dataset=camps(), space=SPACE, device="cpu", train_best=False
        )
        assert trial.loss == pytest.approx(alone.trials[0].loss, rel=1e-3)


def test_settings_that_cannot_be_trained_are_noted_and_the_search_goes_on():
    space = {"model": {"link_score": [["vectors", "paths"]]}, "training": {"hidden_folds": [0]}}
    tuning = tune(LINKS, trials=3, dataset=likes(), space=space, device="cpu", train_best=False)
    failed = [trial for trial in tuning.trials if trial.outcome == "failed"]
    assert len(failed) == 2 and all("every training link would give itself away" in trial.reason for trial in failed)
    assert tuning.best.outcome == "finished"


def test_a_trial_that_diverges_is_noted():
    space = {"training": {"learning_rate": [1e30], "max_norm": [None]}}
    tuning = tune(CONFIG, trials=2, dataset=camps(), space=space, device="cpu", train_best=False)
    assert [trial.outcome for trial in tuning.trials] == ["finished", "diverged"] and tuning.best.number == 1


def test_bad_trials_are_pruned():
    config = CONFIG.with_settings({"training.epochs": 6, "training.learning_rate": 0.05, "training.patience": 9})
    space = {"training": {"learning_rate": [0.05, 1e-9], "l2": [0.0, 0.001, 0.002, 0.003]}}
    tuning = tune(config, trials=14, dataset=camps(), space=space, device="cpu", train_best=False)
    pruned = [trial for trial in tuning.trials if trial.outcome == "pruned"]
    assert pruned and all(trial.epochs < 6 for trial in pruned) and tuning.trials[0].outcome == "finished"
    assert set(tuning.importance) == {"training.learning_rate", "training.l2"}


def test_a_search_ends_when_time_is_over():
    tuning = tuned(1000, seconds=1e-6)
    assert len(tuning.trials) == 1 and tuning.trials[0].reason.startswith("cut after 1 epoch")


def test_data_without_validation_is_refused():
    dataset = camps().with_splits({"train": camps().splits["train"]})
    with pytest.raises(TrainingError, match="camps has no split 'valid', by which trials are compared"):
        tuned(dataset=dataset)


def test_no_trials_are_refused():
    with pytest.raises(ConfigError, match="trials is 0"):
        tuned(0)
