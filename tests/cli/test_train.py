"""`gatas train`, `gatas evaluate` and `gatas config`."""

import json
import signal
import sys

import pytest
import yaml

from gatas.experiments.recipes import names, recipe
from gatas.inference import fit_many
from gatas.training import Config
from gatas.training.mlflow import flat

SMALL = ["model.sample_size=5", "model.num_heads=1", "model.num_steps=1", "training.epochs=2"]
SET = [part for setting in SMALL for part in ("--set", setting)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    settings = {"model.sample_size": 5, "model.num_heads": 1, "model.num_steps": 1, "training.epochs": 2}
    fit_many(recipe("digits").with_settings(settings), [0, 1], folder=folder)
    return folder


def test_train_prints_metrics_depth_and_where_things_are(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = gatas("train", "digits", *SET)
    assert code == 0 and "epoch 2/2" in err and "epoch" not in out.replace("Best epoch", "")
    metrics = json.loads((tmp_path / "runs/digits/metrics.json").read_text())
    assert f"accuracy  {metrics['test']['accuracy']:.4f}" in out
    assert "Depth q: itself 0." in out and "1 step 0." in out and "runs/digits/curve.png" in out
    assert (tmp_path / "runs/digits/curve.png").exists()


def test_the_same_command_again_finds_it_finished(gatas, tmp_path):
    first = gatas("train", "digits", *SET, "--out", tmp_path / "run", "--json")
    code, out, err = gatas("train", "digits", *SET, "--out", tmp_path / "run", "--json")
    assert code == 0 and json.loads(out) == json.loads(first[1]) and "finished before" in err


def test_seconds_that_are_over_end_a_training_and_without_them_it_goes_on(gatas, tmp_path):
    limited = ("train", "digits", *SET, "--set", "training.epochs=4", "--out", tmp_path / "run", "--no-report")
    code, out, _ = gatas(*limited, "--max-seconds", 0.001)
    assert code == 0 and "Ended by --max-seconds" in out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["epochs"] == 1 and metrics["cut"] == "0.001 s"
    code, _, _ = gatas(*limited, "--max-seconds", 0.001)
    assert code == 0 and json.loads((tmp_path / "run" / "metrics.json").read_text()) == metrics
    code, out, _ = gatas(*limited)
    assert code == 0 and "Ended by" not in out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["epochs"] == 4 and "cut" not in metrics


def test_several_seeds_give_a_mean_and_a_spread(gatas, tmp_path):
    code, out, _ = gatas("train", "digits", *SET, "--seeds", 2, "--seed", 5, "--out", tmp_path / "run")
    assert code == 0 and "mean ± standard deviation of 2 seeds" in out
    assert {path.name for path in (tmp_path / "run").glob("seed-*")} == {"seed-5", "seed-6"}


def test_a_run_gets_a_report_unless_it_is_not_wanted(gatas, tmp_path):
    code, out, _ = gatas("train", "digits", *SET, "--out", tmp_path / "run")
    assert code == 0 and f"Report: {tmp_path / 'run' / 'report.html'}" in out.replace("\n", "")
    assert "Baselines without training" in (tmp_path / "run" / "report.html").read_text()
    assert gatas("verify", tmp_path / "run")[0] == 0
    page = (tmp_path / "run" / "report.html").read_bytes()
    (tmp_path / "run" / "report.html").write_bytes(page[:-1])
    code, _, err = gatas("verify", tmp_path / "run")
    assert code == 1 and "report.html" in err
    code, out, _ = gatas("train", "digits", *SET, "--out", tmp_path / "plain", "--no-report")
    assert code == 0 and "Report:" not in out and not (tmp_path / "plain" / "report.html").exists()


def test_a_report_that_cannot_be_written_is_an_error_and_comes_with_the_same_command(gatas, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("gatas.inference.files.atomic_file_with_checksum", full)
        code, _, err = gatas("train", "digits", *SET, "--out", tmp_path / "run")
    assert code == 1 and "report.html could not be written: No space left on device" in err.replace("\n", " ")
    assert not (tmp_path / "run" / "report.html").exists() and (tmp_path / "run" / "metrics.json").exists()
    assert gatas("train", "digits", *SET, "--out", tmp_path / "run")[0] == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_a_yaml_file_is_trained_under_its_own_name(gatas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, text, _ = gatas("config", "show", "digits", *SET)
    (tmp_path / "mine.yaml").write_text(text)
    code, out, _ = gatas("train", "mine.yaml", "--json")
    content = json.loads(out)
    assert code == 0 and content["folder"] == "runs/mine" and content["data"] == "digits"
    assert content["metrics"]["test"]["accuracy"]["std"] == 0 and sum(content["depth"]) == pytest.approx(1)


def test_an_interrupted_training_says_how_to_go_on(gatas, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("gatas.inference.fitting.fit_many", interrupted)
    code, out, err = gatas("train", "digits", "--out", tmp_path / "run")
    assert code == 130 and not out and "the same command goes on" in err


def test_evaluate_gives_the_numbers_of_the_run(gatas, runs):
    known = json.loads((runs / "seed-1/metrics.json").read_text())
    for split in ("valid", "test"):
        code, out, _ = gatas("evaluate", runs / "seed-1", "--split", split, "--json")
        assert code == 0 and dict(flat(json.loads(out)[split])) == pytest.approx(dict(flat(known[split])), rel=1e-5, abs=1e-9)


def test_evaluate_takes_the_folder_of_several_seeds(gatas, runs):
    code, out, _ = gatas("evaluate", runs)
    assert code == 0 and "mean ± standard deviation of 2 seeds" in out
    _, out, _ = gatas("evaluate", runs, "--json")
    assert [one["folder"] for one in json.loads(out)] == [str(runs / "seed-0"), str(runs / "seed-1")]


def test_evaluate_can_look_at_other_neighbourhoods(gatas, runs):
    losses = {
        arguments: json.loads(gatas("evaluate", runs / "seed-0", "--json", *arguments)[1])["test"]["loss"]
        for arguments in ((), ("--mode", "all"), ("--mode", "top"), ("--draws", "3"))
    }
    assert len(set(losses.values())) == 4


def test_config_show_prints_yaml_that_reads_back(gatas):
    code, out, _ = gatas("config", "show", "cora", "--set", "training.epochs=7", "--set", "model.max_candidates=null")
    config = Config.model_validate(yaml.safe_load(out))
    assert code == 0 and config == recipe("cora").with_settings({"training.epochs": 7})
    assert "# at most so many times through the training split" in out


def test_config_list_names_every_recipe(gatas):
    _, out, _ = gatas("config", "list")
    assert out.split() == names()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "digit"], "there is no recipe 'digit'. Did you mean digits"),
        (["train", "nowhere.yaml"], "there is no file nowhere.yaml"),
        (["train", "digits", "--set", "training.epoch=3"], "Did you mean 'epochs'"),
        (["train", "digits", "--set", "training.epochs=no"], "training.epochs is false"),
        (["train", "digits", "--set", "epochs=3"], "names no setting"),
        (["train", "digits", "--set", "training.epochs=["], "is no YAML"),
        (["train", "digits", "--mlflow"], "pip install 'gatas[mlflow]'"),
        (["evaluate", "{folder}"], "holds no finished run"),
        (["evaluate", "{runs}/seed-0", "--split", "tst"], "has no split 'tst'; it has train, valid, test"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, tmp_path, monkeypatch, runs, arguments, message):
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as if it were not installed
    code, out, err = gatas(*(argument.format(folder=tmp_path, runs=runs) for argument in arguments))
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
