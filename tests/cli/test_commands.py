"""The commands as a person types them, in process."""

import json
import signal
from contextlib import contextmanager

import numpy as np
import pytest

EDGES = "source,target,type,weight\nana,bo,knows,1\nbo,cy,knows,2\nana,cy,likes,1\ncy,cy,likes,1\nana,bo,knows,1\n"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(EDGES)
    return path


def test_inspect_counts_what_is_there(gatas, edges):
    code, out, _ = gatas("inspect", edges)
    assert code == 0
    lines = {" ".join(line.split()) for line in out.splitlines()}
    assert {"nodes 3", "edges 4", "edge types 2", "components 1", "repeated edges (collapsed) 1"} <= lines
    assert "self edges (kept, never walked) 1" in lines and "dangling nodes (no way out) 1" in lines
    assert any(line.startswith("knows 2 2 2 1.0") for line in lines)


def test_inspect_gives_machines_json(gatas, edges):
    code, out, _ = gatas("inspect", edges, "--json")
    content = json.loads(out)
    assert code == 0 and content["num_nodes"] == 3 and content["num_self_edges"] == 1
    assert set(content["transitions"]) == {"1", "2", "3"} and content["transitions"]["1"]["max_entries"] >= 6


def test_inspect_reads_the_node_table(gatas, edges, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label,split,height\nana,x,train,1\nbo,y,train,2\ncy,x,test,3\ndi,y,test,4\n")
    _, out, _ = gatas("inspect", edges, "--nodes", tmp_path / "nodes.csv", "--json")
    content = json.loads(out)
    assert (content["num_nodes"], content["feature_size"], content["num_isolated"]) == (4, 1, 1)
    assert content["splits"] == {"train": 2, "test": 2}


def test_inspect_knows_embedded_data_sets(gatas):
    _, out, _ = gatas("inspect", "kinship", "--json")
    assert [row["edge_type"] for row in json.loads(out)["degrees"]] == ["parent", "child", "spouse", "sibling"]


def test_columns_can_be_named(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("from,to\n1,2\n")
    _, out, _ = gatas("inspect", tmp_path / "e.csv", "--column", "source=from", "--column", "target=to", "--json")
    assert json.loads(out)["num_edges"] == 1


def test_transitions_are_built_and_shown_with_the_users_ids(gatas, edges, tmp_path):
    code, out, _ = gatas("transitions", "build", edges, "--out", tmp_path / "t", "--steps", 2, "--inverse")
    assert code == 0 and "3 rows" in out
    code, out, _ = gatas("transitions", "show", tmp_path / "t", "bo")
    assert code == 0 and "Candidates of bo" in out and "ana" in out and "knows⁻¹" in out
    code, out, _ = gatas("transitions", "show", tmp_path / "t", "ana", "--json")
    first = json.loads(out)["candidates"][0]
    assert first == {"step": 0, "neighbour": "ana", "path": ["self"], "probability": 1.0}


@pytest.mark.parametrize("engine", [(), ("--engine", "serial")], ids=["build", "job"])
def test_transitions_with_revisits_meet_neighbours_again(gatas, tmp_path, engine):
    #   0 ─ 1 ─ 2 ─ 0: from 0, nodes 1 and 2 at step 1 and, over each other, at step 2
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,0\n")
    build = ("transitions", "build", tmp_path / "edges.csv", "--undirected", "--steps", 2, *engine)
    assert gatas(*build, "--revisits", "--out", tmp_path / "t")[0] == 0
    _, out, _ = gatas("transitions", "show", tmp_path / "t", 0, "--json")
    assert [one["step"] for one in json.loads(out)["candidates"]] == [0, 1, 1, 2, 2]


def test_candidates_left_out_of_sight_are_counted(gatas, edges, tmp_path):
    gatas("transitions", "build", edges, "--out", tmp_path / "t", "--steps", 1, "--max-candidates", 1)
    _, out, _ = gatas("transitions", "show", tmp_path / "t", "ana")
    assert "dropped by max_candidates" in out and "0.3333" in out
    gatas("transitions", "build", edges, "--out", tmp_path / "all", "--steps", 1)
    _, out, _ = gatas("transitions", "show", tmp_path / "all", "ana", "--top", 1)
    assert "… 1 more" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nowhere.csv"], "nowhere.csv does not exist"),
        (["inspect", "corra"], "corra"),
        (["inspect", "{edges}", "--column", "source"], "should read ours=yours"),
        (["transitions", "build", "{edges}", "--out", "{folder}/t", "--steps", "0"], "num_steps is 0"),
        (["transitions", "build", "{edges}", "--out", "{folder}", "--steps", "1"], "exists already"),
        (["transitions", "show", "{folder}", "ana"], "has no manifest.json"),
        (["inspect", "kinship", "--inverse"], "a data set, which is taken as it is; --inverse belong"),
        (["inspect", "{folder}", "--nodes", "x.csv"], "a saved graph, which is taken as it is"),
        (["inspect", "{folder}/" + "x" * 300 + ".csv"], "name too long"),
        (["demo", "--out", "{edges}"], "File exists"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, edges, tmp_path, arguments, message):
    filled = [argument.format(edges=edges, folder=tmp_path) for argument in arguments]
    code, out, err = gatas(*filled)
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_names_that_look_like_markup_are_shown_as_they_are(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("source,target,type\n[bold]a,[/b],[/red]\n[bold]a,c,[red]x → y\n")
    code, out, _ = gatas("inspect", tmp_path / "e.csv")
    assert code == 0 and "[/red]" in out and "[red]x → y" in out
    code, out, _ = gatas("transitions", "build", tmp_path / "e.csv", "--out", tmp_path / "o[x]", "--steps", 1)
    assert code == 0 and "o[x]" in out
    code, out, _ = gatas("transitions", "show", tmp_path / "o[x]", "[bold]a")
    assert code == 0 and "[/b]" in out and "[bold]a" in out
    _, out, _ = gatas("transitions", "show", tmp_path / "o[x]", "[bold]a", "--json", "--top", 1)
    content = json.loads(out)
    assert content["not_shown"] == 1 and content["candidates"][1]["path"] in (["[/red]"], ["[red]x → y"])


def test_node_columns_can_be_named_and_are_advised(gatas, edges, tmp_path):
    (tmp_path / "n.csv").write_text("who,label\nana,x\nbo,y\ncy,x\n")
    code, _, err = gatas("inspect", edges, "--nodes", tmp_path / "n.csv")
    assert code == 1 and "--node-column id=" in err and "header" not in err
    code, _, _ = gatas("inspect", edges, "--nodes", tmp_path / "n.csv", "--node-column", "id=who")
    assert code == 0


def test_a_file_with_another_separator_is_recognised(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("source;target\na;b\n")
    code, _, err = gatas("inspect", tmp_path / "e.csv")
    assert code == 1 and "separated by ';'" in err


def test_the_version_is_told(gatas):
    import gatas as package

    assert gatas("--version")[:2] == (0, f"{package.__version__}\n")


def test_an_unknown_node_gets_the_nearest_ones(gatas, edges, tmp_path):
    gatas("transitions", "build", edges, "--out", tmp_path / "t")
    code, _, err = gatas("transitions", "show", tmp_path / "t", "anna")
    assert code == 1 and "no node has the id 'anna'" in err and "ana" in err


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_on_standard_error(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("source,target,note\n1,2,hello\n")
    code, out, err = gatas("inspect", tmp_path / "e.csv", "--json")
    assert code == 0 and json.loads(out) and err.startswith("warning: ") and "'note'" in err


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_an_interrupted_build_leaves_nothing_behind(gatas, tmp_path, monkeypatch, share):
    edges = tmp_path / "edges.csv"
    lines = (f"{a},{b}" for a, b in np.random.default_rng(0).integers(3_000, size=(30_000, 2)))
    edges.write_text("\n".join(["source,target", *lines]))

    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off

    @contextmanager
    def interrupting(_):
        yield lambda done: signal.raise_signal(signal.SIGINT) if done >= share else None

    monkeypatch.setattr("gatas.cli.transitions.progress_bar", interrupting)
    code, out, err = gatas("transitions", "build", edges, "--steps", "3", "--max-candidates", "50", "--out", tmp_path / "t")
    assert code == 130 and not out and "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]
