"""The fault suite, short: each fault once on most jobs. `make faults` runs the long one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.suite import FAULTS, damaged, is_one_line
from tests.faults.world import bytes_lost

ROOT = Path(__file__).parents[2]
SHORT = ("ingest", "transitions", "training", "serving", "damage")  # the others take long to start


@pytest.mark.slow
def test_every_fault_is_survived_with_no_byte_lost():
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--rounds", "1", "--json", "--only", *SHORT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["survived"] == row["injected"] and row["bytes_lost"] == 0 for row in rows), rows
    injected = {(row["job"], row["fault"]) for row in rows if row["injected"] or "only root" in row["said"]}
    certain = [fault for fault in FAULTS if fault != "kill -9 at a random moment"]  # which may come too late
    assert {(job, fault) for job in SHORT[:3] for fault in certain} <= injected
    assert ("serving", "kill -9 at a random moment") in injected


def test_damage_that_nobody_finds_is_a_loss(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("content")
    monkeypatch.setattr("tests.faults.suite.verified", lambda path: None)
    for row in damaged("file", tmp_path, 2, 0):
        assert (row.injected, row.survived, row.bytes_lost) == (2, 0, 2) and row.said == "not found in file"


def test_what_differs_is_lost():
    expected = {"same": b"12", "other": b"345", "missing": b"6789"}
    assert bytes_lost(expected, {"same": b"12", "other": b"34", "new": b"1"}) == 7
    assert bytes_lost(expected, expected) == 0


def test_a_stack_trace_is_not_survival():
    assert is_one_line(1, "progress\nerror: the disk is full. Make room.\n")
    assert not is_one_line(1, "Traceback (most recent call last)\nerror: the disk is full.\n")
    assert not is_one_line(2, "error: the disk is full.\n") and not is_one_line(1, "OSError: the disk is full.\n")
