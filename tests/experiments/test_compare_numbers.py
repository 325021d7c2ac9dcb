"""`compare` where numbers of nodes are predicted: a table of R², MAE and RMSE, and who can learn numbers at all."""

import re

import pytest

from gatas.errors import ConfigError
from gatas.experiments import comparison_data, recipes
from gatas.experiments.baselines import PEERS
from gatas.experiments.compare import compare, render
from gatas.experiments.contenders import Looped, check_models, contender
from gatas.experiments.report import report
from gatas.training.limit import Limit
from tests.experiments.records import record
from tests.tasks.toys import camps, heights

NUMBERS = {"r2": 0.8, "mae": 12345.678, "rmse": 20000.0}
OF_EACH = {"income": {"r2": 0.9, "mae": 24691.0, "rmse": 3e4}, "a.b": {"r2": 0.7, "mae": 0.25, "rmse": 0.5}}
ABOUT = {"task": "node regression", "data": "heights"}


def test_one_number_has_columns_of_its_metrics():
    runs = [{"seed": 0, "test": {**NUMBERS, "by_target": {"income": OF_EACH["income"]}}}]
    table = render(heights(targets=1), {"gatas": record(**ABOUT, runs=runs)})
    assert "| model | R² | MAE | RMSE | seeds | R² against gatas (95 %) |" in table
    assert "| gatas | 80.00 | 1.235e+04 | 2e+04 | 1 | – |" in table
    assert "MAE and RMSE are in the units of the data" in table


def test_numbers_of_different_units_have_columns_of_their_own():
    runs = [{"seed": 0, "test": {**NUMBERS, "by_target": OF_EACH}}]
    table = render(heights(), {"gatas": record(**ABOUT, runs=runs)})
    assert "| model | R² | MAE of income | RMSE of income | MAE of a.b | RMSE of a.b | seeds |" in table
    assert "| 80.00 | 2.469e+04 | 3e+04 | 0.25 | 0.5 | 1 |" in table


@pytest.mark.slow
def test_models_are_compared_on_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison_data, "load_dataset", lambda name, _: heights())
    small = {"model": {"sample_size": 5, "num_heads": 1, "hidden_size": 8}}
    monkeypatch.setitem(recipes.OWN, "heights", small)
    models = ["gatas", "mlp", "gcn"]
    table = compare(["heights"], models, tmp_path, seeds=2, trials=2, limit=Limit(epochs=2), device="cpu")
    assert re.search(r"\| gcn \| [-\d.]+ ± [\d.]+ \| [\d.]+ ± [\d.e-]+ \|.*\| 2, all cut at 2 epochs \| [-+][\d.]+ \(", table)
    text = report(tmp_path, tmp_path, tmp_path / "report").markdown.read_text()
    assert "MAE of metres" in text and "Left out" not in text


@pytest.mark.parametrize("name", ["label-propagation", "grand"])
def test_who_cannot_learn_numbers_is_refused_before_anything_is_trained(name):
    with pytest.raises(
        ConfigError, match=f"{name} predicts classes of nodes, which heights is not for. Known there: gatas, mlp"
    ):
        check_models([name], [heights()])
    check_models([name], [heights(), camps()])


@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.learns_numbers and not peer.typed])
def test_every_other_peer_has_settings_for_numbers(name):
    given = contender(name, heights())
    assert isinstance(given, Looped) and not given.config.training.consistency
