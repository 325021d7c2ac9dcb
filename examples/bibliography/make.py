"""Write nodes.csv and edges.csv: an invented bibliography of papers, authors and venues.

Run it anywhere: python examples/bibliography/make.py. The seed is fixed, so the files are always the same.

Papers have a topic (the label, known for most), a year, pages, a language and whether code came with them. Authors have no
features at all, venues only a kind and an age. Edges are of three types; a citation's weight counts how often it is made.
"""

import csv
import itertools
from pathlib import Path

import numpy as np

TOPICS = ("graphs", "language", "robotics", "vision")
NUM_PAPERS, NUM_AUTHORS, KNOWN = 500, 240, 0.7
VENUES = {
    "Annals of Networks": ("graphs", "journal", 1987), "Graph Days": ("graphs", "conference", 2009),
    "Journal of Grammar": ("language", "journal", 1974), "Speech and Text": ("language", "conference", 1996),
    "Machines in Motion": ("robotics", "journal", 1990), "Robot Forum": ("robotics", "conference", 2003),
    "Image Letters": ("vision", "journal", 1981), "Seeing": ("vision", "conference", 1999),
    "Open Proceedings": (None, "conference", 2011),
}  # fmt: skip
GIVEN = [
    "Ada", "Amir", "Bo", "Chen", "Dina", "Elif", "Emil", "Fatou", "Greta", "Hana", "Ines", "Ivan", "Jun", "Kofi", "Lena",
    "Levi", "Mei", "Nia", "Noor", "Olga", "Omar", "Pia", "Raj", "Rosa",
]  # fmt: skip
FAMILY = [
    "Abebe", "Berg", "Costa", "Diallo", "Ek", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kaya", "Lopez", "Mori", "Novak",
    "Okafor", "Petrov", "Rossi", "Silva", "Tan", "Vega",
]  # fmt: skip


def make(folder: Path) -> None:
    """Write both tables into a folder."""
    draw = np.random.default_rng(2020)
    people = sorted(draw.permutation([f"{one} {other}" for one, other in itertools.product(GIVEN, FAMILY)])[:NUM_AUTHORS])
    field = {author: str(draw.choice(TOPICS)) for author in people}
    papers, edges = [], []
    for number in range(NUM_PAPERS):
        year = 2000 + 20 * number // NUM_PAPERS
        first = str(draw.choice(people))
        topic = field[first] if draw.random() < 0.8 else str(draw.choice(TOPICS))
        paper = {"id": f"{first.split()[1].lower()}-{year}-{number:03}", "type": "paper", "topic": topic, "year": year}
        paper |= {"pages": int(draw.poisson(9 if topic in ("graphs", "vision") else 14)) + 4}
        paper |= {"language": str(draw.choice(["en", "en", "en", "fr", "de"] if topic == "language" else ["en"] * 9 + ["fr"]))}
        paper |= {"code": str(bool(draw.random() < (0.6 if topic in ("robotics", "vision") else 0.3))).lower()}
        edges += [(author, paper["id"], "writes", 1) for author in _authors(first, people, field, topic, draw)]
        edges.append((paper["id"], _venue(topic, draw), "appears in", 1))
        edges += [(paper["id"], cited, "cites", int(draw.integers(1, 5))) for cited in _cited(papers, topic, draw)]
        papers.append(paper)
    for paper in papers:
        paper["topic"] = paper["topic"] if draw.random() < KNOWN else ""
    rows = [*papers, *({"id": author, "type": "author"} for author in people)]
    rows += [{"id": name, "type": "venue", "kind": kind, "founded": year} for name, (_, kind, year) in VENUES.items()]
    _write(folder / "nodes.csv", ["id", "type", "topic", "year", "pages", "language", "code", "kind", "founded"], rows)
    columns = ["from", "to", "relation", "times"]
    _write(folder / "edges.csv", columns, [dict(zip(columns, edge, strict=True)) for edge in edges])


def _authors(first: str, people: list[str], field: dict[str, str], topic: str, draw: np.random.Generator) -> list[str]:
    others = [author for author in people if author != first and (field[author] == topic or draw.random() < 0.05)]
    return [first, *map(str, draw.choice(others, draw.integers(0, 3), replace=False))]


def _venue(topic: str, draw: np.random.Generator) -> str:
    own = [name for name, (about, *_) in VENUES.items() if about in (topic, None)]
    return str(draw.choice(own if draw.random() < 0.7 else list(VENUES)))


def _cited(papers: list[dict[str, object]], topic: str, draw: np.random.Generator) -> list[object]:
    if len(papers) < 10:
        return []
    near = np.array([9.0 if paper["topic"] == topic else 1.0 for paper in papers])
    return [papers[k]["id"] for k in draw.choice(len(papers), draw.integers(1, 6), replace=False, p=near / near.sum())]


def _write(path: Path, columns: list[str], rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    make(Path(__file__).parent)
