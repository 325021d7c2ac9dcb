"""What MLflow is told; it is not installed here, so a stand-in listens."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from gatas.errors import GatasError
from gatas.experiments.recipes import recipe
from gatas.inference import fit_many
from gatas.training.mlflow import MlflowTracker, flat

CONFIG = recipe("digits").with_settings(
    {"training.schedule": "constant", "model.sample_size": 5, "model.num_heads": 1, "model.num_steps": 1, "training.epochs": 2}
)


class Client:
    """As much of mlflow.MlflowClient as is used, with its names and arguments."""

    runs: dict[str, SimpleNamespace] = {}  # noqa: RUF012

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id="1") if name == "known" else None

    def create_experiment(self, name):
        return f"new {name}"

    def create_run(self, experiment_id, start_time=None, tags=None, run_name=None):
        run = SimpleNamespace(experiment=experiment_id, name=run_name, params={}, metrics={}, status="RUNNING")
        self.runs[run_name] = run
        return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

    def log_batch(self, run_id, metrics=(), params=(), tags=(), synchronous=None):
        self.runs[run_id].params |= {param.key: param.value for param in params}
        for metric in metrics:
            self.runs[run_id].metrics.setdefault(metric.key, {})[metric.step] = metric.value

    def set_terminated(self, run_id, status=None, end_time=None):
        self.runs[run_id].status = status


@pytest.fixture
def mlflow(monkeypatch):
    module, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    entities.Param = lambda key, value: SimpleNamespace(key=key, value=value)  # type: ignore[attr-defined]
    entities.Metric = lambda key, value, timestamp, step: SimpleNamespace(  # type: ignore[attr-defined]
        key=key, value=value, timestamp=timestamp, step=step
    )
    module.MlflowClient, module.entities = Client, entities  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.setattr(Client, "runs", {})
    return Client


def test_every_seed_is_a_run_with_settings_epochs_and_results(mlflow):
    with MlflowTracker(CONFIG, [3, 4]) as tracker:
        runs = fit_many(CONFIG, [3, 4], report=tracker)
        tracker.finish(runs)
    logged = mlflow.runs["digits, seed 4"]
    assert logged.experiment == "new gatas" and logged.status == "FINISHED"
    assert logged.params["model.sample_size"] == "5" and logged.params["seed"] == "4"
    assert logged.metrics["loss"] == {epoch: runs[1].history[epoch]["loss"] for epoch in range(2)}
    assert logged.metrics["depth.1"][1] == runs[1].history[1]["depth"][1]
    best = runs[1].metrics["best_epoch"]
    assert logged.metrics["test.accuracy"] == {best: runs[1].metrics["test"]["accuracy"]}


def test_epochs_from_before_a_resumption_are_logged_too(mlflow, tmp_path):
    fit_many(CONFIG.with_settings({"training.epochs": 1}), [0], folder=tmp_path)
    with MlflowTracker(CONFIG, [0], experiment="known", name="mine") as tracker:
        tracker.finish(fit_many(CONFIG, [0], folder=tmp_path, report=tracker))
    assert set(mlflow.runs["mine, seed 0"].metrics["loss"]) == {0, 1} and mlflow.runs["mine, seed 0"].experiment == "1"


@pytest.mark.parametrize(("error", "status"), [(ValueError, "FAILED"), (KeyboardInterrupt, "KILLED")])
def test_a_training_that_ends_early_is_not_called_finished(mlflow, error, status):
    with pytest.raises(error), MlflowTracker(CONFIG, [0]):
        raise error
    assert mlflow.runs["digits, seed 0"].status == status


def test_names_hold_only_what_mlflow_allows():
    content = {"test": {"by_type": {"uncle (or) aunt": {"roc_auc": 1}}}, "depth": [0.5, 0.5]}
    assert list(flat(content)) == [("test.by_type.uncle _or_ aunt.roc_auc", 1.0), ("depth.0", 0.5), ("depth.1", 0.5)]


def test_a_missing_mlflow_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(GatasError, match=r"pip install 'gatas\[mlflow\]'"):
        MlflowTracker(CONFIG, [0])
