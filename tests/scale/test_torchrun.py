"""`torchrun ... -m gatas train`: killed, stopped and misled."""

import random
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.scale.test_processes import ENVIRONMENT, ROOT

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
SMALL = """
data: {name: digits}
model: {num_steps: 1, sample_size: 5, num_heads: 1, hidden_size: 8, neighbour_size: 8, head_size: 4}
training: {epochs: 60, batch_size: 25, patience: 1000, checkpoint_seconds: 0}
"""
SECONDS = 240


@contextmanager
def training(folder, *options):
    """Two processes that train, with what they say, and that are gone afterwards."""
    config = folder.parent / "small.yaml"
    config.write_text(SMALL)
    command = [*TORCHRUN, *options, "-m", "gatas", "train", str(config), "--out", str(folder), "--device", "cpu", "--json"]
    with (folder.parent / f"{folder.name}.said").open("a") as said:
        run = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=said, text=True)
        try:
            yield run
        finally:
            children = psutil.Process(run.pid).children() if run.poll() is None else []
            run.kill()
            run.wait()
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()


def ranks_after(run, folder, epochs):
    """The two processes, once they have saved so many epochs."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and run.poll() is None:
        saved = sorted(path.name for path in folder.glob("checkpoints/*.safetensors"))
        ranks = psutil.Process(run.pid).children()
        if saved and int(saved[-1][:6]) >= epochs and len(ranks) == 2:
            return ranks
        time.sleep(0.02)
    raise AssertionError("it has ended, or does not begin")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torchrun") / "run"
    with training(folder) as run:
        assert run.wait(SECONDS) == 0
    return folder


def end_with_a_kill(folder, *rendezvous):
    """Kill one of them some time in the middle; torchrun starts both again."""
    chance = random.Random(len(rendezvous))
    with training(folder, *rendezvous, "--max-restarts=1") as run:
        ranks = ranks_after(run, folder, 25)
        time.sleep(chance.uniform(0, 0.3))
        chance.choice(ranks).kill()
        assert run.wait(SECONDS) == 0


def assert_same(folder, expected):
    for name in ("weights.safetensors", "metrics.json"):
        assert (folder / name).read_bytes() == (expected / name).read_bytes()


@pytest.mark.long
def test_killed_and_restarted_it_ends_with_the_same_bytes(undisturbed, tmp_path):
    end_with_a_kill(tmp_path / "run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0")
    assert_same(tmp_path / "run", undisturbed)


@pytest.mark.long
def test_stopped_and_then_killed_it_ends_with_the_same_bytes(undisturbed, tmp_path):
    with training(tmp_path / "run") as run:
        ranks_after(run, tmp_path / "run", 5)
        run.terminate()
        assert run.wait(SECONDS) != 0
    said = (tmp_path / "run.said").read_text()
    assert said.count("stopped; the same command goes on from what is saved in") == 1 and "error:" not in said
    end_with_a_kill(tmp_path / "run")
    assert_same(tmp_path / "run", undisturbed)


@pytest.mark.slow
def test_an_error_is_said_once_and_not_tried_again(tmp_path):
    command = [*TORCHRUN, "--max-restarts=1", "-m", "gatas", "train", "digits", "--set", "training.epochs=0"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1 and done.stdout == "" and not list(tmp_path.iterdir())
    assert done.stderr.count("error: training.epochs is 0") == 1 and done.stderr.count("error:") == 1
