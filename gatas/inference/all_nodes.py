"""`AllNodes`: what scores of links need to know about every node, made once and kept."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.inference.pair_scores import PairScores
from gatas.inference.part_scores import NodeVectors, PartScores
from gatas.inference.trained import TrainedModel
from gatas.progress import ProgressCallback

MOST_KEPT = 1 << 28
"""Numbers about nodes that are kept at most, 2 GB; where there are more, they are made for each ranking."""
BLOCK = 1 << 12
"""Nodes that are scored at once."""

Scores = PairScores | PartScores


class AllNodes:
    """What is known about the nodes of a predictor, of some or of all, as its scores of links need it.

    Args:
        trained: A model of links, over its graph or over that with new nodes.
        before: What is known about the graph without new nodes, if anything is: it is taken over for all nodes that new edges
            are too far from to matter.
    """

    def __init__(self, trained: TrainedModel, before: "AllNodes | None" = None) -> None:
        self.trained, self.before, exact = trained, before, trained.exact
        self.scores: Scores = PartScores(exact) if exact.parts else PairScores(exact)
        self.kept: dict[int, NodeVectors] = {}

    @property
    def draws(self) -> range:
        """Return the drawn neighbourhoods that answers are averaged over: one where nothing is drawn."""
        return self.trained.draws if self.trained.exact.encodes else self.trained.draws[:1]

    def some(self, nodes: Ints, draw: int, progress: ProgressCallback = lambda share: None) -> NodeVectors:
        """Return what is known about nodes given by index: what is kept, or made for them alone."""
        if draw in self.kept:
            places = torch.from_numpy(nodes).to(self.trained.device)
            return {name: tensor.index_select(0, places) for name, tensor in self.kept[draw].items()}
        parts, done = [], 0
        for batch in self.trained.batches(nodes) if self.trained.exact.encodes else ():
            parts.append(self._made(batch, draw))
            done += len(batch)
            progress(done / len(nodes))
        return _joined(parts) if parts else self._made(nodes, draw)

    def blocks(self, draw: int, progress: ProgressCallback = lambda share: None) -> Iterator[NodeVectors]:
        """Give what is known about all nodes, some at a time; kept from the first time on, unless it is too much."""
        count = self.trained.graph.num_nodes
        if draw not in self.kept and self.trained.exact.encodes and count * self.scores.size > MOST_KEPT:
            for batch in self.trained.batches(np.arange(count)):
                yield self._made(batch, draw)
                progress((batch[-1] + 1) / count)
            return
        before = draw in self.kept
        known = self.all(draw, progress)
        for first in range(0, count, BLOCK):
            yield {name: tensor[first : first + BLOCK] for name, tensor in known.items()}
            progress(min(first + BLOCK, count) / count if before else 1.0)

    def all(self, draw: int, progress: ProgressCallback = lambda share: None) -> NodeVectors:
        """Return what is known about all nodes, kept from the first time on."""
        if draw not in self.kept:
            if not self.trained.exact.encodes:
                self.kept[draw] = self.scores.known_about(None, None)
            elif self.before is not None and draw in self.before.kept:
                self.kept[draw] = self._taken_over(self.before.kept[draw], draw, progress)
            else:
                self.kept[draw] = self.some(np.arange(self.trained.graph.num_nodes), draw, progress)
        return self.kept[draw]

    def _taken_over(self, known: NodeVectors, draw: int, progress: ProgressCallback) -> NodeVectors:
        """What was known before, but for new nodes and for those whose walks new edges can change."""
        changed = self._changed()
        made, places = self.some(changed, draw, progress), torch.from_numpy(changed).to(self.trained.device)
        count = self.trained.graph.num_nodes
        longer = {name: tensor.new_empty(count, *tensor.shape[1:]) for name, tensor in known.items()}
        for name, tensor in longer.items():
            tensor[: len(known[name])] = known[name]
            tensor[places] = made[name].to(tensor.dtype)
        return longer

    def _changed(self) -> Ints:
        """Nodes from which a walk, all but its last step, comes to a node with new edges; every edge can be walked back."""
        graph = self.trained.graph
        assert isinstance(graph, ExtendedGraph)
        found = np.union1d(graph.changed, self.trained.new_indices)
        for _ in range(self.trained.sampler.transitions.setting.num_steps - 1):
            found = np.union1d(found, graph.edges_from(found).target)
        return found

    def represent_all(self, progress: ProgressCallback = lambda share: None) -> NDArray[np.float32]:
        """Return representations of all nodes, and keep what scores need to know about them on the way."""
        trained, count = self.trained, self.trained.graph.num_nodes
        keeps = trained.exact.encodes and count * self.scores.size <= MOST_KEPT
        found, known = list[NDArray[np.float32]](), {draw: list[NodeVectors]() for draw in self.draws}
        for batch in trained.batches(np.arange(count)):
            seen = {draw: trained.exact.represent(batch, trained.mode, draw) for draw in self.draws}
            found.append(torch.stack(list(seen.values())).mean(0).float().cpu().numpy())
            for draw, encoded in seen.items() if keeps else ():
                known[draw].append(self.scores.known_about(torch.from_numpy(batch).to(trained.device), encoded))
            progress((batch[-1] + 1) / count)
        self.kept |= {draw: _joined(parts) for draw, parts in known.items() if parts}
        return np.concatenate(found)

    def _made(self, nodes: Ints, draw: int) -> NodeVectors:
        exact = self.trained.exact
        encoded = exact.represent(nodes, self.trained.mode, draw) if exact.encodes else None
        return self.scores.known_about(torch.from_numpy(nodes).to(exact.device), encoded)


def _joined(parts: list[NodeVectors]) -> NodeVectors:
    return parts[0] if len(parts) == 1 else {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
