"""Jobs in parts on the command line: `--engine` of three commands, and `gatas jobs`."""

import json

import pytest

from gatas.cli.jobs import words_of
from gatas.graph import Graph
from gatas.scale import JobProgress
from tests.inference.conftest import kinship_folder
from tests.scale.test_same_bytes import digest
from tests.transitions.test_properties import random_graph

__all__ = ["kinship_folder"]
SERIAL = ("--engine", "serial")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    random_graph(60, 200, 2, seed=1).save(folder / "graph")
    return folder / "graph"


def test_transitions_are_built_in_parts_from_a_store_or_from_files(gatas, stored, tmp_path):
    build = ("transitions", "build", stored, "--steps", 2)
    code, plain, _ = gatas(*build, "--out", tmp_path / "one")
    assert code == 0
    code, out, err = gatas(*build, "--out", tmp_path / "parts", *SERIAL, "--parts", 5)
    assert code == 0 and out == plain.replace("one", "parts") and "5 of 5 parts" in err
    assert digest(tmp_path / "one") == digest(tmp_path / "parts")
    (tmp_path / "edges.csv").write_text("source,target\nana,bo\nbo,cy\n")
    gatas("transitions", "build", tmp_path / "edges.csv", "--out", tmp_path / "two")
    code, out, _ = gatas("transitions", "build", tmp_path / "edges.csv", "--out", tmp_path / "named", *SERIAL, "--json")
    assert code == 0 and json.loads(out)["rows"] == 3 and digest(tmp_path / "two") == digest(tmp_path / "named")
    assert {path.name for path in tmp_path.iterdir()} == {"one", "parts", "two", "named", "edges.csv"}


def test_embed_takes_an_engine(gatas, kinship_folder, tmp_path):
    for name, more in (("one", ()), ("parts", (*SERIAL, "--job", tmp_path / "job", "--parts", 2))):
        code, out, _ = gatas("embed", kinship_folder, "--out", tmp_path / f"{name}.parquet", "--device", "cpu", *more, "--json")
        assert code == 0 and json.loads(out)["nodes"] == 985
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "parts.parquet").read_bytes()


def test_fewer_parts_than_were_asked_for_are_said_once_with_the_reason(gatas, kinship_folder, stored, tmp_path):
    asked = (*SERIAL, "--parts", 8, "--device", "cpu")
    _, _, err = gatas("embed", kinship_folder, "--out", tmp_path / "all.npy", "--batch-size", 512, *asked)
    assert err.count("2 parts instead of the 8 asked for: parts are of whole batches, 512 nodes each\n") == 1
    _, _, err = gatas("transitions", "build", stored, "--out", tmp_path / "out", *SERIAL, "--parts", 999)
    assert "50 parts instead of the 999 asked for: there are few nodes, or the work lies in few of them\n" in err
    _, _, err = gatas("transitions", "build", stored, "--out", tmp_path / "three", *SERIAL, "--parts", 3)
    assert "instead" not in err


def test_a_job_is_listed_and_gone_on_with(gatas, stored, tmp_path):
    gatas("transitions", "build", stored, "--out", tmp_path / "out", *SERIAL, "--parts", 3, "--job", tmp_path / "job")
    parts = sorted((tmp_path / "job/parts").iterdir())
    code, out, _ = gatas("jobs", "show", tmp_path / "job")
    assert code == 0 and "3 of 3 parts are done" in out
    (parts[0] / "node.npy").unlink()
    content = bytearray((parts[1] / "node.npy").read_bytes())
    (parts[1] / "node.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, out, _ = gatas("jobs", "show", tmp_path / "job", "--json")
    assert [part["state"] for part in json.loads(out)["parts"]] == ["damaged", "done", "done"]
    code, out, _ = gatas("jobs", "show", tmp_path / "job", "--verify", "--json")
    assert [part["state"] for part in json.loads(out)["parts"]] == ["damaged", "damaged", "done"]
    before = digest(tmp_path / "out")
    code, out, err = gatas("jobs", "resume", tmp_path / "job", *SERIAL, "--overwrite")
    assert code == 0 and "rows 60" in out and "1 of 3 parts" in err and digest(tmp_path / "out") == before


def test_failed_parts_are_one_line_exit_code_1_and_listed(gatas, stored, tmp_path, monkeypatch):
    def failing(self, targets):
        if 59 in targets:
            raise ValueError("node 59")
        return working(self, targets)

    working = gatas_rows()
    monkeypatch.setattr("gatas.transitions.prepared.Prepared.rows", failing)
    build = ("transitions", "build", stored, "--out", tmp_path / "out", *SERIAL, "--parts", 3, "--job", tmp_path / "job")
    code, out, err = gatas(*build)
    assert code == 1 and out == "" and err.splitlines()[-1].startswith("error: 1 of 3 parts failed 3 times")
    assert "2 of 3 parts, 1 failed" in err and "Traceback (" not in err and not (tmp_path / "out").exists()
    code, out, _ = gatas("jobs", "show", tmp_path / "job", "--json")
    assert [part["state"] for part in json.loads(out)["parts"]] == ["done", "done", "failed"]
    monkeypatch.undo()


def gatas_rows():
    from gatas.transitions.prepared import Prepared

    return Prepared.rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["transitions", "build", "{graph}", "--out", "{folder}/o", "--parts", "3"], "--parts belongs to jobs in parts"),
        (["transitions", "build", "{graph}", "--out", "{folder}/o", "--job", "x"], "--job belongs to jobs in parts"),
        (["transitions", "build", "{graph}", "--out", "{folder}/o", "--engine", "serial", "--workers", "2"], "one process"),
        (["transitions", "build", "{graph}", "--out", "{folder}/o", "--engine", "serial", "--steps", "0"], "num_steps is 0"),
        (["transitions", "build", "{folder}/none.csv", "--out", "{folder}/o", "--engine", "serial"], "does not exist"),
        (["transitions", "build", "{folder}", "--out", "{folder}/o", "--engine", "serial"], "has no manifest.json"),
        (["embed", "{run}", "--out", "{folder}/e.npy", "--engine", "pool", "--nodes", "x.csv"], "--nodes and --engine"),
        (["embed", "{folder}/none", "--out", "{folder}/e.npy", "--engine", "serial"], "is not a folder"),
        (["predict", "{run}", "3", "--engine", "pool"], "ids and --engine were given"),
        (["predict", "{run}", "--engine", "pool"], "say into which file, by --out"),
        (["predict", "{run}", "--out", "{folder}/p.csv", "--engine", "serial"], "the model predicts links"),
        (["jobs", "show", "{folder}/none"], "holds no job that can be resumed"),
        (["jobs", "resume", "{folder}"], "holds no job that can be resumed"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_exit_code_1(gatas, stored, kinship_folder, tmp_path, arguments, message):
    places = {"graph": stored, "folder": tmp_path, "run": kinship_folder}
    code, out, err = gatas(*(argument.format(**places) for argument in arguments))
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert not list(tmp_path.iterdir())


def test_a_changed_edge_file_is_another_job(gatas, tmp_path):
    edges, job = tmp_path / "edges.csv", ("--job", tmp_path / "job")
    edges.write_text("source,target\n0,1\n")
    assert gatas("transitions", "build", edges, "--out", tmp_path / "one", *SERIAL, *job)[0] == 0
    edges.write_text("source,target\n0,1\n1,0\n")
    code, _, err = gatas("transitions", "build", edges, "--out", tmp_path / "two", *SERIAL, *job)
    assert code == 1 and "is of a job with another graph" in err
    assert Graph.open(tmp_path / "job/graph").num_edges == 1


def test_progress_in_words():
    assert words_of(JobProgress(12, 40, 0, 1536, 0.3, 12.0, 30.0)) == "12 of 40 parts  1.5 KiB  0:12, left 0:30"
    assert words_of(JobProgress(39, 40, 1, 10, 0.9, 3700.0, 1.0)) == "39 of 40 parts, 1 failed  10 B  1:01:40, left 0:01"
    assert words_of(JobProgress(40, 40, 0, 10, 1.0, 2.0, 0.0)) == "40 of 40 parts  10 B  0:02"


def test_a_job_that_was_ended_after_its_last_write_is_done(gatas, stored, tmp_path):
    build = ("transitions", "build", stored, "--steps", 2, "--max-candidates", "3,5", "--out", tmp_path / "table", *SERIAL)
    assert gatas(*build, "--job", tmp_path / "job")[0] == 0
    code, out, _ = gatas(*build, "--job", tmp_path / "job")  # nothing is left to do
    assert code == 0 and "60 rows" in out
    code, same, err = gatas(*build)  # nothing but the result tells
    assert code == 0 and same == out and "was built before, by the same command" in err
    assert gatas(*build[:-2])[1] == out  # without an engine, too
    for changed in (("--kind", "count"), ("--max-candidates", 3), ("--max-degree", 9), ("--revisits",)):
        code, _, err = gatas(*build, *changed)
        assert code == 1 and "exists already" in err


def test_a_table_of_another_graph_is_not_taken_for_the_one_asked_for(gatas, tmp_path):
    edges, build = (
        tmp_path / "edges.csv",
        ("transitions", "build", tmp_path / "edges.csv", "--out", tmp_path / "table", *SERIAL),
    )
    for content, refused in (("0,1", False), ("0,1", False), ("1,0", True), ("0,1\n1,0", True), ("5,6", True), ("a,b", True)):
        edges.write_text(f"source,target\n{content}\n")
        code, _, err = gatas(*build)
        assert (code == 1 and "exists already" in err) if refused else code == 0, (content, err)
    assert {path.name for path in tmp_path.iterdir()} == {"edges.csv", "table"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_left_of_a_finished_job_is_removed_by_the_same_command(gatas, tmp_path, monkeypatch, overwrite):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    build = ["transitions", "build", tmp_path / "edges.csv", "--out", tmp_path / "table", *SERIAL]
    build += ["--overwrite"] * overwrite
    monkeypatch.setattr("gatas.scale.finished.remove_but", lambda folder, *kept: 1 / 0)  # as a kill
    with pytest.raises(ZeroDivisionError):
        gatas(*build)
    monkeypatch.undo()
    before = digest(tmp_path / "table")
    (tmp_path / ".table.job/graph/manifest.json").unlink()  # it has begun to go
    code, out, err = gatas(*build)
    assert code == 0 and "3 rows" in out and "was finished before: what was left in" in err
    assert err.count("of 3 parts") == 2  # what the first run said
    assert digest(tmp_path / "table") == before
    assert {path.name for path in tmp_path.iterdir()} == {"edges.csv", "table"}
    (tmp_path / ".table.job").mkdir()  # all but the folder itself is removed
    assert gatas(*build)[:2] == (0, out)
    assert {path.name for path in tmp_path.iterdir()} == {"edges.csv", "table"}
