"""Build graphs of Debian's packages: sections to predict, links that the next release added, and packages that are new in it.

    python examples/packages/build.py FOLDER

fetches the package indexes of Debian 12 and 13 by `apt-get update`, with a configuration of its own in FOLDER/apt (the system's
lists and sources stay as they are; their mirror is used), or reads them from `--indexes`, and writes:

    sections/nodes.parquet, edges.parquet             Debian 12; edges-without-tags.parquet: the same without debtags
    sections/new-nodes.parquet, new-edges.parquet     packages that are new in Debian 13, with what they are linked to
    sections/new-sections.parquet                     their true sections, to compare with
    links/nodes.parquet, train.parquet, valid.parquet Debian 12; some links between packages are held out for validation
    links/test.parquet                                links of Debian 13 between packages of Debian 12 that had no such link
    links/new-nodes.parquet, new-edges.parquet        as above, with sections
    summary.json, words.txt                           counts, and which index of `words` is which word

The same indexes and the same seed give the same tables.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fetching import RELEASES, Index, fetch
from indexes import Release, listed, read_release

FIELDS = {
    "depends": ("Pre-Depends", "Depends"),
    "recommends": ("Recommends",),
    "suggests": ("Suggests",),
    "conflicts": ("Conflicts", "Breaks"),
}
BUILD_FIELDS = ("Build-Depends", "Build-Depends-Indep", "Build-Depends-Arch")
LINK_TYPES = ("depends", "recommends", "suggests")
SPLITS = (("train", 0.6), ("valid", 0.2), ("test", 0.2))
NUM_VALID_LINKS = 2_000
LEAST_WORDS, MOST_SHARE = 5, 0.1
"""A word is a feature if it is in so many descriptions of Debian 12 at least, and in no more than a tenth of them."""

Edge = tuple[str, str, str]
EDGE_SCHEMA = pa.schema([("source", pa.string()), ("target", pa.string()), ("type", pa.string())])
NODE_SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("type", pa.string()), ("installed_size", pa.int64()), ("architecture", pa.string()),
        ("multi_arch", pa.string()), ("priority", pa.string()), ("words", pa.list_(pa.int32())),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """The edges of a release without sections, its packages' sections, and the packages by their nodes' ids."""

    edges: list[Edge]
    sections: dict[str, str]
    packages: dict[str, dict[str, str]]

    def nodes(self) -> list[str]:
        """All ids, sorted: packages, and what edges name."""
        return sorted({*self.packages, *(end for edge in self.edges for end in edge[:2])})


def tables_of(release: Release) -> Tables:
    """The graph of a release; of its packages the section is apart, so that no edge or feature tells it."""
    edges: dict[Edge, None] = {}
    for name, about in release.packages.items():
        package = f"package:{name}"
        for edge_type, fields in FIELDS.items():
            found = (release.node(one) for one in listed(about, fields))
            edges |= {(package, node, edge_type): None for node in found if node is not None and node != package}
        for one in listed(about, ["Provides"]):
            if release.node(one) == f"virtual:{one.name}":
                edges[package, f"virtual:{one.name}", "provides"] = None
        edges[package, f"source:{about.get('Source', name).split()[0]}", "built from"] = None
        edges[package, f"maintainer:{maintainer(about['Maintainer'])}", "maintained by"] = None
        edges |= {(package, f"tag:{tag}", "tagged"): None for tag in tags(about)}
    for name, about in release.sources.items():
        for node in map(release.node, listed(about, BUILD_FIELDS)):
            if node is not None:
                edges[f"source:{name}", node, "build-depends"] = None
    packages = {f"package:{name}": about for name, about in release.packages.items()}
    sections = {node: about["Section"].rpartition("/")[2] for node, about in packages.items() if "Section" in about}
    return Tables(sorted(edges), sections, packages)


def maintainer(text: str) -> str:
    """The name without the address: `Debian Vim Maintainers`."""
    return text.partition("<")[0].strip().strip('"') or text.strip("<>")


def tags(about: dict[str, str]) -> list[str]:
    """Debtags, also where several share a facet: `use::{editing,viewing}`."""
    found = []
    for tag in re.split(r",\s+", about.get("Tag", "").strip()):
        facet, _, values = tag.partition("::{")
        found += [f"{facet}::{value}" for value in values.rstrip("}").split(",")] if values else [tag]
    return [tag for tag in found if tag]


def words_of(about: dict[str, str]) -> list[str]:
    """The different words of a description's first line."""
    return sorted(set(re.findall(r"[a-z][a-z0-9+#-]+", about.get("Description", "").lower())))


def vocabulary(packages: Iterable[dict[str, str]]) -> dict[str, int]:
    """The words that are features, each with its index, by the alphabet."""
    counts, total = Counter[str](), 0
    for about in packages:
        counts.update(words_of(about))
        total += 1
    kept = sorted(word for word, count in counts.items() if LEAST_WORDS <= count <= MOST_SHARE * total)
    return {word: index for index, word in enumerate(kept)}


def node_row(node: str, packages: dict[str, dict[str, str]], words: dict[str, int]) -> dict[str, Any]:
    """A row of the node table; nodes that are not packages have no features."""
    kind = node.partition(":")[0]
    if (about := packages.get(node)) is None:
        return {"id": node, "type": kind}
    return {
        "id": node,
        "type": kind,
        "installed_size": int(about.get("Installed-Size", 0)),
        "architecture": "all" if about["Architecture"] == "all" else "any",
        "multi_arch": about.get("Multi-Arch", "no"),
        "priority": about.get("Priority", "optional"),
        "words": [words[word] for word in words_of(about) if word in words],
    }


def draw_splits(nodes: list[str], seed: int) -> dict[str, str]:
    """A split for each node, drawn by a seed."""
    shuffled = sorted(nodes)
    random.Random(seed).shuffle(shuffled)
    found, start, reached = dict[str, str](), 0, 0.0
    for split, share in SPLITS:
        reached += share
        stop = round(reached * len(shuffled))
        found |= dict.fromkeys(shuffled[start:stop], split)
        start = stop
    return found


def with_sections(edges: list[Edge], sections: dict[str, str]) -> list[Edge]:
    """Edges, and one from each package to its section: for links, where the section is known."""
    return sorted([*edges, *((node, f"section:{section}", "in section") for node, section in sections.items())])


def new_edges(old: Tables, new: Tables) -> list[Edge]:
    """Edges of the new release at a package or source that the old one does not have, to old nodes or new ones."""
    known = set(old.nodes())
    fresh = {node for node in new.nodes() if node not in known and node.startswith(("package:", "source:"))}
    ends = known | fresh | {end for edge in new.edges if fresh & set(edge[:2]) for end in edge[:2]}
    return [edge for edge in new.edges if fresh & set(edge[:2]) and set(edge[:2]) <= ends]


def new_links(old: Tables, new: Tables) -> list[Edge]:
    """Links of the new release between packages of both that the old one does not have under that type."""
    known, both = set(old.edges), old.packages.keys() & new.packages.keys()
    return [edge for edge in new.edges if edge[2] in LINK_TYPES and set(edge[:2]) <= both and edge not in known]


def write_edges(path: Path, edges: list[Edge]) -> None:
    columns = [pa.array([edge[place] for edge in edges], pa.string()) for place in range(3)]
    pq.write_table(pa.table(columns, schema=EDGE_SCHEMA), path)


def write_nodes(path: Path, nodes: Iterable[str], packages: dict[str, dict[str, str]], words: dict[str, int]) -> pa.Table:
    """Write a node table, and return it."""
    table = pa.Table.from_pylist([node_row(node, packages, words) for node in nodes], NODE_SCHEMA)
    pq.write_table(table, path)
    return table


def build(indexes: dict[str, Index], folder: Path, seed: int) -> dict[str, Any]:
    """Write all tables into a folder; return what summary.json says of them."""
    old, new = (tables_of(read_release(indexes[name].packages, indexes[name].sources)) for name in RELEASES)
    words = vocabulary(old.packages.values())
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    counts = {
        "releases": {name: indexes[name].about for name in RELEASES},
        "seed": seed,
        "words": len(words),
        **write_section_tables(folder / "sections", old, new, words, seed),
        **write_link_tables(folder / "links", old, new, words, seed),
    }
    (folder / "summary.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return counts


def write_section_tables(folder: Path, old: Tables, new: Tables, words: dict[str, int], seed: int) -> dict[str, Any]:
    """Write the tables for predicting sections; return their counts."""
    folder.mkdir(parents=True, exist_ok=True)
    table, splits = write_nodes(folder / "nodes.parquet", old.nodes(), old.packages, words), draw_splits([*old.sections], seed)
    for name, values in (("section", old.sections), ("split", splits)):
        table = table.append_column(name, pa.array([values.get(node) for node in table["id"].to_pylist()], pa.string()))
    pq.write_table(table, folder / "nodes.parquet")
    write_edges(folder / "edges.parquet", old.edges)
    write_edges(folder / "edges-without-tags.parquet", [edge for edge in old.edges if edge[2] != "tagged"])
    edges = new_edges(old, new)
    known = set(old.nodes())
    fresh = sorted({end for edge in edges for end in edge[:2]} - known)
    write_nodes(folder / "new-nodes.parquet", fresh, new.packages, words)
    write_edges(folder / "new-edges.parquet", edges)
    asked = {node: section for node in fresh if (section := new.sections.get(node)) in set(old.sections.values())}
    pq.write_table(pa.table({"id": list(asked), "section": list(asked.values())}), folder / "new-sections.parquet")
    return {
        "nodes": dict(Counter(node.partition(":")[0] for node in old.nodes())),
        "edges": dict(Counter(edge[2] for edge in old.edges)),
        "total_nodes": len(known),
        "total_edges": len(old.edges),
        "sections": len(set(old.sections.values())),
        "new_nodes": dict(Counter(node.partition(":")[0] for node in fresh)),
        "new_edges": len(edges),
        "new_packages_with_a_known_section": len(asked),
    }


def write_link_tables(folder: Path, old: Tables, new: Tables, words: dict[str, int], seed: int) -> dict[str, Any]:
    """Write the tables for predicting links; return their counts."""
    folder.mkdir(parents=True, exist_ok=True)
    links = [edge for edge in old.edges if edge[2] in LINK_TYPES and edge[0].startswith("package:") and edge[1] in old.packages]
    valid = sorted(random.Random(seed).sample(links, min(NUM_VALID_LINKS, len(links) // 10)))
    held_out, test = set(valid), new_links(old, new)
    train = [edge for edge in with_sections(old.edges, old.sections) if edge not in held_out]
    sections = [f"section:{name}" for name in sorted(set(old.sections.values()))]
    write_nodes(folder / "nodes.parquet", [*old.nodes(), *sections], old.packages, words)
    for name, edges in (("train", train), ("valid", valid), ("test", test)):
        write_edges(folder / f"{name}.parquet", edges)
    fresh = {node: section for node, section in new.sections.items() if node not in old.packages}
    known = {*old.nodes(), *sections}
    edges = [edge for edge in with_sections(new_edges(old, new), fresh) if edge[2] != "in section" or edge[1] in known]
    nodes = sorted({end for edge in edges for end in edge[:2]} - known)
    write_nodes(folder / "new-nodes.parquet", nodes, new.packages, words)
    write_edges(folder / "new-edges.parquet", edges)
    joined = {edge[:2] for edge in old.edges}
    return {
        "links": dict(Counter(edge[2] for edge in links)),
        "valid_links": len(valid),
        "test_links": dict(Counter(edge[2] for edge in test)),
        "total_test_links": len(test),
        "test_links_of_packages_linked_otherwise": sum(edge[:2] in joined for edge in test),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Build graphs of Debian's packages.")
    parser.add_argument("folder", type=Path, help="where tables are written")
    parser.add_argument("--indexes", type=Path, help="folder with RELEASE/Packages and RELEASE/Sources, in place of apt's")
    parser.add_argument("--mirror", help="a mirror of Debian; by default that of the system's apt sources")
    parser.add_argument("--seed", type=int, default=0, help="of splits and of the links for validation")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        if given.indexes is None:
            indexes = fetch(given.folder / "apt", given.mirror)
        else:
            indexes = {name: Index(given.indexes / name / "Packages", given.indexes / name / "Sources") for name in RELEASES}
        counts = build(indexes, given.folder, given.seed)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(counts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
