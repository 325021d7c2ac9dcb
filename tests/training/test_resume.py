"""A training that is killed at any moment goes on to the very weights it would have had."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from gatas.errors import TrainingError
from gatas.inference import fit
from tests.tasks.toys import camps, classifier

ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}


@pytest.mark.long
def test_a_training_killed_at_random_moments_ends_with_the_same_bytes(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.training.killed", str(tmp_path)],
        cwd=root,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for way in ("anywhere", "slow disk", "writing", "finishing"):  # twelve kills each
        for name in ("weights.safetensors", "metrics.json", "about.json", "config.yaml", "depth.png"):
            assert (tmp_path / way / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), f"{name} {way}"
        assert untimed_history(tmp_path / way) == untimed_history(tmp_path / "undisturbed")
        assert not list((tmp_path / way).rglob("*.tmp"))


def test_a_checkpoint_of_an_earlier_version_is_refused_in_one_line(tmp_path):
    dataset = camps()
    fit(classifier(dataset), dataset, folder=tmp_path, device="cpu", epochs=1)
    (newest,) = tmp_path.glob("checkpoints/*.safetensors")
    save_file(load_file(newest), newest, {"gatas": json.dumps({"format": 2})})
    with pytest.raises(
        TrainingError, match=r"was written by an earlier version of gatas \(format 2; this one reads 3\)"
    ) as error:
        fit(classifier(dataset), dataset, folder=tmp_path, device="cpu", epochs=2)
    assert "\n" not in str(error.value)


def untimed_history(folder):
    lines = folder.joinpath("history.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if not name.endswith("seconds")} for line in lines]
