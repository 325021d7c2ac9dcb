"""Training on several processes: what one would have learned, whatever happens to them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gatas.errors import ConfigError
from gatas.scale.processes import together
from gatas.training.group import ALONE, Group
from tests.scale.several import LONG, SIZES
from tests.training.test_resume import ONE_THREAD, untimed_history

ROOT = Path(__file__).parents[2]
DRIFT = 0.01  # of weights whose gradients are nothing but rounding, which NAdam makes large: rings have few neighbours to weigh
ENVIRONMENT = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder that tests/scale/several.py has worked in."""
    folder = tmp_path_factory.mktemp("several")
    command = [sys.executable, "-W", "error", "-m", "tests.scale.several", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def said(folder):
    return [path.read_text() for path in sorted(folder.parent.glob(f"{folder.name}.said-*"))]


def curves(run):
    names = [name for name in run["history"][0] if not name.endswith("seconds")]
    return {name: torch.tensor([epoch[name] for epoch in run["history"]]) for name in names}


@pytest.mark.long
@pytest.mark.parametrize("work", ["nodes", "consistency", "numbers", "weighted", "labels", "links", "lists", "seen", "seeds"])
@pytest.mark.parametrize("size", SIZES[1:])
def test_several_learn_what_one_learns(several, work, size):
    alone = torch.load(several / work / "1" / "0.pt", weights_only=True)
    for rank in range(size):
        found = torch.load(several / work / str(size) / f"{rank}.pt", weights_only=True)
        for own, expected in zip(found, alone, strict=True):
            assert len(own["history"]) == len(expected["history"]) > 2
            torch.testing.assert_close(curves(own), curves(expected), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(own["weights"], expected["weights"], rtol=1e-3, atol=DRIFT if work == "labels" else 1e-4)
            assert own["metrics"]["best_epoch"] == expected["metrics"]["best_epoch"]


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES[1:])
def test_processes_end_with_the_very_same_weights(several, size):
    first, *others = (torch.load(several / "nodes" / str(size) / f"{rank}.pt", weights_only=True) for rank in range(size))
    for other in others:
        assert all(torch.equal(tensor, first[0]["weights"][name]) for name, tensor in other[0]["weights"].items())


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES[1:])
def test_evaluation_is_shared_and_exact(several, size):
    (alone,) = torch.load(several / "evaluated" / "1" / "0.pt", weights_only=True)
    for rank in range(size):
        (found,) = torch.load(several / "evaluated" / str(size) / f"{rank}.pt", weights_only=True)
        assert torch.equal(found["weights"]["logits"], alone["weights"]["logits"]) and found["metrics"] == alone["metrics"]


@pytest.mark.long
@pytest.mark.parametrize("way", ["killed", "stopped both", "stopped one"])
def test_a_training_that_is_started_again_ends_with_the_same_bytes(several, way):
    assert (several / f"{way}.codes").read_text() == "0 0"
    for name in ("weights.safetensors", "metrics.json", "about.json", "config.yaml"):
        assert (several / way / name).read_bytes() == (several / "undisturbed" / name).read_bytes(), name
    assert (
        untimed_history(several / way) == untimed_history(several / "undisturbed")
        and len(untimed_history(several / way)) == LONG["epochs"]
    )


@pytest.mark.long
@pytest.mark.parametrize("whom", ["both", "one"])
def test_sigterm_to_any_saves_and_ends_all_with_143(several, whom):
    assert (several / f"stopped {whom}.stopped").read_text() == "143 143" and said(several / f"stopped {whom}") == ["", ""]


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "codes", "message"),
    [
        ("infinite", "1 1", "the state before that epoch is saved in"),
        ("other data", "1 1", "process 1 would train something else than process 0: graph is"),
        ("refused", "1 1 1", "error: row 7 is bad."),
        ("died", "1 1 -9", "error: process 2 of 3 has died. Start again to go on from the last checkpoint"),
        ("hung", "1 1 None", "error: process 2 of 3 did not answer for 3 seconds: it hangs, or needs a larger --timeout"),
    ],
)
def test_what_ends_one_ends_all_and_is_said_once(several, way, codes, message):
    assert (several / f"{way}.codes").read_text() == codes
    (said_once,) = [text for text in said(several / way) if text]
    assert message in said_once and said_once.count("\n") == 1


def test_a_share_has_every_row_once_and_none_is_empty():
    batch = {"target": torch.arange(5), "weight": torch.ones(5)}
    groups = [Group() for _ in range(7)]
    for rank, group in enumerate(groups):
        group.rank, group.size = rank, len(groups)
    shares = [group.share(batch) for group in groups]
    assert torch.cat([share["target"][share["weight"] > 0] for share in shares]).sort().values.tolist() == [0, 1, 2, 3, 4]
    assert all(len(share["target"]) == 1 for share in shares)
    assert ALONE.share(batch) is batch


def test_one_process_needs_no_torchrun(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with together() as group:
        assert group is ALONE


def test_half_an_environment_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ConfigError, match="WORLD_SIZE is set, but not RANK"), together():
        pass


def test_python_m_gatas_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "gatas", "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == __import__("gatas").__version__
