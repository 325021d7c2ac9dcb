"""What every engine promises, whatever happens to its workers."""

import json
import multiprocessing
import signal
import subprocess
import sys
import threading

import pytest

from gatas.errors import ConfigError, JobError, MissingExtraError
from gatas.scale import JobProgress, open_engine
from tests.scale.toys import expected, run, squares


@pytest.mark.parametrize("num_parts", [1, 7])
def test_parts_are_put_together_in_their_order(engine, tmp_path, num_parts):
    task = squares(tmp_path)
    assert run(engine, task, tmp_path, num_parts=num_parts) == {"squares": 30}
    assert (tmp_path / "out").read_bytes() == expected(task)
    assert len(task.marks()) == len(set(task.marks())) == num_parts


def test_an_exception_is_carried_over_and_the_other_parts_are_done(engine, tmp_path):
    task, states = squares(tmp_path, trouble="raise", bad=7), list[JobProgress]()
    with pytest.raises(JobError, match="1 of 6 parts failed 3 times; the first: ValueError: node 7 is poisoned Tracebacks are"):
        run(engine, task, tmp_path, report=states.append)
    (failed,) = json.loads((tmp_path / "job/failed.json").read_text())
    assert (failed["first"], failed["last"], failed["attempts"]) == (5, 10, 3)
    assert "in go_wrong" in failed["traceback"] and failed["traceback"].endswith("ValueError: node 7 is poisoned\n")
    assert not (tmp_path / "out").exists()
    assert (states[-1].done, states[-1].failed, states[-1].total) == (5, 1, 6)
    assert len(task.marks()) == 8 and task.marks().count("0000000005-0000000010") == 3


def test_what_failed_is_tried_again_by_the_next_run_and_nothing_else(engine, tmp_path):
    task = squares(tmp_path, trouble="raise", bad=7, times=3)
    with pytest.raises(JobError):
        run(engine, task, tmp_path)
    before = len(task.marks())
    run(engine, task, tmp_path, num_parts=None)
    assert (tmp_path / "out").read_bytes() == expected(task)
    assert len(task.marks()) == before + 1 and not (tmp_path / "job/failed.json").exists()


def test_a_killed_worker_is_replaced(engine, tmp_path):
    task = squares(tmp_path, trouble="kill", bad=7, times=1)
    if engine == "serial":  # is its own worker: what it had done stays
        driver = multiprocessing.get_context("spawn").Process(target=run, args=(engine, task, tmp_path))
        driver.start()
        driver.join()
        assert driver.exitcode == -signal.SIGKILL
    run(engine, task, tmp_path, num_parts=6)
    assert (tmp_path / "out").read_bytes() == expected(task)
    assert len(task.marks()) == 7 and task.marks().count("0000000005-0000000010") == 2


def test_a_part_that_kills_its_workers_does_not_take_others_with_it(engine, tmp_path):
    if engine == "serial":
        pytest.skip("such a part ends a driver that is its own worker; the next goes on from there")
    task = squares(tmp_path, trouble="kill", bad=7)
    with pytest.raises(JobError, match="1 of 6 parts failed 3 times; the first: a worker died"):
        run(engine, task, tmp_path)
    (failed,) = json.loads((tmp_path / "job/failed.json").read_text())
    assert failed["first"] == 5
    assert len(task.marks()) == 8 and len(set(task.marks())) == 6


def test_a_full_disk_stops_the_job_and_keeps_what_is_done(engine, tmp_path):
    task = squares(tmp_path, trouble="full", bad=7, times=1)
    with pytest.raises(JobError, match=r"No space left on device \d of 6 parts are done and kept: make room"):
        run(engine, task, tmp_path)
    assert task.marks().count("0000000005-0000000010") == 1 and not (tmp_path / "out").exists()
    run(engine, task, tmp_path)
    assert (tmp_path / "out").read_bytes() == expected(task)
    assert len(task.marks()) == 7


def test_two_drivers_share_a_job(engine, tmp_path):
    task, results = squares(tmp_path, 40, seconds=0.02), []

    def drive():
        results.append(run(engine, task, tmp_path, num_parts=20, keep=False))

    drivers = [threading.Thread(target=drive) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert results == [{"squares": 40}] * 2 and (tmp_path / "out").read_bytes() == expected(task)
    assert len(set(task.marks())) == 20
    assert not (tmp_path / "job").exists()  # removed by the last of them


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("serial", {"num_workers": 2}, "the engine 'serial' is one process"),
        ("pool", {"num_workers": 0}, "0 workers were asked for; expected 1 or more"),
        ("pool", {"threads": -1}, "-1 threads were asked for"),
        ("pool", {"gpus_per_worker": -1.0}, "-1.0 GPUs per worker"),
        ("pool", {"num_workers": 2, "gpus_per_worker": 2.0}, "a worker uses one, or a share of it"),
        ("pool", {"num_workers": 200, "gpus_per_worker": 1.0}, "200 workers with 1 GPUs each were asked for"),
        ("pool", {"ray_address": "auto"}, "--ray-address was given for the engine 'pool'"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(name, settings, message):
    with pytest.raises(ConfigError, match=message), open_engine(name, **settings):
        pass


def test_gpus_are_shared_out(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    with open_engine("pool", 4, gpus_per_worker=0.5) as pool:
        assert pool.gpus == ["4", "4", "7", "7"]  # type: ignore[attr-defined]


def test_more_than_the_cluster_has_is_refused(ray):
    with pytest.raises(ConfigError, match="the Ray cluster has 2 processors and 0 GPUs: not enough for a worker of 1 threads"):
        open_engine("ray", gpus_per_worker=1.0).__enter__()


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gatas\[ray\]'"):
        open_engine("ray")


def test_a_worker_that_dies_fails_its_own_call_and_the_next_finds_another():
    with open_engine("pool", 1) as pool:
        first = pool.submit(eval, "__import__('os').getpid()").result()
        with pytest.raises(Exception, match="exit code 7"):
            pool.submit(eval, "__import__('os')._exit(7)").result()
        assert pool.submit(eval, "__import__('os').getpid()").result() != first


def test_a_call_that_a_worker_cannot_begin_or_that_cannot_be_sent_fails_alone():
    with open_engine("pool", 1) as pool:
        first = pool.submit(eval, "__import__('os').getpid()").result()
        with pytest.raises(Exception, match="ZeroDivisionError"):
            pool.submit(eval, "1 / 0").result()
        with pytest.raises(Exception, match="pickle"):
            pool.submit(lambda: 1).result()
        assert pool.submit(eval, "__import__('os').getpid()").result() == first


def test_no_worker_of_a_pool_hears_a_ctrl_c_not_even_the_first():
    """In a process of its own, where the first worker starts Python's resource tracker too."""
    code = (
        "import signal; from gatas.scale import open_engine\n"
        "with open_engine('pool', 2) as pool:\n"
        "    futures = [pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []) for _ in range(2)]\n"
        "    print([signal.SIGINT in future.result() for future in futures])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[True, True]\n", done.stderr
