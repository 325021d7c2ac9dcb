"""A search of settings: the same draws for everyone, chosen by validation data, never by test data."""

import json

import pytest

from gatas.errors import ConfigError
from gatas.experiments import trials
from gatas.experiments.baselines import PEERS, changed_recipe, recipe_of, space_of
from gatas.experiments.compare import compare
from gatas.experiments.contenders import NODE_PEERS, contender
from gatas.experiments.trials import drawn_settings, read_trials, tuned
from gatas.tasks.config import ModelConfig
from gatas.training.config import TrainingConfig
from gatas.training.limit import Limit
from tests.tasks.toys import camps

SPACE = {"dropout": (0.1, 0.5), "hidden_size": (4, 8, 16)}
SHORT = Limit(epochs=3)


@pytest.fixture
def small(monkeypatch):
    """A GCN that has little to choose."""
    monkeypatch.setattr(PEERS["gcn"], "space", SPACE)


def test_draws_are_different_and_a_function_of_the_seed():
    first = drawn_settings(SPACE, 5)
    assert first == drawn_settings(SPACE, 5) == drawn_settings(SPACE, 6)[:5] and first[0] == {}
    assert len({repr(one) for one in first}) == 5 and first != drawn_settings(SPACE, 5, seed=1)
    assert all(one[name] in SPACE[name] for one in first[1:] for name in SPACE)


def test_there_are_no_more_draws_than_choices():
    assert len(drawn_settings(SPACE, 100)) == 1 + 6 and drawn_settings({}, 100) == [{}]


@pytest.mark.parametrize("name", PEERS)
def test_a_space_names_settings_that_there_are(name):
    space = space_of(name, camps())
    recipe = changed_recipe(recipe_of(name, camps()), drawn_settings(space, 2)[-1])
    TrainingConfig.model_validate(recipe.training.model_dump())
    PEERS[name](camps(), **recipe.model)


def test_every_peer_that_the_issue_names_can_be_tuned():
    named = {"mlp", "gcn", "gat", "sage", "gcnii", "appnp", "grand", "nagphormer", "rgcn", "hgt", "label-propagation"}
    normalised = {f"{name}-norm" for name in ("mlp", "gcn", "gat", "sage")}
    assert named | normalised <= set(NODE_PEERS)
    assert all(contender(name, camps()).space for name in named | normalised)


def test_settings_of_ours_are_of_the_model_or_of_training():
    space = contender("gatas", camps(name="cora")).space
    assert set(space) <= set(ModelConfig.model_fields) | set(TrainingConfig.model_fields)
    changed = contender("gatas", camps(name="cora"), changed={"dropout": 0.25, "l2": 0.5})
    assert changed.settings["model"]["dropout"] == 0.25 and changed.settings["training"]["l2"] == 0.5


def test_the_best_on_validation_data_is_chosen(small, tmp_path, monkeypatch):
    scores = iter([0.5, 0.7, 0.9, 0.6])
    monkeypatch.setattr(
        trials,
        "tried",
        lambda name, given, config, settings, *more: trials.TriedSettings(settings=settings, valid=next(scores), loss=1),
    )
    assert tuned("gcn", camps(), 4, tmp_path) == drawn_settings(space_of("gcn", camps()), 4)[2]


def test_of_equal_metrics_the_smaller_loss_is_chosen(small, tmp_path, monkeypatch):
    losses = iter([0.5, 0.4, 0.6])
    monkeypatch.setattr(
        trials,
        "tried",
        lambda name, given, config, settings, *more: trials.TriedSettings(settings=settings, valid=0.5, loss=next(losses)),
    )
    assert tuned("gcn", camps(), 3, tmp_path) == drawn_settings(space_of("gcn", camps()), 3)[1]


def test_trials_see_no_test_split(small, tmp_path, monkeypatch):
    seen = []

    def look(name, dataset, config=None, changed=None):
        seen.append(set(dataset.splits))
        return contender(name, dataset, config, changed)

    monkeypatch.setattr(trials, "contender", look)
    tuned("gcn", camps(), 2, tmp_path, device="cpu", limit=SHORT)
    assert seen and all(splits == {"train", "valid"} for splits in seen)


def test_a_search_goes_on_where_it_stopped(small, tmp_path, monkeypatch):
    begun, whole = [], trials.tried

    def counted(name, given, config, settings, *more):
        begun.append(settings)
        return whole(name, given, config, settings, *more)

    monkeypatch.setattr(trials, "tried", counted)
    tuned("gcn", camps(), 2, tmp_path, device="cpu", limit=SHORT)
    (path,) = tmp_path.iterdir()
    first = read_trials(path)
    assert len(begun) == len(first) == 2 and all(trial.cut == "3 epochs" and trial.valid is not None for trial in first)
    tuned("gcn", camps(), 3, tmp_path, device="cpu", limit=SHORT)
    assert len(begun) == 3 and read_trials(path)[:2] == first
    tuned("gcn", camps(), 2, tmp_path, device="cpu", limit=SHORT)
    assert len(begun) == 3 and len(read_trials(path)) == 3  # what is known stays


def test_a_trial_that_fails_is_kept_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(PEERS["gcn"], "space", {"hidden_size": (-4,)})
    assert tuned("gcn", camps(), 2, tmp_path, device="cpu", limit=SHORT) == {}
    (path,) = tmp_path.iterdir()
    assert [bool(trial.error) for trial in read_trials(path)] == [False, True]


def test_data_without_validation_cannot_be_tuned_on(tmp_path):
    dataset = camps().with_splits({name: camps().splits[name] for name in ("train", "test")})
    with pytest.raises(ConfigError, match="has no split 'valid', which trials are chosen by"):
        tuned("gcn", dataset, 2, tmp_path)


def test_compared_models_are_tuned_first(small, tmp_path, monkeypatch):
    from gatas.experiments import comparison_data

    monkeypatch.setattr(comparison_data, "load_dataset", lambda name, _: camps())

    def tried(name, given, config, settings, *more):
        best = settings.get("hidden_size") == 8 and settings.get("dropout") == 0.1
        return trials.TriedSettings(settings=settings, valid=float(best), loss=1)

    monkeypatch.setattr(trials, "tried", tried)
    compare(["camps"], ["gcn"], tmp_path, seeds=1, trials=20, limit=SHORT, device="cpu")
    found = json.loads((tmp_path / "peers" / "camps-gcn.json").read_text())
    assert found["settings"]["model"]["hidden_size"] == 8 and found["settings"]["model"]["dropout"] == 0.1
    assert len(found["runs"]) == 1 and "accuracy" in found["runs"][0]["test"]
