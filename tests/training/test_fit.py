"""`fit`: a function of data, settings and seed, that ends with the best weights."""

from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from gatas.errors import ConfigError, GatasError, TrainingError
from gatas.inference import fit
from gatas.tasks import NodeTask
from tests.tasks.toys import camps, classifier, labelled_graphs, likes, predictor

QUICK: dict[str, Any] = {"epochs": 4, "batch_size": 4, "learning_rate": 0.01}


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def without_times(history):
    return [{name: value for name, value in entry.items() if not name.endswith("seconds")} for entry in history]


def only(dataset, *names):
    splits = {name: dataset.splits[name] for name in names}
    return dataset.with_splits(splits)


@pytest.mark.parametrize(("make", "dataset"), [(classifier, camps()), (predictor, likes())])
def test_a_run_is_a_function_of_its_seed(make, dataset):
    model = make(dataset, seed=9)
    runs, ends = [], []
    for seed in (3, 3, 4):
        runs.append(fit(model, dataset, seed=seed, **QUICK))
        ends.append(weights(model))
    assert same(ends[0], ends[1]) and not same(ends[0], ends[2])
    assert without_times(runs[0].history) == without_times(runs[1].history) != without_times(runs[2].history)
    assert runs[0].metrics == runs[1].metrics


def test_a_run_does_not_depend_on_torchs_own_random_numbers():
    model, ends = classifier(camps()), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        fit(model, camps(), **QUICK)
        ends.append(weights(model))
    assert same(*ends)


def test_two_camps_are_told_apart():
    run = fit(classifier(camps()), camps(), epochs=40, batch_size=5, learning_rate=0.01, patience=40)
    assert run.metrics["test"]["accuracy"] >= 0.9
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]


@pytest.mark.filterwarnings("ignore:the (training|validation) loss rose")
def test_links_of_a_circle_are_learned():
    dataset = likes()
    run = fit(
        predictor(dataset, dropout=0),
        dataset,
        epochs=60,
        batch_size=60,
        learning_rate=0.02,
        l2=0,
        patience=60,
        negatives="once",
    )
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]
    assert run.metrics["test"]["by_type"]["likes"]["positives"] == 2


def test_a_warm_start_goes_on_from_the_weights_there_are():
    dataset, model = camps(), classifier(camps(), seed=5)
    before = weights(model)
    cold = fit(model, dataset, **{**QUICK, "epochs": 1}).history[0]["loss"]
    model.load_state_dict(before)
    warm = [fit(model, dataset, warm_start=True, **{**QUICK, "epochs": 5}).history[0]["loss"] for _ in range(2)]
    assert cold != warm[0] and warm[1] < warm[0]


@pytest.mark.parametrize("monitor", ["metric", "loss"])
@pytest.mark.parametrize(("make", "dataset", "metric"), [(classifier, camps(), "accuracy"), (predictor, likes(), "roc_auc")])
def test_training_ends_when_validation_has_not_improved_and_keeps_the_best_weights(make, dataset, metric, monitor):
    run = fit(make(dataset), dataset, epochs=60, batch_size=5, learning_rate=0.05, patience=3, monitor=monitor)
    scores = [(entry[f"valid_{metric}"] if monitor == "metric" else 0, -entry["valid_loss"]) for entry in run.history]
    best = run.metrics["best_epoch"]
    assert len(run.history) == run.metrics["epochs"] == best + 4 < 60
    assert best == scores.index(max(scores))  # of equal metrics the smaller loss
    for name in ("loss", metric):
        assert run.metrics["valid"][name] == approx(run.history[best][f"valid_{name}"])


def test_without_validation_all_epochs_are_run_and_the_last_weights_kept():
    dataset = only(camps(), "train", "test")
    model = classifier(dataset)
    run = fit(model, dataset, patience=1, **QUICK)
    assert (run.metrics["best_epoch"], run.metrics["epochs"], len(run.history)) == (3, 4, 4)
    assert "last epoch 4 of 4" in repr(run)
    assert "valid" not in run.metrics and "test" in run.metrics
    assert not same(weights(model), weights(classifier(dataset)))


def test_validation_changes_nothing_but_which_weights_are_kept():
    with_it, without = (fit(classifier(camps()), data, **QUICK).history for data in (camps(), only(camps(), "train")))
    assert [entry["loss"] for entry in with_it] == [entry["loss"] for entry in without]


@pytest.mark.parametrize(("make", "dataset"), [(classifier, camps()), (predictor, likes())])
@pytest.mark.parametrize("mode", ["sample", "top", "all"])
def test_evaluation_looks_at_neighbours_as_asked(make, dataset, mode):
    run = fit(make(dataset, sample_size=2), dataset, evaluation_mode=mode, **QUICK)
    plain = fit(make(dataset, sample_size=2), dataset, **QUICK)
    assert [entry["loss"] for entry in run.history] == [entry["loss"] for entry in plain.history]
    losses = [[entry["valid_loss"] for entry in each.history] for each in (run, plain)]
    assert (losses[0] == losses[1]) == (mode == "sample")


def of_all(measured):
    """Return what is measured of all classes together."""
    return {name: value for name, value in measured.items() if name not in ("by_class", "calibration")}


def test_evaluation_of_all_neighbours_is_that_of_a_model_asked_for_all():
    dataset = camps()
    run = fit(classifier(dataset, sample_size=2), dataset, evaluation_mode="all", **QUICK)
    nodes = torch.from_numpy(np.sort(dataset.splits["test"]))
    with torch.no_grad():
        logits = run.model.eval()(nodes, mode="all")
    measured = NodeTask(dataset, 4).measure(logits, "test")
    assert of_all(run.metrics["test"]) == approx(measured)


def test_several_draws_are_averaged_as_probabilities():
    dataset = camps()
    run = fit(classifier(dataset, sample_size=2), dataset, evaluation_draws=3, **QUICK)
    nodes = torch.from_numpy(np.sort(dataset.splits["test"]))
    with torch.no_grad():
        draws = [run.model.eval()(nodes, draw=torch.tensor(-1 - draw)).softmax(-1) for draw in range(3)]
    mean = NodeTask(dataset, 4).measure(torch.stack(draws).mean(0).log(), "test")
    assert of_all(run.metrics["test"]) == approx(mean, abs=1e-6)


def test_the_rate_falls_along_a_cosine_if_asked_to():
    rates = {
        schedule: [entry["loss"] for entry in fit(classifier(camps()), camps(), schedule=schedule, **QUICK).history]
        for schedule in ("constant", "cosine")
    }
    assert rates["constant"][0] == rates["cosine"][0]  # the first epoch has the whole rate
    assert rates["constant"][1:] != rates["cosine"][1:]


def test_the_last_epochs_of_a_cosine_hardly_move():
    dataset = only(camps(), "train")
    moved = []
    for epochs in (39, 40):
        model = classifier(dataset, dropout=0)
        start = weights(model)["head.output.weight"]
        fit(model, dataset, schedule="cosine", **{**QUICK, "epochs": epochs})
        moved.append(weights(model)["head.output.weight"] - start)
    assert (moved[0] - moved[1]).norm() < 0.1 * moved[0].norm()


def test_progress_is_reported_epoch_by_epoch():
    seen: list[dict[str, Any]] = []
    fit(classifier(camps()), camps(), report=seen.append, **QUICK)
    assert [entry["epoch"] for entry in seen] == [0, 1, 2, 3]
    assert {"loss", "valid_loss", "valid_accuracy", "depth", "seconds", "seeds", "epochs"} <= set(seen[0])


def test_depth_is_learned():
    run = fit(classifier(camps()), camps(), **QUICK)
    first, last = (np.array(run.history[at]["depth"]) for at in (0, -1))
    assert first.sum() == approx(1) and last.sum() == approx(1) and len(last) == 3 and not np.allclose(first, last)


def test_l2_makes_weights_smaller():
    dataset = only(camps(), "train")
    norms = []
    for l2 in (0.0, 1.0):
        model = classifier(dataset)
        fit(model, dataset, l2=l2, **{**QUICK, "epochs": 15})
        norms.append(model.head.output.weight.norm().item())
    assert norms[1] < 0.8 * norms[0]


@pytest.mark.parametrize(("make", "own", "other"), [(classifier, camps(), likes()), (predictor, likes(), camps())])
def test_data_of_another_task_is_refused_in_a_line(make, own, other):
    with pytest.raises(GatasError, match=rf"{other.name} is for .*, which a \w+ does not learn\.$") as error:
        fit(make(own), other)
    assert "\n" not in str(error.value)
    with pytest.raises(GatasError, match="does not learn"):
        fit(make(other), other)


def test_data_that_the_model_was_not_made_for_is_refused():
    with pytest.raises(GatasError, match=r"the model was made for 30 nodes and even, odd, but camps has 33 and even, odd"):
        fit(classifier(camps()), camps(33))


def test_data_without_anything_to_learn_from_is_refused():
    with pytest.raises(TrainingError, match="camps has no split 'train'"):
        fit(classifier(camps()), only(camps(), "test"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(ConfigError, match=r"device is 'cuda', but torch sees no GPU here\. Use 'cpu', or 'auto'"):
        fit(classifier(camps()), camps(), device="cuda")


def test_an_unknown_device_is_refused():
    with pytest.raises(ConfigError, match="there is no device 'abacus'"):
        fit(classifier(camps()), camps(), device="abacus")


def test_an_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"there is no setting 'learning_rates'\. Did you mean 'learning_rate'"):
        fit(classifier(camps()), camps(), learning_rates=0.1)  # type: ignore[call-arg]


@pytest.mark.parametrize("several", [True, False])
def test_batches_by_graph_learn_too(several):
    dataset = labelled_graphs(several=several)
    run = fit(classifier(dataset), dataset, by_graph=True, **{**QUICK, "epochs": 15, "batch_size": 3})
    assert run.history[-1]["loss"] < run.history[0]["loss"]
