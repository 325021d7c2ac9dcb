"""Splits drawn by a seed: the same files, ratios and seed give the same splits."""

import numpy as np

from gatas.datasets.config import NodeTableData, Ratios
from gatas.datasets.labels import Labels
from gatas.datasets.targets import SPLITS
from gatas.errors import GraphError
from gatas.graph.inputs import Ints


def split_nodes(labels: Labels, ratios: Ratios, seed: int) -> dict[str, Ints]:
    """Draw splits of the nodes with a label: each class by the same shares; where labels are multi-label, all nodes alike."""
    nodes = np.flatnonzero(labels.known)
    strata = np.zeros(len(nodes), np.int64) if labels.values.ndim == 2 else labels.values[nodes]
    number = drawn_splits(strata, ratios, np.random.default_rng(seed), "labelled nodes")
    splits = {name: nodes[number == place] for place, name in enumerate(SPLITS)}
    return {name: chosen for name, chosen in splits.items() if chosen.size}


def splits_graphs(config: NodeTableData, graphs: Ints, labels: Labels) -> bool:
    """Whether ratios are of whole graphs: as settings say, or where there are several, all with labels, and enough of them."""
    if config.split_by is not None:
        return config.split_by == "graphs"
    labelled, shares = np.unique(graphs[labels.known]), [getattr(config.ratios, name) > 0 for name in SPLITS]
    return bool(len(labelled) == graphs.max() + 1 >= max(2, sum(shares)))


def split_graphs(labels: Labels, graphs: Ints, ratios: Ratios, seed: int) -> dict[str, Ints]:
    """Draw splits of whole graphs: one graph at least for each share, and what shares of 1 leave over for training."""
    labelled = np.random.default_rng(seed).permutation(np.unique(graphs[labels.known]))
    shares = {name: getattr(ratios, name) for name in SPLITS if getattr(ratios, name) > 0}
    counts = {name: max(1, int(share * len(labelled) + 1e-9)) for name, share in shares.items()}
    others = len(labelled) - sum(counts[name] for name in counts if name != "train")
    if sum(shares.values()) > 1 - 1e-9 or others < counts["train"]:
        counts["train"] = others
    if others < 1:
        raise GraphError(f"{len(labelled)} graphs with labels cannot be shared out to {', '.join(shares)}. Give more graphs, "
                         "set a share in data.ratios to 0, or set data.split_by: nodes.")  # fmt: skip
    ends = np.cumsum(list(counts.values()))
    parts = zip(counts, np.split(labelled, ends), strict=False)
    return {name: np.flatnonzero(labels.known & np.isin(graphs, part)) for name, part in parts}


def drawn_splits(strata: Ints, ratios: Ratios, generator: np.random.Generator, what: str) -> Ints:
    """Draw 0, 1, 2 for train, valid, test and -1 for none: every stratum by the same shares, at least one of it in training."""
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    ordered = strata[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    offset = generator.random(int(strata.max(initial=0)) + 1)  # strata too small for a share get it now and then
    place = (rank + offset[ordered]) / np.bincount(strata)[ordered]
    shares = {name: getattr(ratios, name) for name in SPLITS}
    number = np.searchsorted(np.cumsum(list(shares.values())).round(9), place, side="right")
    number = np.where(rank == 0, 0, np.where(number == len(SPLITS), -1, number))
    for split, (name, share) in enumerate(shares.items()):
        if share > 0 and not (number == split).any():
            raise GraphError(f"the split {name!r} would be empty: a share of {share:g} of {len(strata):,} {what}. "
                             f"Raise data.ratios.{name}, set it to 0, or give more data.")  # fmt: skip
    drawn = np.empty(len(order), np.int64)
    drawn[order] = number
    return drawn
