"""`gatas compare`, as a person stops it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOW = """
import time
from torch import nn, zeros

class Slow(nn.Module):
    training_settings = {"epochs": 1000}

    def __init__(self, dataset):
        super().__init__()
        self.bias, self.size = nn.Parameter(zeros(len(dataset.names))), len(dataset.names)

    def forward(self, target):
        print("at work", flush=True)
        time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [(), ("label-propagation",)])
def test_a_ctrl_c_ends_a_comparison_soon_and_says_what_is_kept(before, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    models = ",".join((*before, "slow:Slow"))
    arguments = ["compare", "--data", "digits", "--models", models, "--seeds", "1", "--out", "found", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gatas", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "at work\n"
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - started < 2
    where = Path("found") / "peers"
    kept = f"models and seeds that are done are kept in {where}: the same command goes on from there"
    assert (kept if before else "stopped before anything was done") in said, said
    assert "Traceback" not in said and len(list((tmp_path / where).glob("*.json"))) == len(before)
