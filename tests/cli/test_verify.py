"""`gatas verify` and `--verify`: what was damaged is found, and said in one line."""

import shutil
import subprocess

import pytest

from gatas.cli.verify import verified
from gatas.errors import GatasError
from gatas.graph import Graph
from tests.inference.conftest import digits_folder
from tests.transitions.test_properties import random_graph

__all__ = ["digits_folder"]


def flip(path, place=-1):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture
def stored(tmp_path):
    random_graph(60, 200, 2, seed=1).save(tmp_path / "graph")
    return tmp_path / "graph"


@pytest.fixture
def run(digits_folder, tmp_path):
    return shutil.copytree(digits_folder, tmp_path / "run")


def test_what_is_whole_is_said_to_be_so(gatas, stored, run, tmp_path):
    job = ("--engine", "serial", "--parts", 3, "--job", tmp_path / "job")
    assert gatas("transitions", "build", stored, "--out", tmp_path / "table", *job, "--verify")[0] == 0
    assert gatas("embed", run, "--out", tmp_path / "all.npy", "--device", "cpu", "--verify")[0] == 0
    names = {"graph": "store", "table": "store", "job": "job with 3 parts", "run": "run", "all.npy": "file"}
    code, out, err = gatas("verify", *(tmp_path / name for name in names))
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{tmp_path / name}: {what} as it was written" for name, what in names.items()]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("about.json", "about.json does not have the sha256 it was written with"),
        ("weights.safetensors", "weights.safetensors does not have the sha256"),
        ("curve.png", "curve.png does not have the sha256"),
        ("checksums.json", "checksums.json is damaged or missing"),
        ("checkpoints/history.jsonl", "history.jsonl is damaged: it is not what 000001-000000.safetensors was saved after"),
        ("checkpoints/000001-000000.safetensors", "it does not have the sha256 it was written with). Remove it"),
    ],
)
def test_a_flipped_bit_in_a_run_is_one_line_and_exit_code_1(gatas, run, name, message):
    flip(run / name, place=-40)
    code, out, err = gatas("verify", run)
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_of_several_all_are_looked_at(gatas, stored, run):
    flip(run / "ids.parquet")
    code, out, err = gatas("verify", run, stored)
    assert code == 1 and "ids.parquet does not have" in err and out == f"{stored}: store as it was written\n"


def test_what_cannot_be_verified_is_refused(stored, run, tmp_path):
    (tmp_path / "plain.csv").write_text("source,target\n")
    (tmp_path / "empty").mkdir()
    (run / "checksums.json").unlink()
    for name, message in {
        "plain.csv": "has no .plain.csv.sha256 beside it",
        "empty": "holds nothing that can be verified",
        "none": "holds nothing that can be verified",
        "run": "its run is not finished, or of an earlier version",
    }.items():
        with pytest.raises(GatasError, match=message):
            verified(tmp_path / name)


@pytest.mark.parametrize("command", ["embed {run} --out {folder}/x.npy", "predict {run} 3", "evaluate {run}", "serve {run}"])
def test_commands_refuse_a_damaged_run_where_they_are_asked_to_look(gatas, run, tmp_path, command):
    flip(run / "weights.safetensors")
    words = command.format(run=run, folder=tmp_path).split()
    code, out, err = gatas(*words, "--verify", "--device", "cpu")
    assert code == 1 and out == "" and err.count("\n") == 1 and "weights.safetensors does not have the sha256" in err


def test_a_damaged_graph_is_not_built_on(gatas, stored, tmp_path):
    flip(stored / "neighbour.npy", place=-4)
    assert Graph.open(stored).num_nodes == 60  # another edge, and nobody knows
    code, _, err = gatas("transitions", "build", stored, "--out", tmp_path / "table", "--verify")
    assert code == 1 and "neighbour.npy does not have the sha256" in err and not (tmp_path / "table").exists()


def test_a_job_is_not_gone_on_with_over_a_graph_that_was_damaged_since(gatas, stored, tmp_path):
    build = ("transitions", "build", stored, "--engine", "serial", "--job", tmp_path / "job", "--out")
    assert gatas(*build, tmp_path / "one")[0] == 0
    flip(stored / "neighbour.npy", place=-4)
    code, _, err = gatas(*build, tmp_path / "two")
    assert code == 1 and "neighbour.npy does not have the sha256" in err and not (tmp_path / "two").exists()


def test_a_file_that_is_written_again_has_a_sum_of_its_own(gatas, run, tmp_path):
    out = tmp_path / "all.npy"
    assert gatas("embed", run, "--out", out, "--device", "cpu")[0] == 0
    flip(out)
    assert gatas("verify", out)[0] == 1
    assert gatas("embed", run, "--out", out, "--device", "cpu")[0] == 0
    assert gatas("verify", out)[0] == 0


def test_the_sum_is_in_the_form_of_sha256sum(gatas, run, tmp_path):
    assert gatas("embed", run, "--out", tmp_path / "all.npy", "--device", "cpu")[0] == 0
    subprocess.run(["sha256sum", "--check", "--status", ".all.npy.sha256"], cwd=tmp_path, check=True)
