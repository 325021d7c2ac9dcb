"""However a driver ends, its workers end with it, and the next goes on from there."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from gatas.graph import Graph
from gatas.transitions import Transitions
from tests.scale.test_same_bytes import digest
from tests.scale.toys import ENGINES

NUM_PARTS = 30


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Some seconds of work; and what comes of it."""
    folder, random = tmp_path_factory.mktemp("stored"), np.random.default_rng(0)
    source, target = random.integers(0, 20_000, (2, 180_000))
    graph = Graph.from_edges(source, target, num_nodes=20_000, inverse=True)
    graph.save(folder / "graph")
    Transitions.build(graph, 3, max_candidates=20).save(folder / "whole")
    return folder


def command(stored: Path, out: Path, engine: str, *more: str) -> list[str]:
    workers = [] if engine == "serial" else ["--workers", "2"]
    given = ["--steps", "3", "--max-candidates", "20", "--threads", "1", "--engine", engine, "--parts", str(NUM_PARTS)]
    code = "import sys; sys.argv[0] = 'gatas'; from gatas.cli import main; main()"
    return [
        sys.executable,
        "-c",
        code,
        "transitions",
        "build",
        str(stored / "graph"),
        "--out",
        str(out),
        *given,
        *workers,
        *more,
    ]


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(arguments, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def parts_of(job: Path) -> list[Path]:
    return [path for path in job.glob("parts/*") if not path.name.startswith(".")]


def wait_for_a_part(driver: subprocess.Popen[str], job: Path) -> list[psutil.Process]:
    """Gives the driver's children."""
    while not parts_of(job):
        if driver.poll() is not None:
            raise AssertionError(driver.communicate())
        time.sleep(0.02)
    return psutil.Process(driver.pid).children(recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_leaves_no_children_and_the_same_command_goes_on(stored, tmp_path, engine):
    job = tmp_path / ".out.job"
    driver = start(command(stored, tmp_path / "out", engine))
    children = wait_for_a_part(driver, job)
    os.killpg(driver.pid, signal.SIGINT)  # as Ctrl-C on a terminal: to all
    interrupted = time.monotonic()
    out, err = driver.communicate(timeout=60)
    assert time.monotonic() - interrupted < (30 if engine == "ray" else 2)
    assert driver.returncode == 130 and out == ""
    assert "Traceback" not in err and "interrupted; what is done is kept in" in err
    assert bool(children) == (engine != "serial") and not psutil.wait_procs(children, timeout=20)[1]
    before = len(parts_of(job))
    assert 0 < before < NUM_PARTS and not (tmp_path / "out").exists()
    again = subprocess.run(command(stored, tmp_path / "out", "pool"), capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    assert f"transitions  {before} of {NUM_PARTS} parts" in again.stderr and f"{NUM_PARTS} of {NUM_PARTS} parts" in again.stderr
    assert digest(tmp_path / "out") == digest(stored / "whole") and not job.exists()


def wait_for_workers(driver: subprocess.Popen[str]) -> list[psutil.Process]:
    """Gives the driver's children in the moment that there are some: they import what they need."""
    while not (children := psutil.Process(driver.pid).children(recursive=True)):
        assert driver.poll() is None
        time.sleep(0.01)
    return children


def still_run(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; whoever inherits an ended one may take seconds to ask for its exit code."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at_work", [False, True])
def test_workers_of_a_pool_end_in_the_moment_that_their_driver_is_killed(stored, tmp_path, at_work):
    driver = start(command(stored, tmp_path / "out", "pool", "--job", str(tmp_path / "job")))
    children = wait_for_a_part(driver, tmp_path / "job") if at_work else wait_for_workers(driver)
    driver.kill()
    killed = time.monotonic()
    while still_run(children):
        assert time.monotonic() - killed < 2.0  # on a busy machine; else it takes a tenth
        time.sleep(0.01)
    _, err = driver.communicate(timeout=60)
    if at_work:  # a worker whose driver is gone before it has read what to do ends with Python's own words
        assert all(line.startswith("transitions  ") for line in err.splitlines()), err
    assert "leaked" not in err


THREAD = """
import sys, threading, time
from gatas.scale import open_engine
def drive():
    with open_engine("pool", 1) as pool:
        future = pool.submit(eval, "__import__('os').getpid()")
        print(future.result(), flush=True)
        pool.submit(time.sleep, 1000).result()
threading.Thread(target=drive, daemon=True).start()
time.sleep(1000)
"""


def test_workers_that_a_thread_has_started_end_with_the_driver_too():
    driver = start([sys.executable, "-c", THREAD])
    assert driver.stdout is not None
    worker = psutil.Process(int(driver.stdout.readline()))
    assert still_run([worker])
    driver.kill()
    killed = time.monotonic()
    while still_run([worker]):
        assert time.monotonic() - killed < 2.0
        time.sleep(0.01)
    assert driver.communicate(timeout=60)[1] == ""


@pytest.mark.slow
def test_workers_on_ray_end_with_a_driver_that_is_killed(stored, tmp_path):
    driver = start(command(stored, tmp_path / "out", "ray", "--job", str(tmp_path / "job")))
    children = wait_for_a_part(driver, tmp_path / "job")
    agents = [child for child in children if child.name().endswith("Agent")]  # of Ray: look for their parent twice a minute
    driver.kill()
    driver.communicate(timeout=60)
    workers = [child for child in children if child not in agents]
    assert workers and not psutil.wait_procs(workers, timeout=60)[1]
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_two_commands_at_once_share_a_job(stored, tmp_path):
    both = [start(command(stored, tmp_path / "out", "pool", "--overwrite")) for _ in range(2)]
    ends = [driver.communicate(timeout=300) for driver in both]
    assert [driver.returncode for driver in both] == [0, 0], ends
    assert digest(tmp_path / "out") == digest(stored / "whole") and list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.fixture
def small_disk(tmp_path):
    """Two megabytes, where this process may mount."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_disk_that_fills_up_is_one_line_and_no_loss(stored, small_disk, tmp_path, engine):
    job = small_disk / "job"
    filled = subprocess.run(
        command(stored, tmp_path / "out", engine, "--job", str(job)), capture_output=True, text=True, timeout=300
    )
    assert filled.returncode == 1 and "Traceback" not in filled.stderr
    assert filled.stderr.splitlines()[-1].startswith("error: ") and "could not be written" in filled.stderr
    assert not (tmp_path / "out").exists()
