"""The core works without `gatas[experiments]`; commands that need it say so in one line."""

import os
import re
import subprocess
import sys
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
HIDDEN = f"import sys; sys.modules.update(dict.fromkeys({['markdown_it', *EXTRA]}))\n"
"""Makes imports fail, as where the extra is not installed. Jinja2 stays: PyG, which is part of the core, needs it itself."""


def run(*words, folder):
    code = f"{HIDDEN}sys.argv = {['gatas', *words]}\nfrom gatas.cli import main\nmain()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder, env=HERE)


@pytest.mark.parametrize("words", [("compare",), ("reproduce", "table1"), ("report",)])
def test_what_needs_the_extra_says_so_in_one_line(words, tmp_path):
    done = run(*words, folder=tmp_path)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"gatas {words[0]} needs markdown-it-py: pip install 'gatas[experiments]'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_all_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    with pytest.raises(GatasError, match=r"gatas report needs Jinja2 and markdown-it-py: pip install 'gatas\[experiments\]'"):
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
    others = ("gatas.experiments", "gatas.serving", "gatas.scale.ray", "gatas.__main__")  # of other extras, or runs at once
    names = [name for name, _ in modules() if not name.startswith(others) and "triton" not in name]
    code = f"{HIDDEN}import importlib\nfor name in {[*names, *CORE]}: importlib.import_module(name)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=HERE)


def test_only_experiments_import_what_the_extra_has():
    for module, tree in modules():
        roots = {name.split(".")[0] for name in imported(tree)}
        assert not roots & {*PACKAGES, "markupsafe"} or module.startswith("gatas.experiments."), module
    trees = dict(modules())
    assert not any(name.startswith("gatas.experiments") for name in imported(trees["gatas.experiments.recipes"]))


def test_the_extra_is_what_the_project_file_says():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    (listed,) = re.findall(r"^experiments = \[(.*?)\]", text, flags=re.MULTILINE)
    assert {re.split("[><=]", name)[0].lower() for name in re.findall(r'"(.*?)"', listed)} == {
        name.lower() for name in PACKAGES.values()
    }
