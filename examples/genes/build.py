"""Write tables of genes, their functions, families, loci and papers, from packages of two Debian releases.

    python examples/genes/build.py FOLDER --papers 0

downloads 100 MB below FOLDER, by an apt configuration of its own (nothing is installed, the system's lists and sources stay as
they are; their mirror is used), and writes:

    nodes.parquet, edges.parquet    what Debian 12 has (2022); genes, terms, families, loci, papers
    valid.parquet                   a share of its annotations, held out
    test.parquet                    annotations of Debian 13 (2024) between genes and terms of Debian 12 that are not in it,
                                    each with its evidence, and whether it is experimental, or was implied already
    summary.json                    counts

The same packages and the same seed give the same tables.
"""

import argparse
import json
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Container, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).absolute().parents[1] / "packages"))  # which has apt's helpers
from fetching import RELEASES, unpack, update

PACKAGES = ("r-bioc-org.hs.eg.db", "r-bioc-go.db")
ASPECTS = {"bp": "biological process", "mf": "molecular function", "cc": "cellular component"}
"""Parts of the Gene Ontology: a type of annotation each, and a type of node."""
RELATIONS = {"isa": "is a"}  # the other four are called what they are
TRANSITIVE = ("is a", "part of")
"""Who is annotated with a term is annotated with what it is, and with what it is part of (the ontology's true path rule)."""
EXPERIMENTAL = {"EXP", "IDA", "IPI", "IMP", "IGI", "IEP", "HTP", "HDA", "HMP", "HGI", "HEP"}
NO_DATA = "ND"
"""Evidence of annotations that say that nothing is known."""
Annotations = dict[tuple[str, str, str], set[str]]
"""Evidence codes by (Entrez id, aspect, GO id)."""
Edge = tuple[str, str, str]
EDGE = ("source", "target", "type")


@dataclass(frozen=True)
class Release:
    """The two databases of a Debian release: genes, and the ontology."""

    genes: Path
    ontology: Path


def download(release: str, folder: Path, mirror: str | None) -> Release:
    """Download and unpack the packages of a Debian release, by an apt of its own that knows of no other."""
    names = ("org.Hs.eg", "GO")
    found = Release(*(folder / f"root/usr/lib/R/site-library/{name}.db/extdata/{name}.sqlite" for name in names))
    if not (found.genes.exists() and found.ontology.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        update(folder, [release], mirror=mirror)
        unpack(folder, PACKAGES)
    return found


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Return what a query finds."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def annotations(release: Release) -> Annotations:
    """Return direct annotations of genes, without those that say that nothing is known."""
    found: Annotations = {}
    for aspect in ASPECTS:
        query = f"SELECT gene_id, go_id, evidence FROM go_{aspect} JOIN genes USING (_id) WHERE evidence != '{NO_DATA}'"
        for gene, term, evidence in rows(release.genes, query):
            found.setdefault((gene, aspect, term), set()).add(evidence)
    return found


def gene_names(release: Release) -> dict[str, str]:
    """Return ids by Entrez id: the symbol, with the Entrez id where several genes share it."""
    symbols = dict(rows(release.genes, "SELECT gene_id, symbol FROM gene_info JOIN genes USING (_id)"))
    shared = Counter(symbols.values())
    return {gene: f"gene:{symbol}" + (f" ({gene})" if shared[symbol] > 1 else "") for gene, symbol in symbols.items()}


def terms_of(release: Release) -> dict[str, tuple[str, str]]:
    """Return (id with its name, type of node) of every term in use, by GO id."""
    kinds = {aspect.upper(): name for aspect, name in ASPECTS.items()}
    found = rows(release.ontology, "SELECT go_id, term, ontology FROM go_term")
    return {term: (f"{term} {name}", kinds[kind]) for term, name, kind in found if kind in kinds}


def parents_of(release: Release) -> list[tuple[str, str, str]]:
    """Return (term, parent, relation) of the ontology."""
    query = (
        "SELECT child.go_id, parent.go_id, relationship_type FROM go_{}_parents AS edge "
        "JOIN go_term AS child ON child._id = edge._id JOIN go_term AS parent ON parent._id = edge._parent_id"
    )
    found = [row for aspect in ASPECTS for row in rows(release.ontology, query.format(aspect))]
    return [(term, parent, RELATIONS.get(kind, kind)) for term, parent, kind in found if parent != "all"]


def ancestors_of(parents: Iterable[tuple[str, str, str]]) -> dict[str, set[str]]:
    """Return what annotations with a term imply, for each term."""
    above: dict[str, set[str]] = {}
    for term, parent, relation in parents:
        if relation in TRANSITIVE:
            above.setdefault(term, set()).add(parent)
    found: dict[str, set[str]] = {}
    for term in above:
        seen, waiting = set[str](), [term]
        while waiting:
            new = above.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        found[term] = seen
    return found


def merged_terms(release: Release) -> dict[str, str]:
    """Return the terms that others were merged into, by their earlier GO ids."""
    return dict(rows(release.ontology, "SELECT secondary, go_id FROM go_synonym JOIN go_term USING (_id) WHERE like_go_id = 1"))


def implied_pairs(known: Annotations, parents: list[tuple[str, str, str]], merged: dict[str, str]) -> set[tuple[str, str]]:
    """Return (gene, term) that known annotations say: of more general terms, and of terms merged since."""
    above, found = ancestors_of(parents), set[tuple[str, str]]()
    for gene, _, term in known:
        for now in {term, merged.get(term, term)}:
            found |= {(gene, other) for other in (now, *above.get(now, ()))}
    return found


def features_of(release: Release, most_genes: int) -> list[tuple[str, str, str, str]]:
    """Return (gene, other node, its type, relation) for families, loci, and papers with 2 to `most_genes` genes."""
    found = []
    for table, kind, relation in (
        ("pfam", "Pfam", "has domain"), ("prosite", "PROSITE", "has pattern"), ("cytogenetic_locations", "locus", "located at"),
    ):  # fmt: skip
        column = "cytogenetic_location" if kind == "locus" else f"{table}_id"
        query = f"SELECT DISTINCT gene_id, {column} FROM {table} JOIN genes USING (_id) WHERE {column} IS NOT NULL"
        found += [(gene, f"{kind}:{one}", kind, relation) for gene, one in rows(release.genes, query)]
    papers = rows(release.genes, "SELECT DISTINCT gene_id, pubmed_id FROM pubmed JOIN genes USING (_id)")
    sizes = Counter(paper for _, paper in papers)
    return found + [(gene, f"PMID:{paper}", "paper", "studied in") for gene, paper in papers if 2 <= sizes[paper] <= most_genes]


def build(old: Release, new: Release, folder: Path, *, papers: int = 20, share: float = 0.05, seed: int = 0) -> dict[str, Any]:
    """Write all tables into a folder; return what summary.json says of them."""
    names, terms, parents = gene_names(old), terms_of(old), parents_of(old)
    known = between(annotations(old), names, terms)
    later = {link: codes for link, codes in between(annotations(new), names, terms).items() if link not in known}
    held_out = set(random.Random(seed).sample(sorted(known), round(share * len(known))))

    def edge_of(link: tuple[str, str, str]) -> Edge:
        gene, aspect, term = link
        return names[gene], terms[term][0], ASPECTS[aspect]

    others = features_of(old, papers)
    edges = {edge_of(link) for link in known if link not in held_out}
    edges |= {(terms[term][0], terms[parent][0], relation) for term, parent, relation in parents}
    edges |= {(names[gene], other, relation) for gene, other, _, relation in others}
    genes = {link[0] for link in (*known, *later)} | {gene for gene, *_ in others}
    nodes = {(names[gene], "gene") for gene in genes} | set(terms.values()) | {(other, kind) for _, other, kind, _ in others}
    implied = implied_pairs(known, parents, merged_terms(new))
    tested = [
        (*edge_of(link), " ".join(sorted(codes)), bool(codes & EXPERIMENTAL), (link[0], link[2]) in implied)
        for link, codes in later.items()
    ]
    write(folder / "nodes.parquet", ("id", "type"), nodes)
    write(folder / "edges.parquet", EDGE, edges)
    write(folder / "valid.parquet", EDGE, map(edge_of, held_out))
    write(folder / "test.parquet", (*EDGE, "evidence", "experimental", "implied"), tested)
    counts = {
        "seed": seed,
        "most_genes_of_a_paper": papers,
        "nodes": dict(sorted(Counter(kind for _, kind in nodes).items())),
        "edges": dict(sorted(Counter(relation for *_, relation in edges).items())),
        "total_nodes": len(nodes),
        "total_edges": len(edges),
        "valid_links": len(held_out),
        "test_links": dict(sorted(Counter(row[2] for row in tested).items())),
        "total_test_links": len(tested),
        "experimental_test_links": sum(row[4] for row in tested),
        "implied_test_links": sum(row[5] for row in tested),
    }
    (folder / "summary.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    return counts


def between(found: Annotations, genes: Container[str], terms: Container[str]) -> Annotations:
    """Return the annotations between genes and terms that are known."""
    return {link: codes for link, codes in found.items() if link[0] in genes and link[2] in terms}


def write(path: Path, columns: tuple[str, ...], values: Iterable[tuple[Any, ...]]) -> None:
    """Write a table, its rows in order."""
    ordered = sorted(values)
    arrays = {name: [row[at] for row in ordered] for at, name in enumerate(columns)}
    pq.write_table(pa.table(arrays), path)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write tables of genes and their functions.")
    parser.add_argument("folder", type=Path, help="where packages are unpacked and tables are written")
    parser.add_argument(
        "--papers", type=int, default=20, help="keep papers that name 2 to so many genes; 0: none (default: 20)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the annotations held out for validation (default: 0)")
    parser.add_argument("--mirror", help="a mirror of Debian; by default that of the system's apt sources")
    given = parser.parse_args()
    try:
        old, new = (download(release, given.folder / release, given.mirror) for release in RELEASES)
        counts = build(old, new, given.folder, papers=given.papers, seed=given.seed)
    except (OSError, sqlite3.Error) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(counts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
