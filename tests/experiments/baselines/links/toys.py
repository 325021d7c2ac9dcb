"""Typed graphs that can be learned in a second."""

import tempfile
from pathlib import Path

import numpy as np

from gatas.datasets import Dataset, Pairs, read_dataset
from gatas.graph import Graph

NUM_NODES = 30


def clubs(seed=0):
    """Three clubs; members are friends, in two of them rivals too. A seventh of the links is held out, twice."""
    generator = np.random.default_rng(seed)
    rows: dict[str, list[tuple[int, int, int, int]]] = {"train": [], "valid": [], "test": []}
    everyone = [(one, other) for one in range(NUM_NODES) for other in range(one)]
    for kind, number in enumerate((3, 2)):
        inside = [(one, other) for one, other in everyone if one % 3 == other % 3 < number]
        across = [(one, other) for one, other in everyone if one % 3 != other % 3]
        links = [inside[place] for place in generator.permutation(len(inside))]
        wrong = [across[place] for place in generator.permutation(len(across))]
        held = len(links) // 7
        rows["train"] += [(one, kind, other, 1) for one, other in links[2 * held :]]
        for place, split in enumerate(("valid", "test")):
            part = slice(place * held, (place + 1) * held)
            rows[split] += [(one, kind, other, 1) for one, other in links[part]]
            rows[split] += [(one, kind, other, 0) for one, other in wrong[part]]
    splits = {split: Pairs(*np.array(listed).T) for split, listed in rows.items()}
    train, names = splits["train"], ("friend", "rival")
    graph = Graph.from_edges(
        train.source, train.target, train.edge_type, num_nodes=NUM_NODES, inverse=True, edge_type_names=names
    )
    return Dataset.for_links(graph, splits, names, name="clubs")


def family_files(folder, *, negatives=False):
    """Six families of a mother, a father and a child, as files: edges, and pairs to ask for, with or without negatives."""
    rows = []
    for one in range(0, 18, 3):
        rows += [(one, one + 2, "parent"), (one + 1, one + 2, "parent"), (one, one + 1, "spouse"), (one + 1, one, "spouse")]
    rows += [(one + 2, (one + 5) % 18, "sibling") for one in range(0, 18, 3)]
    held = {"valid": [rows[0], rows[6], rows[9]], "test": [rows[4], rows[10], rows[13]]}
    gone = {row for part in held.values() for row in part}
    files = {"edges": [row for row in rows if row not in gone], **held}
    for name, listed in files.items():
        label = ",label" if negatives and name != "edges" else ""
        lines = [f"n{one},n{other},{kind}{',1' if label else ''}" for one, other, kind in listed]
        lines += [f"n{one},n{(other + 7) % 18},{kind},0" for one, other, kind in listed if label]
        (folder / f"{name}.csv").write_text(f"source,target,type{label}\n" + "\n".join(lines) + "\n")
    return {name: folder / f"{name}.csv" for name in files}


def family(*, folder=None, negatives=False):
    """The families as users have a knowledge graph; siblings are never asked for."""
    with tempfile.TemporaryDirectory() as other:
        files = family_files(Path(folder or other), negatives=negatives)
        pairs = {name: files[name] for name in ("valid", "test")}
        return read_dataset(
            files["edges"],
            task="link prediction",
            name="family",
            edge_type="type",
            pairs=pairs,
            keep_reverse=True,
            link_types=["parent", "spouse"],
        )


def ranked_clubs():
    """The clubs as files without negatives, so that links are ranked."""
    splits = clubs().splits
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.csv" for name in splits}
        for name, pairs in splits.items():
            columns = zip(pairs.source, pairs.target, pairs.edge_type, pairs.label, strict=True)
            lines = [f"{one},{other},t{kind}" for one, other, kind, label in columns if label]
            files[name].write_text("source,target,type\n" + "\n".join(lines) + "\n")
        pairs = {name: files[name] for name in ("valid", "test")}
        return read_dataset(files["train"], task="link prediction", name="ranked clubs", edge_type="type", pairs=pairs)
