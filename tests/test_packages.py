"""examples/packages: tables from small indexes, written by hand, and a training on them."""

import json
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gatas.cli import main
from tests.website.code_blocks import QuickReader

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "examples/packages"

OLD = """\
Package: editor-one
Source: editor (1.0-1)
Installed-Size: 120
Maintainer: Editor Team <team@example.org>
Architecture: amd64
Provides: editor
Depends: libone (>= 1.0) | libtwo, mta, gone
Recommends: libtwo:any
Description: small text editor
Tag: role::program, use::{editing,viewing},
 works-with::text
Section: editors
Priority: optional

Package: editor-two
Installed-Size: 90
Maintainer: Editor Team <team@example.org>
Architecture: all
Provides: editor, one-of-a-kind
Depends: libone
Suggests: editor
Conflicts: editor-two
Description: another text editor
Section: non-free/editors

Package: libone
Installed-Size: 30
Maintainer: "Ann Example" <ann@example.org>
Architecture: amd64
Provides: versioned-name (= 2)
Description: shared library
Section: libs

Package: libtwo
Installed-Size: 40
Maintainer: "Ann Example" <ann@example.org>
Architecture: amd64
Depends: one-of-a-kind, versioned-name (>= 1)
Description: shared library
Section: libs

Package: mta
Installed-Size: 10
Maintainer: Mail Team <mail@example.org>
Architecture: all
Depends: editor (>= 3)
Description: mail server
Section: mail
"""
NEW = (
    OLD.replace("Suggests: editor\n", "Suggests: editor, mta\nRecommends: libtwo\n")
    + """
Package: editor-three
Source: third
Installed-Size: 77
Maintainer: New Team <new@example.org>
Architecture: amd64
Depends: libone
Description: third text editor
Section: editors
"""
)
SOURCES = """\
Package: editor
Build-Depends: libone <!nocheck>, libtwo <cross>, mta [!amd64], editor-two [linux-any],
Section: editors
Package-List:
 editor-one deb editors optional arch=any

Package: only-extra
Extra-Source-Only: yes
Build-Depends: mta
"""

TOOL = """
Package: tool-{number}
Installed-Size: {number}
Maintainer: Editor Team <team@example.org>
Architecture: all
Depends: libone, libtwo
Recommends: editor-one
Suggests: editor-two
Description: small tool
Section: editors
"""


@pytest.fixture
def example(monkeypatch):
    """The example's modules, imported as its scripts import one another."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    names = ("indexes", "fetching", "build")
    yield {name: import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name)


@pytest.fixture
def tables(example, tmp_path, monkeypatch):
    for release, packages in (("bookworm", OLD), ("trixie", NEW)):
        folder = tmp_path / "indexes" / release
        folder.mkdir(parents=True)
        (folder / "Packages").write_text(packages)
        (folder / "Sources").write_text(SOURCES)
    monkeypatch.setattr(example["build"], "LEAST_WORDS", 1)
    monkeypatch.setattr(example["build"], "MOST_SHARE", 1.0)
    monkeypatch.setattr("sys.argv", ["build.py", str(tmp_path), "--indexes", str(tmp_path / "indexes")])
    assert example["build"].main() == 0
    return tmp_path


def edges(path):
    return {(row["source"], row["type"], row["target"]) for row in pq.read_table(path).to_pylist()}


def test_relations_lead_to_packages_to_their_only_provider_or_to_a_virtual_package(tables):
    found = edges(tables / "sections/edges.parquet")
    assert {edge for edge in found if edge[1] in ("depends", "recommends", "suggests", "conflicts", "provides")} == {
        ("package:editor-one", "depends", "package:libone"),
        ("package:editor-one", "depends", "package:libtwo"),
        ("package:editor-one", "depends", "package:mta"),
        ("package:editor-one", "recommends", "package:libtwo"),
        ("package:editor-two", "depends", "package:libone"),
        ("package:editor-two", "suggests", "virtual:editor"),
        ("package:libtwo", "depends", "package:editor-two"),  # one-of-a-kind
        ("package:libtwo", "depends", "package:libone"),  # versioned-name, whose provider says a version
        ("package:editor-one", "provides", "virtual:editor"),
        ("package:editor-two", "provides", "virtual:editor"),
    }
    assert {edge[2] for edge in found if edge[1] == "build-depends"} == {"package:libone", "package:editor-two"}
    assert {edge[2] for edge in found if edge[1] == "tagged"} == {
        "tag:role::program", "tag:use::editing", "tag:use::viewing", "tag:works-with::text"
    }  # fmt: skip


def test_no_feature_or_edge_tells_a_section(tables):
    rows = {row["id"]: row for row in pq.read_table(tables / "sections/nodes.parquet").to_pylist()}
    assert rows["package:editor-two"]["section"] == "editors" and rows["package:libone"]["architecture"] == "any"
    assert not any(name.startswith("section:") for name in rows)
    assert Counter(row["split"] for row in rows.values() if row["section"]) == {"train": 3, "valid": 1, "test": 1}


def test_links_of_the_next_release_are_for_the_test_and_its_packages_are_new(tables):
    assert edges(tables / "links/test.parquet") == {
        ("package:editor-two", "suggests", "package:mta"),
        ("package:editor-two", "recommends", "package:libtwo"),
    }
    assert not edges(tables / "links/train.parquet") & edges(tables / "links/test.parquet")
    assert ("package:mta", "in section", "section:mail") in edges(tables / "links/train.parquet")
    new = {row["id"] for row in pq.read_table(tables / "sections/new-nodes.parquet").to_pylist()}
    assert new == {"package:editor-three", "source:third", "maintainer:New Team"}
    assert pq.read_table(tables / "sections/new-sections.parquet").to_pylist() == [
        {"id": "package:editor-three", "section": "editors"}
    ]


def test_the_same_indexes_give_the_same_tables(tables, example):
    names = sorted(path.relative_to(tables) for path in tables.glob("*/*.parquet"))
    before = {name: (tables / name).read_bytes() for name in names}
    assert example["build"].main() == 0
    assert before == {name: (tables / name).read_bytes() for name in names} and len(names) == 12


def test_a_relation_that_cannot_be_read_is_named(example):
    with pytest.raises(ValueError, match="the relation 'Not A Package' cannot be read"):
        example["indexes"].alternatives("libone, Not A Package")


def test_the_mirror_is_that_of_the_systems_sources(example, tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    with pytest.raises(OSError, match="no mirror of Debian"):
        example["fetching"].system_mirror(tmp_path)
    (tmp_path / "sources.list").write_text("# deb http://c/ x main\ndeb [arch=amd64] http://a.example/debian bookworm main\n")
    assert example["fetching"].system_mirror(tmp_path) == "http://a.example/debian"
    stanza = "Types: deb\n# a comment\nURIs: http://b.example/debian\nSuites: bookworm\nComponents: main\n"
    security = stanza.replace("b.example/debian", "b.example/debian-security")
    (tmp_path / "sources.list.d/debian.sources").write_text(f"{security}\n{stanza}")
    assert example["fetching"].system_mirror(tmp_path) == "http://b.example/debian"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_sections_are_trained_and_asked_for_of_new_packages(tables, monkeypatch):
    monkeypatch.chdir(tables)

    def gatas(*words):
        monkeypatch.setattr("sys.argv", ["gatas", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code

    nodes = ("--nodes", "sections/nodes.parquet", "--set", "data.label=section")
    gatas("init", "sections/edges.parquet", *nodes, "--yes", "--out", "sections.yaml")
    gatas("train", "sections.yaml", "--set", "training.epochs=1", "--no-report", "--out", "run", "--device", "cpu")
    new = ("--new-nodes", "sections/new-nodes.parquet", "--new-edges", "sections/new-edges.parquet")
    gatas("predict", "run", *new, "--out", "new.json")
    answers = {row["id"]: row["class"] for row in json.loads(Path("new.json").read_text())}
    assert answers["package:editor-three"] in {"editors", "libs", "mail"}


@pytest.fixture
def more_tables(tables, example):
    """Tables of some more packages, so that there are links to hold out."""
    for packages in (tables / "indexes").glob("*/Packages"):
        packages.write_text(packages.read_text() + "".join(TOOL.format(number=number) for number in range(30)))
    assert example["build"].main() == 0
    return tables


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_the_page_run_on_small_tables(more_tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "showcase").mkdir()
    (folder / "showcase/packages").symlink_to(more_tables)
    QuickReader(folder, ROOT).run_page(ROOT / "docs/showcase-packages.md")


@pytest.mark.slow
def test_the_showcase_runs_on_tables_that_were_built_elsewhere_and_notes_memory_on_a_gpu(more_tables, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(PACKAGES))
    showcase, steps = (import_module(name) for name in ("showcase", "steps"))
    monkeypatch.setattr(showcase, "SECTION_EPOCHS", 1)
    monkeypatch.setattr(showcase, "EXPLAINED", "package:editor-one")
    monkeypatch.setattr(showcase, "LINK", ("package:editor-two", "suggests", "package:mta"))
    for name in ("showcase", "steps"):
        monkeypatch.delitem(sys.modules, name)
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    each = 'for process in /proc/[0-9]*; do echo "${process#/proc/}, 900"; done'
    program.write_text(f"#!/bin/sh\nwhile :; do\necho '7, [N/A]'\n{each}\nsleep 0.1\ndone\n")
    program.chmod(0o755)
    monkeypatch.setattr(steps, "GPU_MEMORY", (str(program),))
    monkeypatch.setattr("sys.argv", ["showcase.py", str(more_tables), "--built", "--results", str(tmp_path / "out/found.json")])
    assert showcase.main() == 0
    found = json.loads((tmp_path / "out/found.json").read_text())
    assert "build" not in found["steps"] and found["hardware"] and found["versions"]["torch"] and found["commit"]
    assert 0 <= found["sections"]["test_new_packages"] <= 1 and found["links"]["test"]["count"] == 2
    assert all(step["peak_gpu_bytes"] == 900 << 20 and step["seconds"] > 0 for step in found["steps"].values())
