"""The concrete walks behind a typed path between two nodes, node by node, and how much of its probability each has.

P(v, path | u) is a sum over walks u → x₁ → … → v, each the product of its steps' probabilities; what normalises a row's level
is the same for all of them, so that it cancels in their shares. A state is a node at its step: there are never more of them
than nodes, however many walks there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.inference.explanation import Float64s
from gatas.transitions.build import Walks

AnyGraph = Graph | ExtendedGraph


@dataclass(frozen=True, slots=True)
class Walk:
    """Nodes from the first to the last by index, and the walk's share of its path's probability."""

    nodes: tuple[int, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Between:
    """A node between the ends by index, at which step, and the share of the path's probability that goes through it."""

    node: int
    step: int
    share: float


@dataclass(frozen=True, slots=True)
class Step:
    """Edges of one step that lie on walks from the first node to the last, by place among the states before and after."""

    source: Ints
    target: Ints
    probability: Float64s


class PathWalks:
    """All walks over one typed path between two nodes, as steps between states.

    Args:
        graph: The graph.
        walks: How its transitions were made.
        source: Where walks begin, by index.
        target: Where they end.
        relations: Relations of the path, first step first.
    """

    def __init__(self, graph: AnyGraph, walks: Walks, source: int, target: int, relations: Sequence[int]) -> None:
        self.states, self.steps = _steps_between(graph, walks, source, target, relations)
        self._reached = _sums(self.steps, self.states)
        self._left = _sums_back(self.steps, self.states)

    @property
    def mass(self) -> float:
        """Return the sum over all walks of the product of their steps' probabilities; 0 where there is none."""
        return float(self._reached[-1].sum())

    @property
    def count(self) -> int:
        """Return how many walks there are."""
        counts = np.ones(len(self.states[0]), np.int64)
        for step, after in zip(self.steps, self.states[1:], strict=True):
            before, counts = counts, np.zeros(len(after), np.int64)
            np.add.at(counts, step.target, before[step.source])
        return int(counts.sum())

    def likeliest(self, top: int) -> list[Walk]:
        """Return the `top` likeliest walks, by best-first search; among equals the one of lower nodes first.

        Walks begun are ordered by what they come to at best, which is known: only what is on one of the likeliest is looked at.
        """
        best = _best_to_the_end(self.steps, self.states)
        waiting: list[tuple[float, tuple[int, ...], float]] = []
        if self.mass > 0:
            heappush(waiting, (-float(best[0][0]), (0,), 1.0))
        found: list[Walk] = []
        while waiting and len(found) < top:
            _, places, begun = heappop(waiting)
            if len(places) == len(self.states):
                nodes = tuple(int(level[place]) for level, place in zip(self.states, places, strict=True))
                found.append(Walk(nodes, begun / self.mass))
                continue
            step, ahead = self.steps[len(places) - 1], best[len(places)]
            own = np.flatnonzero(step.source == places[-1])
            value = begun * step.probability[own] * ahead[step.target[own]]
            for k in np.lexsort([step.target[own], -value])[:top].tolist():
                place = int(step.target[own[k]])
                heappush(waiting, (-float(value[k]), (*places, place), begun * float(step.probability[own[k]])))
        return found

    def between(self, top: int) -> list[Between]:
        """Return the `top` nodes between the ends through which most of the probability goes, most first."""
        found = []
        for step, (nodes, reached, left) in enumerate(zip(self.states, self._reached, self._left, strict=True)):
            if 0 < step < len(self.states) - 1:
                shares = reached * left / self.mass if self.mass > 0 else reached
                order = np.lexsort([nodes, -shares])[:top].tolist()
                found += [Between(int(nodes[k]), step, float(shares[k])) for k in order]
        return sorted(found, key=lambda one: (-one.share, one.step, one.node))[:top]

    @property
    def num_between(self) -> int:
        """Return how many different nodes lie between the ends."""
        inner = self.states[1:-1]
        return len(np.unique(np.concatenate(inner))) if inner else 0


def shared_neighbours(graph: AnyGraph, source: int, target: int) -> Ints:
    """Return the nodes one step from both of two nodes, ascending."""
    one, other = (graph.edges_from(np.array([node])).target for node in (source, target))
    return np.setdiff1d(np.intersect1d(one, other), [source, target])


def _steps_between(
    graph: AnyGraph, walks: Walks, source: int, target: int, relations: Sequence[int]
) -> tuple[list[Ints], list[Step]]:
    """Go along the path from the source, then keep what leads to the target."""
    passed = _Passed(graph, walks, source)
    nodes, edges = np.array([source]), []
    for number, relation in enumerate(relations, 1):
        one = steps_from(graph, walks, nodes, first=number == 1)
        own = (one.kind == relation - 1) & (
            (one.target == target) if number == len(relations) else ~passed.left_out(one.target, number)
        )
        edges.append((one.source[own], one.target[own], one.probability[own]))
        nodes = np.unique(one.target[own])
    return _leading_to(target, edges)


def _leading_to(target: int, edges: list[tuple[Ints, Ints, Float64s]]) -> tuple[list[Ints], list[Step]]:
    """Keep the edges that walks to the target go over, and number the nodes of each step anew."""
    states, kept = [np.array([target])], []
    for sources, targets, probability in reversed(edges):
        own = np.isin(targets, states[-1])
        kept.append((sources[own], targets[own], probability[own]))
        states.append(np.unique(sources[own]))
    states.reverse()
    steps = [
        Step(np.searchsorted(states[k], sources), np.searchsorted(states[k + 1], targets), probability)
        for k, (sources, targets, probability) in enumerate(reversed(kept))
    ]
    return states, steps


@dataclass(frozen=True, slots=True)
class StepEdges:
    """Edges that a walk may go over next."""

    source: Ints
    kind: Ints
    target: Ints
    probability: Float64s


def steps_from(graph: AnyGraph, walks: Walks, nodes: Ints, *, first: bool) -> StepEdges:
    """Return the edges that walks go over from ascending nodes: not to the node itself, and not through those of many edges."""
    edges = graph.edges_from(nodes)
    place = np.searchsorted(nodes, edges.source)
    weight = np.ones(len(place)) if edges.weight is None else edges.weight.astype(np.float64)
    goes = edges.source != edges.target
    if walks.kind == "walk":
        weight = (
            weight / np.bincount(place[goes], weight[goes], minlength=len(nodes)).clip(min=np.finfo(np.float64).tiny)[place]
        )
    if walks.max_degree is not None and not first:
        goes &= np.bincount(place, minlength=len(nodes))[place] <= walks.max_degree
    return StepEdges(edges.source[goes], edges.edge_type[goes], edges.target[goes], weight[goes])


class _Passed:
    """Nodes that a walk may not meet at a step, as it could have met them earlier over any path."""

    def __init__(self, graph: AnyGraph, walks: Walks, source: int) -> None:
        self.graph, self.walks = graph, walks
        self.levels = [np.array([source])]

    def left_out(self, nodes: Ints, step: int) -> NDArray[np.bool_]:
        """Return which nodes were met at earlier steps; with revisits, one step before does not count but for the source."""
        last = max(1, step - 1) if self.walks.revisits else step
        while len(self.levels) < last:
            self._go_on()
        return np.isin(nodes, np.concatenate(self.levels[:last]))

    def _go_on(self) -> None:
        edges = steps_from(self.graph, self.walks, self.levels[-1], first=len(self.levels) == 1)
        nodes = np.unique(edges.target)
        self.levels.append(nodes[~self.left_out(nodes, len(self.levels))])


def _sums(steps: list[Step], states: list[Ints]) -> list[Float64s]:
    """Return for each state the sum over walks from the first node of their probabilities."""
    found = [np.ones(len(states[0]))]
    for step, after in zip(steps, states[1:], strict=True):
        found.append(_added(step.target, found[-1][step.source] * step.probability, len(after)))
    return found


def _added(place: Ints, terms: Float64s, count: int) -> Float64s:
    return np.asarray(np.bincount(place, terms, minlength=count), np.float64)


def _sums_back(steps: list[Step], states: list[Ints]) -> list[Float64s]:
    """Return for each state the sum over walks to the last node of their probabilities."""
    found = [np.ones(len(states[-1]))]
    for step, before in zip(reversed(steps), reversed(states[:-1]), strict=True):
        found.append(_added(step.source, found[-1][step.target] * step.probability, len(before)))
    return found[::-1]


def _best_to_the_end(steps: list[Step], states: list[Ints]) -> list[Float64s]:
    """Return for each state the probability of the likeliest walk to the last node."""
    found = [np.ones(len(states[-1]))]
    for step, before in zip(reversed(steps), reversed(states[:-1]), strict=True):
        best = np.zeros(len(before))
        np.maximum.at(best, step.source, found[-1][step.target] * step.probability)
        found.append(best)
    return found[::-1]
