"""The core works without `gatas[experiments]`; commands that need it say so in one line."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gatas
from gatas.errors import GatasError
from gatas.experiments import extra
from gatas.experiments.extra import PACKAGES
from tests.test_architecture import imported, modules

CORE = ("gatas.experiments", "gatas.experiments.recipes", "gatas.experiments.extra")
EXTRA = [name for name, _ in modules() if name.startswith("gatas.experiments") and name not in CORE]
HERE = {**os.environ, "PYTHONPATH": str(Path(gatas.__file__).parents[1])}
HIDDEN = f"import sys; sys.modules.update(dict.fromkeys({['torch_geometric', *EXTRA]}))\n"
"""Makes imports fail, as where the extra is not installed. Jinja2 and markdown-it-py stay: torch and Rich need them."""


def run(*words, folder):
    code = f"{HIDDEN}sys.argv = {['gatas', *words]}\nfrom gatas.cli import main\nmain()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder, env=HERE)


@pytest.mark.parametrize("words", [("compare",), ("reproduce", "table1"), ("report",)])
def test_what_needs_the_extra_says_so_in_one_line(words, tmp_path):
    done = run(*words, folder=tmp_path)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"gatas {words[0]} needs torch-geometric: pip install 'gatas[experiments]'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_all_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    names = "Jinja2 and markdown-it-py and torch-geometric"
    with pytest.raises(GatasError, match=rf"gatas report needs {names}: pip install 'gatas\[experiments\]'"):
        extra.check_extra("report")


@pytest.mark.slow
def test_recipes_are_listed_and_trained_without_the_extra(tmp_path):
    listed = run("config", "list", folder=tmp_path)
    assert listed.returncode == 0 and "cora-default" in listed.stdout
    done = run("train", "digits", "--set", "training.epochs=1", "--device", "cpu", "--out", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "metrics.json").exists()


@pytest.mark.slow
def test_every_module_of_the_core_is_imported_without_the_extra():
    others = (
        "gatas.experiments",
        "gatas.serving",
        "gatas.scale.ray",
        "gatas.sampling.pyg",
        "gatas.tuning.search",
        "gatas.__main__",
    )
    names = [name for name, _ in modules() if not name.startswith(others) and "triton" not in name]
    code = f"{HIDDEN}import importlib\nfor name in {[*names, *CORE]}: importlib.import_module(name)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=HERE)


def test_only_experiments_import_what_the_extra_has():
    for module, tree in modules():
        roots = {name.split(".")[0] for name in imported(tree)}
        assert not roots & {"jinja2", "markdown_it", "markupsafe"} or module.startswith("gatas.experiments."), module
    trees = dict(modules())
    assert not any(name.startswith("gatas.experiments") for name in imported(trees["gatas.experiments.recipes"]))


def test_the_extra_is_what_the_project_file_says():
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = [name for name in extras["experiments"] if name != "gatas[pyg]"] + extras["pyg"]
    assert {re.split("[><=]", name)[0] for name in listed} == {name.lower() for name in PACKAGES.values()}
