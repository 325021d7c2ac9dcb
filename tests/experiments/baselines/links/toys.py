"""A typed graph that can be learned in a second."""

import numpy as np

from gatas.datasets import Dataset, Pairs
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
