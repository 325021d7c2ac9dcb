"""Node regression: metrics beside scikit-learn's, losses beside torch's, and answers in the units of the data."""

from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from torch.nn import functional as F

from gatas.datasets import NumberTargets
from gatas.errors import ConfigError, GatasError, GraphError
from gatas.inference import fit, fit_many
from gatas.tasks import RegressionTask
from gatas.tasks.metrics import mean_r2, regression_metrics
from gatas.training import Config
from gatas.training.config import TrainingConfig
from gatas.training.evaluation import evaluate
from gatas.training.task_making import make_task
from tests.tasks.toys import SMALL, camps, classifier, heights, regressor

QUICK: dict[str, Any] = {"epochs": 4, "batch_size": 7, "learning_rate": 0.02, "device": "cpu"}


def numbers(seed=0, gaps=True):
    generator = np.random.default_rng(seed)
    truth = generator.normal(size=(30, 2)) * [100, 0.1] + [5, 7]
    found = truth + generator.normal(size=(30, 2)) * [30, 0.02]
    if gaps:
        truth[3:9, 1] = np.nan
    return found, truth


@pytest.mark.parametrize("gaps", [False, True])
def test_metrics_are_scikit_learns_over_what_is_known(gaps):
    found, truth = numbers(gaps=gaps)
    measured = regression_metrics(found, truth, ("a", "b"))
    oracle = {"mae": mean_absolute_error, "rmse": root_mean_squared_error, "r2": r2_score}
    for column, name in enumerate(("a", "b")):
        known = ~np.isnan(truth[:, column])
        for metric, of in oracle.items():
            assert measured["by_target"][name][metric] == approx(of(truth[known, column], found[known, column]))
        assert measured["by_target"][name]["support"] == known.sum()
    for metric in oracle:
        assert measured[metric] == approx(np.mean([own[metric] for own in measured["by_target"].values()]))


def test_the_r2_that_is_monitored_is_the_one_that_is_measured():
    several = [numbers(seed)[0] for seed in range(3)]
    truth = numbers()[1]
    expected = [regression_metrics(found, truth, ("a", "b"))["r2"] for found in several]
    assert mean_r2(torch.tensor(np.stack(several)), torch.tensor(truth)).tolist() == approx(expected)


def test_a_number_that_is_the_same_for_all_has_no_r2():
    measured = regression_metrics(np.array([[1.0, 2], [3, 2]]), np.array([[1.0, 2], [2, 2]]), ("a", "b"))
    assert np.isnan(measured["by_target"]["b"]["r2"]) and measured["r2"] == measured["by_target"]["a"]["r2"]


@pytest.mark.parametrize(("kind", "of_torch"), [("squared", F.mse_loss), ("huber", F.huber_loss)])
def test_the_loss_is_torchs_over_numbers_that_are_known(kind, of_torch):
    dataset = heights()
    task = RegressionTask(dataset, 5, loss=kind)
    target, weight = torch.tensor([1, 7, 2, 1]), torch.tensor([1.0, 1, 1, 0])  # of node 7 one number is not known
    found = 2 * torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    wanted = task.labels[target]
    each = [of_torch(found[0], wanted[0]), of_torch(found[1, :1], wanted[1, :1]), of_torch(found[2], wanted[2])]
    assert task.loss(found, target, weight).item() == approx(torch.stack(each).mean().item())


def test_numbers_are_learned_with_a_mean_of_0_and_a_deviation_of_1():
    task = RegressionTask(heights(), 5)
    training = task.labels[:20].double().numpy()
    assert np.nanmean(training, axis=0) == approx([0, 0], abs=1e-6) and np.nanstd(training, axis=0) == approx([1, 1])


@pytest.fixture(scope="module")
def trained():
    dataset = heights()
    return fit(regressor(dataset, dropout=0, input_noise=0), dataset, **{**QUICK, "epochs": 60})


def test_what_features_say_is_learned_and_answered_in_the_units_of_the_data(trained):
    assert trained.metrics["test"]["r2"] > 0.4
    found = trained.predictor.predict(np.arange(60))
    assert found.values[:, 0].mean() == approx(1000, abs=150) and found.values[:, 1].mean() == approx(-5, abs=0.05)
    table = found.table()
    assert table.column_names == ["id", "metres", "degrees"] and "metres, degrees" in repr(found)


def test_metrics_are_those_of_the_answers(trained):
    test = np.sort(trained.dataset.splits["test"])
    found = trained.predictor.predict_indices(test).values
    expected = regression_metrics(found, trained.dataset.number_targets.values[test], ("metres", "degrees"))
    measured = trained.metrics["test"]
    assert {name: measured[name] for name in ("mae", "rmse", "r2")} == approx(
        {name: expected[name] for name in ("mae", "rmse", "r2")}, rel=1e-4
    )
    again = evaluate(trained.model, trained.dataset, "test", device="cpu")
    assert again["by_target"]["metres"] == approx(measured["by_target"]["metres"])


def test_other_training_nodes_do_not_change_the_units_of_a_model(trained):
    other = trained.dataset.with_splits({"train": np.arange(5), "test": trained.dataset.splits["test"]})
    again = evaluate(trained.model, other, "test", device="cpu")
    assert again["by_target"]["metres"] == approx(trained.metrics["test"]["by_target"]["metres"])


def test_effects_are_in_the_units_of_the_number(trained):
    found = trained.predictor.explain(3, answer="degrees", mode="all")
    value = trained.predictor.predict([3]).values[0, 1]
    assert found.answer.name == "degrees" and found.probability_without is None
    every = trained.predictor.explain(3)
    assert every.answer.name == "metres" and every.answer.value == approx(trained.predictor.predict([3]).values[0, 0])
    assert abs(found.answer.value - value) < 0.1 and np.allclose(found.value_without + found.effect, found.answer.value)
    assert found.rows(1)[0]["value_without"] == found.value_without[0] and "degrees" in repr(found)
    with pytest.raises(GatasError, match=r"there is no number 'degree'\. Did you mean 'degrees'"):
        trained.predictor.explain(3, answer="degree")


def test_a_spread_is_over_draws(trained):
    predictor = trained.predictor
    found = predictor.predict([3, 4], draws=5)
    each = [
        trained.model.in_units(predictor.exact.apply_head(predictor.exact.represent(np.array([3, 4]), "sample", -1 - draw)))
        for draw in range(5)
    ]
    expected = torch.stack(each)
    assert found.values == approx(expected.mean(0).numpy()) and found.deviations == approx(expected.std(0).numpy())
    assert found.table().column_names == ["id", "metres", "degrees", "sd(metres)", "sd(degrees)"]


@pytest.mark.slow
def test_a_run_comes_back_from_its_folder(trained, tmp_path):
    import gatas

    trained.save(tmp_path)
    predictor = gatas.load(tmp_path, device="cpu")
    assert np.array_equal(predictor.predict(np.arange(60)).values, trained.predictor.predict(np.arange(60)).values)
    assert (tmp_path / "predictions.png").exists() and not (tmp_path / "classes.csv").exists()


@pytest.mark.slow
def test_seeds_side_by_side_are_as_alone():
    dataset = heights()
    config = Config.model_validate(
        {"model": {**SMALL, "num_steps": 2}, "training": {k: v for k, v in QUICK.items() if k != "device"}}
    )
    together = fit_many(config, [0, 1], dataset=dataset, device="cpu")
    for run in together:
        (alone,) = fit_many(config, [run.seed], dataset=dataset, device="cpu")
        assert run.metrics["test"]["mae"] == approx(alone.metrics["test"]["mae"], rel=1e-3)


def test_a_single_number_needs_no_name_and_no_matrix():
    targets = NumberTargets(np.arange(4.0), (), {"train": np.array([0, 1])})
    assert targets.names == ("target",) and targets.values.shape == (4, 1) and targets.task == "node regression"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.inf], "node 1: number 0 is inf; expected a finite one, or NaN"),
        (["a", "b"], "expected (nodes,) or (nodes, targets) numbers"),
        ([np.nan, 1.0], "no training node has a number for 'target'"),
    ],
)
def test_wrong_numbers_are_refused(values, message):
    with pytest.raises(GraphError) as error:
        NumberTargets(np.array(values), (), {"train": np.array([0])})
    assert message in str(error.value)


def test_nodes_of_a_split_have_a_number():
    dataset = heights(targets=1)
    values = dataset.number_targets.values.copy()
    values[2] = np.nan
    with pytest.raises(GraphError, match="split 'train': node 2 has no number"):
        type(dataset).for_numbers(dataset.graph, values, dataset.splits)


def test_classes_and_numbers_are_not_taken_for_one_another():
    with pytest.raises(GatasError, match="camps is for node classification; a NodeRegressor needs numbers"):
        regressor(camps())
    with pytest.raises(GatasError, match="heights is for node regression, which a NodeClassifier does not learn"):
        fit(classifier(camps()), heights(), **QUICK)
    with pytest.raises(ConfigError, match=r"training\.label_smoothing is for classes of nodes"):
        make_task(heights(), TrainingConfig(label_smoothing=0.1))


def test_the_loss_of_a_training_is_the_one_that_was_asked_for():
    losses = [
        fit(regressor(heights(), seed=0), heights(), seed=0, regression_loss=kind, **QUICK).history[0]["loss"]
        for kind in ("squared", "huber")
    ]
    assert losses[1] < losses[0]  # half the square, or less
