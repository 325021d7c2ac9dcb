"""examples/genes: tables from small databases, written by hand, and the whole showcase on them."""

import importlib.util
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.website.code_blocks import QuickReader

ROOT = Path(__file__).parents[1]
GENES = ROOT / "examples/genes"
TERMS = [  # GO id, name, aspect
    ("GO:1", "root process", "BP"), ("GO:2", "repair", "BP"), ("GO:3", "fast repair", "BP"), ("GO:4", "old repair", "BP"),
    ("GO:5", "binding", "MF"), ("GO:0019005", "SCF ubiquitin ligase complex", "CC"), ("all", "all", "universal"),
]  # fmt: skip
PARENTS = {"bp": [(2, 1, "isa"), (3, 2, "part of"), (4, 1, "regulates"), (1, 7, "isa")], "mf": [], "cc": []}
NUM_GENES = 24
SYMBOLS = {1: "TWIN", 2: "TWIN", 4: "FBXO3"}


def write_tables(path, tables):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        for name, (columns, rows) in tables.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
        database.commit()


def write_release(folder, annotations, merged=()):
    """Write both databases of a release where they would be unpacked; annotations are (gene, aspect, term, evidence)."""
    numbers = range(1, NUM_GENES + 1)
    tables: dict[str, Any] = {
        "genes": (("_id", "gene_id"), [(n, str(100 + n)) for n in numbers]),
        "gene_info": (("_id", "symbol"), [(n, SYMBOLS.get(n, f"G{n}")) for n in numbers]),
        "pfam": (("_id", "pfam_id"), [(n, f"PF{n % 3}") for n in numbers]),
        "prosite": (("_id", "prosite_id"), [(1, None), (3, "PS1")]),
        "cytogenetic_locations": (("_id", "cytogenetic_location"), [(n, f"1p{n % 4}") for n in numbers]),
        "pubmed": (("_id", "pubmed_id"), [(1, "7"), (3, "7"), (3, "8"), *((n, "9") for n in numbers)]),
    }
    for aspect in ("bp", "mf", "cc"):
        rows = [(gene, term, evidence) for gene, own, term, evidence in annotations if own == aspect]
        tables[f"go_{aspect}"] = (("_id", "go_id", "evidence"), rows)
    library = folder / "root/usr/lib/R/site-library"
    write_tables(library / "org.Hs.eg.db/extdata/org.Hs.eg.sqlite", tables)
    ontology: dict[str, Any] = {
        "go_term": (("_id", "go_id", "term", "ontology"), [(n, *term) for n, term in enumerate(TERMS, 1)])
    }
    for aspect, rows in PARENTS.items():
        ontology[f"go_{aspect}_parents"] = (("_id", "_parent_id", "relationship_type"), rows)
    ontology["go_synonym"] = (("_id", "secondary", "like_go_id"), list(merged))
    write_tables(library / "GO.db/extdata/GO.sqlite", ontology)


OLD = [(n, "bp", "GO:3" if n % 3 else "GO:4", "IEA") for n in range(1, NUM_GENES + 1)]
OLD += [(n, "mf", "GO:5", "IDA") for n in range(1, NUM_GENES, 2)] + [
    (n, "cc", "GO:0019005", "ND" if n == 2 else "TAS") for n in (2, 4, 6)
]
NEW = [
    *OLD, (1, "bp", "GO:1", "IEA"), (1, "bp", "GO:4", "IMP"), (1, "bp", "GO:4", "IEA"), (3, "bp", "GO:2", "IDA"),
    (2, "cc", "GO:0019005", "IDA"), (4, "mf", "GO:5", "IPI"), (5, "mf", "GO:99", "IDA"),
]  # fmt: skip


def load(name, monkeypatch):
    """Import a script under a name of its own; what it imports from the other showcase is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [str(GENES), *sys.path])
    for shared in ("fetching", "steps"):
        monkeypatch.setitem(sys.modules, shared, None)
        del sys.modules[shared]
    spec = importlib.util.spec_from_file_location(f"genes_{name}", GENES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def releases(tmp_path):
    write_release(tmp_path / "bookworm", OLD)
    write_release(tmp_path / "trixie", NEW, merged=[(2, "GO:4", 1)])
    return tmp_path


@pytest.fixture
def summary(releases, monkeypatch, capsys):
    script = load("build", monkeypatch)
    monkeypatch.setattr("sys.argv", ["build.py", str(releases), "--papers", "20"])
    assert script.main() == 0
    return json.loads(capsys.readouterr().out)


def table(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def test_edges_and_validation_links_are_the_annotations_of_the_old_release(releases, summary):
    kinds = {"biological process", "molecular function", "cellular component"}
    edges = {tuple(row.values()) for row in table(releases, "edges")}
    valid = {tuple(row.values()) for row in table(releases, "valid")}
    annotated = {edge for edge in edges if edge[2] in kinds}
    assert len(valid) == summary["valid_links"] == 2 and not valid & edges
    assert len(annotated | valid) == 24 + 12 + 2  # that nothing is known of gene 2 is no annotation
    assert ("gene:TWIN (101)", "Pfam:PF1", "has domain") in edges
    assert {edge for edge in edges if edge[0].startswith("GO:")} == {
        ("GO:2 repair", "GO:1 root process", "is a"),
        ("GO:3 fast repair", "GO:2 repair", "part of"),
        ("GO:4 old repair", "GO:1 root process", "regulates"),
    }


def test_papers_with_one_gene_or_too_many_are_left_out(releases, summary):
    papers = {(row["source"], row["target"]) for row in table(releases, "edges") if row["type"] == "studied in"}
    assert papers == {("gene:TWIN (101)", "PMID:7"), ("gene:G3", "PMID:7")}


def test_links_of_the_test_are_new_with_their_evidence_and_whether_they_were_implied(releases, summary):
    found = {
        (row["source"], row["target"]): (row["evidence"], row["experimental"], row["implied"])
        for row in table(releases, "test")
    }
    assert found == {
        ("gene:TWIN (101)", "GO:1 root process"): ("IEA", False, True),  # fast repair is part of repair, which is a process
        ("gene:TWIN (101)", "GO:4 old repair"): ("IEA IMP", True, False),
        ("gene:G3", "GO:2 repair"): ("IDA", True, True),  # old repair was merged into it
        ("gene:TWIN (102)", "GO:0019005 SCF ubiquitin ligase complex"): ("IDA", True, False),
        ("gene:FBXO3", "GO:5 binding"): ("IPI", True, False),
    }
    assert summary["total_test_links"] == 5 and summary["experimental_test_links"] == 4 and summary["implied_test_links"] == 2


def test_the_same_databases_give_the_same_tables(releases, summary, monkeypatch):
    before = {path.name: path.read_bytes() for path in releases.glob("*.parquet")}
    assert load("build", monkeypatch).main() == 0
    assert before == {path.name: path.read_bytes() for path in releases.glob("*.parquet")} and len(before) == 4


@pytest.mark.slow
def test_the_showcase_trains_ranks_explains_and_writes_what_it_measured(releases, monkeypatch):
    script = load("showcase", monkeypatch)
    monkeypatch.setattr(
        script, "EXPLAINED", (("gene:FBXO3", "molecular function", "GO:5 binding"), ("gene:NOT", "there", "here"))
    )
    given = [str(releases), "--epochs", "1", "--peers", "popularity", "--results", str(releases / "out/genes.json")]
    monkeypatch.setattr("sys.argv", ["showcase.py", *given])
    assert script.main() == 0
    found = json.loads((releases / "out/genes.json").read_text())
    assert (
        found["ranks"]["gatas"]["all"]["both"]["count"] == 5
        and found["ranks"]["popularity"]["experimental"]["both"]["count"] == 4
    )
    assert 0 < found["ranks"]["gatas"]["all"]["terms of a gene"]["mrr"] <= 1
    assert found["commit"] and found["versions"]["torch"] and all(step["commit"] for step in found["steps"].values())
    assert list(found["steps"]) == ["build", "init", "train", "rank by gatas", "rank by popularity", "explain 1"]
    assert len(list((releases / "pictures").glob("*.png"))) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_the_page_run_on_small_tables(releases, summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "showcase").mkdir()
    (folder / "showcase/genes").symlink_to(releases)
    QuickReader(folder, ROOT).run_page(ROOT / "docs/showcase-genes.md")
