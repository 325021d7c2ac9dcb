"""A job's folder: what is in it is checked, kept, and never mixed with another's."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatas.errors import GatasError, JobError
from gatas.graph import Graph
from gatas.scale import JobProgress, open_engine, run_job
from gatas.scale.finished import write_note
from gatas.scale.job import key_of
from gatas.scale.parts import Part, equal_work, write_part
from gatas.scale.task import Outline
from gatas.scale.transitions import TransitionsTask
from tests.scale.toys import Squares, expected, run, squares

FOURTH = "0000000015-0000000020"


@given(
    work=st.lists(st.floats(0, 1e9), min_size=1, max_size=60),
    num_parts=st.integers(1, 20),
    multiple=st.integers(1, 9),
)
@example(work=[0.0, 0.0, 0.0, 1.0], num_parts=2, multiple=3)
def test_cuts_are_multiples_from_first_to_last_node(work, num_parts, multiple):
    cuts = equal_work(np.array(work), num_parts, multiple)
    assert cuts[0] == 0 and cuts[-1] == len(work) and (np.diff(cuts) > 0).all()
    assert (cuts[:-1] % multiple == 0).all() and len(cuts) - 1 <= num_parts


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=60), st.integers(1, 20))
def test_no_part_has_more_than_its_share_and_one_node_more(work, num_parts):
    cuts = equal_work(np.array(work), num_parts, 1)
    largest = np.add.reduceat(work, cuts[:-1]).max()
    assert largest <= sum(work) / min(num_parts, len(work)) + max(work) + 1e-9


def test_parts_are_of_equal_work_where_nodes_are_not():
    work = 1e6 / np.arange(1, 100_001) ** 0.8
    parts = np.add.reduceat(work, equal_work(work, 20, 1)[:-1])
    assert len(parts) == 20 and parts.max() < 1.1 * parts.mean()
    assert np.add.reduceat(work, np.arange(0, 100_000, 5_000)).max() > 9 * parts.mean()


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "manifest", "another job's"])
def test_a_damaged_part_is_found_and_done_again(tmp_path, damage):
    task = squares(tmp_path)
    run("serial", task, tmp_path)
    part = tmp_path / "job/parts" / FOURTH
    if damage == "flipped":
        flip(part / "squares.npy")
    elif damage == "truncated":
        (part / "squares.npy").write_bytes((part / "squares.npy").read_bytes()[:-8])
    elif damage == "missing":
        (part / "squares.npy").unlink()
    elif damage == "manifest":
        flip(part / "manifest.json")
    else:
        shutil.rmtree(part)
        write_part(part.parent, "another key", Part(15, 20), {"squares": np.zeros(5, np.int64)})
    (tmp_path / "out").unlink()
    run("serial", task, tmp_path)
    assert (tmp_path / "out").read_bytes() == expected(task)
    assert len(task.marks()) == 7 and task.marks().count(FOURTH) == 2


def test_what_a_worker_left_of_a_part_that_is_done_is_removed(tmp_path):
    task = squares(tmp_path)
    run("serial", task, tmp_path)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    left, at_work = (f".{FOURTH}.tmp-{socket.gethostname()}-{pid}-0123abcd" for pid in (ended.stdout.strip(), os.getpid()))
    for name in (left, at_work):
        (tmp_path / "job/parts" / name).mkdir()
    (tmp_path / "out").unlink()
    run("serial", task, tmp_path)
    found = {path.name for path in (tmp_path / "job/parts").iterdir()}
    assert left not in found and {at_work, FOURTH} <= found
    assert task.marks().count(FOURTH) == 1


def test_the_first_writer_of_a_part_wins(tmp_path):
    for content in (1, 2):
        write_part(tmp_path, "key", Part(0, 3), {"squares": np.full(3, content)})
    assert np.load(tmp_path / Part(0, 3).name / "squares.npy").tolist() == [1, 1, 1]
    assert [path.name for path in tmp_path.iterdir()] == [Part(0, 3).name]


def test_a_finished_job_does_nothing_again(tmp_path):
    task, states = squares(tmp_path), list[JobProgress]()
    run("serial", task, tmp_path)
    run("serial", task, tmp_path, report=states.append)
    assert len(task.marks()) == 6 and [(state.done, state.total) for state in states] == [(6, 6)]


def test_progress_counts_parts_bytes_and_time_left(tmp_path):
    states: list[JobProgress] = []
    run("serial", squares(tmp_path), tmp_path, report=states.append)
    assert [state.done for state in states] == list(range(7)) and states[-1].num_bytes == 240
    assert [round(state.share, 6) for state in states] == [round(n / 6, 6) for n in range(7)]
    assert states[0].seconds_left is None and states[-1].seconds_left == 0
    assert all(state.seconds_left for state in states[1:-1])


def test_another_task_is_refused_with_the_difference(tmp_path):
    run("serial", squares(tmp_path), tmp_path)
    with pytest.raises(JobError, match=r"is of another job: it differs in num_nodes \(30 there, 31 here\)"):
        run("serial", squares(tmp_path, 31), tmp_path)


def test_another_number_of_parts_is_refused(tmp_path):
    run("serial", squares(tmp_path), tmp_path)
    with pytest.raises(JobError, match=r"is cut into 6 parts, not 5\. Leave --parts out"):
        run("serial", squares(tmp_path), tmp_path, num_parts=5)


class Lumpy(Squares):
    """Nearly all of the work is in two nodes, so that fewer parts come of it than are asked for."""

    def outline(self, scratch):
        seconds = np.full(self.num_nodes, 1e-6)
        seconds[[3, 20]] = 1.0
        return Outline(seconds, 8.0 * self.num_nodes, 1, {}, {})


def test_the_same_number_of_parts_asked_for_again_goes_on_though_fewer_came_of_it(tmp_path):
    task = Lumpy(30, squares(tmp_path).scratch, trouble="raise", bad=7, times=3)
    with pytest.raises(JobError, match="parts failed 3 times"):
        run("serial", task, tmp_path, num_parts=8)
    cuts = np.load(tmp_path / "job/plan/cuts.npy")
    assert len(cuts) - 1 < 8
    run("serial", task, tmp_path, num_parts=8)
    assert (tmp_path / "out").read_bytes() == expected(task)
    run("serial", task, tmp_path, num_parts=len(cuts) - 1)
    with pytest.raises(JobError, match=r"of the 8 asked for, not 7\. Leave --parts out"):
        run("serial", task, tmp_path, num_parts=7)


@pytest.mark.parametrize("name", ["plan/cuts.npy", "plan/manifest.json", "graph/neighbour.npy"])
def test_a_damaged_plan_or_graph_is_refused(tmp_path, name):
    Graph.from_edges([0, 1], [1, 2]).save(tmp_path / "job/graph")
    run("serial", squares(tmp_path), tmp_path)
    flip(tmp_path / "job" / name)
    with pytest.raises(JobError, match=r"holds no job that can be resumed: .*damaged"):
        run("serial", squares(tmp_path), tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "job").write_text("a file")
    with pytest.raises(JobError, match="cannot be written to"):
        run("serial", squares(tmp_path), tmp_path)
    assert (tmp_path / "job").read_text() == "a file"


def test_a_folder_that_is_not_to_be_kept_is_kept_until_the_whole_is_there(tmp_path):
    task = squares(tmp_path, trouble="raise", bad=7, times=3)
    with pytest.raises(JobError):
        run("serial", task, tmp_path, keep=False)
    assert len(list((tmp_path / "job/parts").iterdir())) == 5
    run("serial", task, tmp_path, keep=False)
    assert not (tmp_path / "job").exists() and (tmp_path / "out").read_bytes() == expected(task)


@pytest.mark.parametrize("engine", ["serial", "pool"])
def test_what_cannot_be_planned_says_why(tmp_path, engine):
    Graph.from_edges([0], [1], num_nodes=2).save(tmp_path / "graph")
    task = TransitionsTask(str(tmp_path / "graph"), num_steps=100)
    with open_engine(engine) as opened, pytest.raises(GatasError, match="100 steps"):
        run_job(task, tmp_path / "job", tmp_path / "out", opened)


class Broken(Squares):
    def outline(self, scratch):
        raise RuntimeError("no idea")


def test_a_plan_that_fails_for_no_reason_of_ours_is_a_failed_job(tmp_path):
    with pytest.raises(JobError, match="no plan could be made: RuntimeError: no idea"):
        run("serial", Broken(3, str(tmp_path)), tmp_path)
    assert not (tmp_path / "job/plan").exists()


def test_a_part_that_does_not_fit_on_the_disk_is_not_tried_again(tmp_path, monkeypatch):
    task = squares(tmp_path, 3_000)  # the plan has 104 bytes, a part 4,000
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Disk", (), {"free": 1_000})())
    with pytest.raises(
        JobError, match=r"needs 4,000 bytes and the disk has 1,000 free.* 0 of 6 parts are done and kept: make room"
    ):
        run("serial", task, tmp_path)
    assert len(task.marks()) == 1


def test_failures_that_were_recorded_are_forgotten_when_done(tmp_path):
    task = squares(tmp_path, trouble="raise", bad=7, times=3)
    with pytest.raises(JobError):
        run("serial", task, tmp_path)
    assert [entry["first"] for entry in json.loads((tmp_path / "job/failed.json").read_text())] == [5]
    run("serial", task, tmp_path)
    assert not (tmp_path / "job/failed.json").exists()


KILLED_AT_EACH_REMOVAL = """
import os, signal, sys
from pathlib import Path
from tests.scale.toys import run, squares
done, at, unlink, rmdir = 0, 0, os.unlink, os.rmdir
def counted(remove, folder):
    def counting(*args, **named):
        global done
        done += (folder / "out").exists()
        if done and done == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return remove(*args, **named)
    return counting
while True:
    folder, at = Path(sys.argv[1], str(at + 1)), at + 1
    folder.mkdir()
    child = os.fork()
    if not child:
        os.unlink, os.rmdir = counted(unlink, folder), counted(rmdir, folder)
        run("serial", squares(folder), folder, keep=False)
        os._exit(0)
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        break  # there was no such removal any more
"""


def test_a_job_that_is_killed_while_its_folder_is_removed_is_finished(tmp_path):
    script = [sys.executable, "-c", KILLED_AT_EACH_REMOVAL, str(tmp_path)]
    subprocess.run(script, timeout=120, check=True, cwd=Path(__file__).parents[2])
    folders = sorted(tmp_path.iterdir(), key=lambda folder: int(folder.name))
    assert len(folders) > 20
    for folder in folders[:-1]:
        task = squares(folder)
        assert run("serial", task, folder, keep=False) == {"squares": 30}
        assert (folder / "out").read_bytes() == expected(task) and not (folder / "job").exists()
        if folder != folders[-2]:  # when the note is removed too, nothing tells that it was finished
            assert len(task.marks()) == 6


def test_what_is_left_of_a_finished_job_is_not_mixed_with_another(tmp_path):
    task = squares(tmp_path)
    (tmp_path / "job").mkdir()
    write_note(tmp_path / "job", "another key", {"squares": 1})
    run("serial", task, tmp_path, keep=False)
    assert (tmp_path / "out").read_bytes() == expected(task) and not (tmp_path / "job").exists()


def test_a_finished_job_whose_result_is_gone_is_done_again(tmp_path):
    task = squares(tmp_path)
    (tmp_path / "job").mkdir()
    write_note(tmp_path / "job", key_of(task.identity()), {"squares": 1})
    assert run("serial", task, tmp_path) == {"squares": 30}
    assert (tmp_path / "out").read_bytes() == expected(task)


@pytest.mark.parametrize("left", ["", "{", "[]", '{"key": 1}'])
def test_a_damaged_note_of_the_end_is_no_note(tmp_path, left):
    task = squares(tmp_path)
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "finished.json").write_text(left)
    assert run("serial", task, tmp_path) == {"squares": 30}
