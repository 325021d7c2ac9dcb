"""The simulation that docs/scale.md quotes, and the watching that its rates come from."""

import sys

import numpy as np
import pytest

from benchmarks.scale_report import rates
from benchmarks.simulate import Fleet, Simulation, parts_of
from benchmarks.watching import size_of, watch


def test_without_faults_parts_are_taken_in_their_order():
    run = Simulation(np.array([3.0, 1.0, 1.0, 4.0]), Fleet(2, workers=1), seed=0).run()
    assert run.seconds == 6.0  # 3, 1 + 1 + 4
    assert run.idle_or_lost == pytest.approx(1 - 9 / 12)
    assert (run.again, run.failed) == (0, 0)


def test_copies_help_against_slow_machines():
    parts = np.ones(40)
    slow = next(seed for seed in range(50) if 0 < Simulation(parts, Fleet(4, slow=0.3), seed).speed.min() < 1)
    alone = Simulation(parts, Fleet(4, workers=1, slow=0.3, slowness=20.0), slow).run()
    copied = Simulation(parts, Fleet(4, workers=1, slow=0.3, slowness=20.0, copies=True), slow).run()
    assert copied.seconds < alone.seconds


def test_failures_begin_parts_again_and_take_longer():
    parts = parts_of(20_000.0, 100.0, 0.3, seed=0)
    assert parts.sum() == pytest.approx(20_000.0)
    quiet, faulty = (Simulation(parts, Fleet(4, workers=2, hours=hours), 0).run() for hours in (np.inf, 0.2))
    assert quiet.again == 0
    assert faulty.again > 0
    assert faulty.seconds > quiet.seconds
    assert faulty == Simulation(parts, Fleet(4, workers=2, hours=0.2), 0).run()


def test_parts_that_never_end_fail_and_the_job_ends():
    run = Simulation(np.full(3, 1e9), Fleet(2, workers=1, hours=0.1), 0).run()
    assert run.failed == 3


def test_rates_are_the_line_through_the_sizes():
    rows = [{"nodes": nodes, "stage": "embed", "engine": "pool", "cpu_seconds": 2 + 3e-4 * nodes, "bytes": 8 * nodes}
            for nodes in (10**5, 10**6)]  # fmt: skip
    rows.append({"nodes": 10**7, "stage": "embed", "engine": "pool", "cpu_seconds": 1.0, "cut": "after 1 s"})
    rate = rates(rows)["embed"]
    assert (rate.fixed, rate.each, rate.bytes_each) == pytest.approx((2, 3e-4, 8))
    assert rates(rows[:1])["embed"].seconds(10**6) == pytest.approx(320)


def test_a_command_is_watched_and_cut(tmp_path):
    lines = "import pathlib, sys, time; held = bytearray(1 << 26); pathlib.Path(sys.argv[1]).write_bytes(held[:1000]); "
    lines += "time.sleep({})"
    command = [sys.executable, "-c", lines.format(1), str(tmp_path / "made")]
    row = watch(command, tmp_path, tmp_path / "log", limit=60, disk=1e9)
    assert row["seconds"] > 1
    assert row["driver"]["held"] > 1 << 26
    assert row["disk"] == size_of(tmp_path) == 1000
    assert "cut" not in row
    command = [sys.executable, "-c", lines.format(60), str(tmp_path / "made")]
    assert watch(command, tmp_path, tmp_path / "log", limit=2, disk=1e9)["cut"] == "after 2 s"
    command = [sys.executable, "-c", "raise SystemExit('no such graph')"]
    assert watch(command, tmp_path, tmp_path / "log", limit=60, disk=1e9)["failed"] == ["no such graph"]
