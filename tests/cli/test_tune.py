"""`gatas tune`: what it prints and writes, stopped by Ctrl-C and gone on with."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import gatas as package

SET = ("--set", "model.sample_size=5", "--set", "model.num_steps=1", "--set", "training.epochs=2", "--device", "cpu")
HERE = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}


def obey_ctrl_c():
    """Where tests run in the background, shells have it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("model: {num_heads: [1, 2]}\ntraining: {learning_rate: {low: 0.001, high: 0.02, log: true}}\n")
    return path


def test_the_best_is_printed_written_trained_and_answers(gatas, tmp_path, space, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = gatas("tune", "digits", *SET, "--space", space, "--trials", 3)
    folder = tmp_path / "runs/digits-tuned"
    assert code == 0 and "trial 3/3" in err and "best 0." in err
    assert "3 trials; the best by validation accuracy" in out and "1 (yours)" in out and "learning_rate" in out
    metrics = json.loads((folder / "metrics.json").read_text())
    assert f"accuracy  {metrics['test']['accuracy']:.4f}" in out and "runs/digits-tuned/best.yaml" in out
    assert len(list(csv.reader((folder / "trials.csv").read_text().splitlines()))) == 4
    page = (folder / "report.html").read_text()
    assert "Report: runs/digits-tuned/report.html" in out and f"{metrics['test']['accuracy']:.4f}" in page
    code, out, _ = gatas("predict", folder, 0)
    assert code == 0 and out


def test_more_trials_go_on_and_json_has_them_all(gatas, tmp_path, space):
    arguments = ("tune", "digits", *SET, "--space", space, "--out", tmp_path / "run", "--json")
    before = json.loads(gatas(*arguments, "--trials", 1)[1])
    code, out, err = gatas(*arguments, "--trials", 2)
    after = json.loads(out)
    assert code == 0 and "going on after 1 trial" in err
    assert after["trials"][:1] == before["trials"] and len(after["trials"]) == 2 and after["metric"] == "accuracy"


def test_the_space_that_is_shown_can_be_given_back(gatas, tmp_path):
    code, out, _ = gatas("tune", "digits", "--show-space")
    content = yaml.safe_load(out)
    assert code == 0 and content["model"]["dropout"] == {"low": 0.0, "high": 0.8} and "l2" in content["training"]
    path = tmp_path / "space.yaml"
    path.write_text(out)
    assert gatas("tune", "digits", "--show-space", "--space", path)[1] == out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {dropuot: [0.1]}", "there is no setting 'model.dropuot'. Did you mean 'dropout'"),
        ("modle: {}", "the search space has 'modle'"),
        ("model: [", "could not be read as YAML"),
    ],
)
def test_errors_of_a_space_are_one_line(gatas, tmp_path, text, message):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    code, out, err = gatas("tune", "digits", *SET, "--space", path, "--out", tmp_path / "run")
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_a_search_stopped_by_ctrl_c_keeps_what_is_known_and_goes_on(gatas, tmp_path, space):
    arguments = ("tune", "digits", *SET, "--space", str(space), "--trials", "4", "--json")
    command = [sys.executable, "-m", "gatas", *arguments, "--out", str(tmp_path / "stopped")]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=HERE, preexec_fn=obey_ctrl_c, **pipes)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("trial 2/4"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and out == "" and "the same command goes on" in err and "best.yaml" in err
    assert 2 <= len((tmp_path / "stopped/trials.csv").read_text().splitlines()) - 1 < 4
    results = [json.loads(gatas(*arguments, "--out", tmp_path / name)[1]) for name in ("stopped", "undisturbed")]
    for result in results:
        for trial in result["trials"]:
            trial["seconds"] = 0
    assert results[0]["trials"] == results[1]["trials"] and results[0]["metrics"] == results[1]["metrics"]
