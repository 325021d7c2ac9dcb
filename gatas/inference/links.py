"""Links: how likely given ones are, and which are the likeliest at a node."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.graph.inputs import Ints
from gatas.inference.all_nodes import AllNodes
from gatas.inference.ids import ids_of
from gatas.inference.link_ends import KnownLinks, LinkEnds
from gatas.inference.part_scores import NodeVectors
from gatas.inference.prediction import LinkPrediction
from gatas.progress import ProgressCallback

PAIRS = 8192
"""Pairs that are scored together."""
CELLS = 1 << 22
"""Scores of all nodes, for some queries, that are held at once."""


def score_pairs(nodes: AllNodes, source: Ints, edge_type: Ints, target: Ints, progress: ProgressCallback) -> LinkPrediction:
    """Score links between nodes given by index, of types given by number; each node is represented once."""
    trained, draws = nodes.trained, nodes.draws
    total = torch.zeros(len(source), dtype=torch.float64, device=trained.device)
    ends, place = np.unique(np.concatenate([source, target]), return_inverse=True)
    columns = (source, edge_type, target, place[: len(source)], place[len(source) :])
    for number, draw in enumerate(draws):
        known = nodes.some(ends, draw, share_of(progress, number, len(draws)))
        for rows in np.array_split(np.argsort(source, kind="stable"), max(1, len(source) // PAIRS)):
            one, kind, other, at, to = (torch.from_numpy(column[rows]).to(trained.device) for column in columns)
            both = (_rows(known, at), _rows(known, to))
            total[rows] += nodes.scores.of_pairs(one, kind, other, *both).sigmoid()
    probabilities = (total / len(draws)).float().cpu().numpy()
    names = [trained.names[number] for number in edge_type]
    return LinkPrediction(ids_of(trained.graph, source), names, ids_of(trained.graph, target), probabilities)


def rank_ends(
    nodes: AllNodes,
    ends: LinkEnds,
    asked: Ints,
    edge_type: int,
    top: int,
    progress: ProgressCallback,
    *,
    backward: bool,
    known: KnownLinks = "valid",
) -> LinkPrediction:
    """Find the `top` likeliest links of a type from each of some nodes; if `backward`, to each of them.

    Links that are `known` are left out, and nodes of types that such links do not have at that end.
    """
    ends.refuse_wrong_end(asked, edge_type, backward=backward)
    best: list[tuple[Ints, NDArray[np.float64]]] = []
    size = max(1, CELLS // max(1, nodes.trained.graph.num_nodes)) if nodes.trained.exact.parts else 1
    starts = range(0, len(asked), size)
    for number, first in enumerate(starts):
        some = asked[first : first + size]
        scores, chances = _score_all(nodes, some, edge_type, share_of(progress, number, len(starts)), backward)
        for row, node in enumerate(some.tolist()):
            likeliest = _largest(scores[row], ends.candidates(node, edge_type, backward=backward, known=known), top)
            best.append((likeliest, chances[row, likeliest]))
    others = np.concatenate([found for found, _ in best]) if best else np.empty(0, np.int64)
    own = np.repeat(asked, [len(found) for found, _ in best])
    if backward and "paths" in nodes.trained.exact.parts:
        return _scored_again(nodes, others, edge_type, own)
    probabilities = np.concatenate([chance for _, chance in best]) if best else np.empty(0)
    names = [nodes.trained.names[edge_type]] * len(own)
    sources, targets = (ids_of(nodes.trained.graph, end) for end in ((others, own) if backward else (own, others)))
    return LinkPrediction(sources, names, targets, probabilities.astype(np.float32))


def _scored_again(nodes: AllNodes, source: Ints, edge_type: int, target: Ints) -> LinkPrediction:
    """Score links to each target as pairs, likeliest first: paths to them are the sources', as wherever a link is asked for.

    Paths from a target, by which its sources are found, are fewer or more where rows are cut short.
    """
    found = score_pairs(nodes, source, np.full(len(source), edge_type), target, lambda share: None)
    group = np.unique(target, return_index=True)[1]
    first = {int(target[place]): place for place in group}  # targets stay in the order asked for
    order = np.lexsort((np.arange(len(source)), -found.probabilities, [first[int(node)] for node in target]))
    sources, targets = (ids_of(nodes.trained.graph, end[order]) for end in (source, target))
    return LinkPrediction(sources, found.edge_types, targets, found.probabilities[order])


def _score_all(
    nodes: AllNodes, asked: Ints, edge_type: int, progress: ProgressCallback, backward: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(B, N) what nodes are ordered by, and their probabilities: means over drawn neighbourhoods."""
    query = torch.from_numpy(asked).to(nodes.trained.device)
    found: list[Tensor] = []
    for number, draw in enumerate(nodes.draws):
        blocks = nodes.blocks(draw, share_of(progress, number, len(nodes.draws)))
        found.append(nodes.scores.of_all(query, edge_type, nodes.some(asked, draw), blocks, backward=backward))
    chances = torch.stack([scores.sigmoid() for scores in found]).mean(0).cpu().numpy()
    return (found[0].cpu().numpy() if len(found) == 1 else chances), chances


def _largest(scores: NDArray[np.float64], wanted: NDArray[np.bool_], top: int) -> Ints:
    """Return the places of the largest of some scores, largest first; among equals the first place."""
    places = np.flatnonzero(wanted)
    own = scores[places]
    if top < len(own):
        least = np.partition(own, len(own) - top)[len(own) - top]
        places, own = places[own >= least], own[own >= least]
    return places[np.argsort(-own, kind="stable")[:top]]


def _rows(known: NodeVectors, places: Tensor) -> NodeVectors:
    return {name: tensor.index_select(0, places) for name, tensor in known.items()}


def share_of(progress: ProgressCallback, number: int, count: int) -> ProgressCallback:
    """Report the progress of one of several rounds."""
    return lambda share: progress((number + share) / count)
