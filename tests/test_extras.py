"""What an extra installs is imported when it is used; where it is missing, the command that installs it is named."""

import ast
import importlib
import sys
import tomllib
from pathlib import Path

import platformdirs
import pytest

import gatas
from gatas.errors import GatasError, MissingExtraError
from tests.test_architecture import modules

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


@pytest.fixture
def graph():
    return gatas.Graph.from_edges([0, 1], [1, 2])


@pytest.fixture
def without_pyg(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch_geometric"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)


def test_graphs_of_pyg_need_its_extra_in_both_directions(without_pyg, graph):
    for convert in (gatas.from_pyg, gatas.to_pyg, gatas.Dataset.from_pyg):
        with pytest.raises(MissingExtraError, match=r"needs PyTorch Geometric, .*: pip install 'gatas\[pyg\]'$"):
            convert(graph)


def test_data_that_pyg_downloads_needs_its_extra(without_pyg, monkeypatch, tmp_path):
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path)
    monkeypatch.delenv("GATAS_DATA", raising=False)
    for name in ("cora", "ppi"):
        with pytest.raises(
            MissingExtraError, match=rf"^{name} was not found in .*PyTorch Geometric: pip install 'gatas\[pyg\]'$"
        ):
            gatas.load_dataset(name)


def test_the_sampler_for_pyg_is_an_import_error_without_it(without_pyg, monkeypatch):
    monkeypatch.delitem(sys.modules, "gatas.sampling.pyg", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'gatas\[pyg\]'"):
        importlib.import_module("gatas.sampling.pyg")


def test_a_pyg_that_is_broken_is_not_taken_for_a_missing_one(monkeypatch):
    importlib.import_module("torch_geometric")  # whole: what the failure leaves half-imported would be found by other tests
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ModuleNotFoundError, match=r"torch_geometric\.data"):
        gatas.from_pyg([])


def test_a_search_without_optuna_is_refused_before_data_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"^tuning needs Optuna, .*: pip install 'gatas\[tune\]'$"):
        gatas.tune(gatas.Config())


def test_a_missing_extra_can_be_caught_as_ours_and_as_an_import_error():
    assert issubclass(MissingExtraError, GatasError) and issubclass(MissingExtraError, ImportError)


def test_every_extra_that_an_error_names_is_one_of_the_project():
    named = {
        node.args[1].value
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "MissingExtraError"
        if isinstance(node.args[1], ast.Constant)
    }
    assert {"serve", "pyg", "tune", "ingest", "ray", "mlflow", "experiments", "pykeen"} <= named
    assert named <= set(PROJECT["optional-dependencies"])
