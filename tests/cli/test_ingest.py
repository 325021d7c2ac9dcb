"""`gatas generate` and `gatas ingest`, as a person types them."""

import json

import pytest

from gatas.cli.ingest import parsed_memory
from gatas.errors import ConfigError


def test_a_generated_graph_is_ingested_and_looked_at(gatas, tmp_path):
    out, store = tmp_path / "graph", tmp_path / "store"
    code, said, _ = gatas("generate", out, "--nodes", 800, "--edges", 900, "--set", "hub=50", "--set", "features=4")
    assert code == 0 and "800 nodes, 950 edges" in said
    code, said, _ = gatas("ingest", out / "edges", "--nodes", out / "nodes", "--out", store, "--memory", "400MB", "--json")
    assert code == 0 and json.loads(said)["nodes"] == 800
    code, said, _ = gatas("inspect", store)
    assert code == 0 and "type 2⁻¹" in said


def test_a_config_names_tables_and_settings(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("from,to\na,b\nb,c\n")
    (tmp_path / "c.yaml").write_text(
        "data: {edges: e.csv, source: from, target: to, direction: as given, task: link prediction}\n"
    )
    code, said, _ = gatas("ingest", tmp_path / "c.yaml", "--out", tmp_path / "store", "--memory", "400MB")
    assert code == 0 and "3 nodes, 2 edges" in said
    code, again, err = gatas("ingest", tmp_path / "c.yaml", "--out", tmp_path / "store", "--memory", "400MB")
    assert code == 0 and again == said and "was ingested before, by the same command: nothing is left to do" in err
    code, _, err = gatas("ingest", tmp_path / "c.yaml", "--out", tmp_path / "store", "--set", "direction=undirected")
    assert code == 1 and "exists already, and is not of an ingest of these files" in err


def test_bad_rows_are_one_line_and_leave_no_store(gatas, tmp_path):
    (tmp_path / "e.csv").write_text("source,target\na,b\n,c\n,d\n")
    code, _, said = gatas("ingest", tmp_path / "e.csv", "--out", tmp_path / "store", "--memory", "400MB")
    assert code == 1 and said.startswith("error: ") and "row 2, column 'source'" in said and "2 rows are so" in said
    assert "Traceback" not in said and not (tmp_path / "store").exists()


def test_settings_and_files_that_are_unknown_are_one_line(gatas, tmp_path):
    code, _, said = gatas("generate", tmp_path / "g", "--set", "hubs=3")
    assert code == 1 and "Did you mean 'hub'" in said
    code, _, said = gatas("ingest", tmp_path / "none.csv", "--out", tmp_path / "store")
    assert code == 1 and "does not exist" in said


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 << 30), ("500 MB", 500 << 20), ("1.5G", 3 << 29), ("1000", 1000)])
def test_sizes_are_read_as_people_write_them(text, size):
    assert parsed_memory(text) == size


def test_a_size_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="such as 500MB"):
        parsed_memory("a lot")
