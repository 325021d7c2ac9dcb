"""`LinkExplanation`: what the log-odds of a link are the sum of, with the ids and names that users know."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from gatas.inference.explanation import Answer, Explanation
from gatas.inference.prediction import SHOWN, cut_short, html_table

ContributionKind = Literal["type", "vectors", "source", "target", "neighbourhood", "path", "no path"]


@dataclass(frozen=True)
class LinkContribution:
    """One term of a link's log-odds, and what the probability would be without it."""

    kind: ContributionKind
    name: str
    value: float
    probability_without: float


@dataclass(frozen=True)
class ScoredPart:
    """All that one part of the score adds: its score times its weight; and the probability without the part."""

    name: str
    weight: float
    score: float
    value: float
    probability_without: float


@dataclass(frozen=True)
class PathWalk:
    """A concrete walk from source to target, and its share of the path's probability."""

    nodes: tuple[int | str, ...]
    share: float


@dataclass(frozen=True)
class NodeBetween:
    """A node that walks of a path go through, at which step, and the share of the path's probability that does."""

    node: int | str
    step: int
    share: float


@dataclass(frozen=True)
class PathContribution(LinkContribution):
    """What a typed path between source and target adds: a constant, and terms of ln P forth and of ln P back.

    `probability` is P(target, path | source). `probability_back` is an estimate of that of the way back: P forth times the
    ratio of both nodes' degrees, which leaves out how rows are normalised, and may be more than 1. Only the strongest paths
    have `walks`, the likeliest first, and `between`, the nodes that most of the probability goes through; all have their
    numbers.
    """

    relations: tuple[str, ...]
    probability: float
    probability_back: float
    constant: float
    forth: float
    back: float
    num_walks: int | None
    walks: tuple[PathWalk, ...]
    num_between: int | None
    between: tuple[NodeBetween, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LinkExplanation:
    """Why a link is as likely as it is: contributions that add up to its log-odds.

    `terms` are those of the type, of the nodes' own vectors and popularity, of their neighbourhoods, and of there being no path
    between the nodes; `paths` are those of each typed path, the strongest first. `parts` has the sums by part of the score.
    `probability_without` is the probability without one of these: the term is left out; a path is taken away, so that where it
    was the only one, the model says what it says of nodes without any.
    """

    source: int | str
    edge_type: str
    target: int | str
    answer: Answer
    known: bool  # a link of the graph or of the training data
    num_steps: int  # C: paths are looked for up to so many steps
    terms: tuple[LinkContribution, ...]
    paths: tuple[PathContribution, ...]
    parts: tuple[ScoredPart, ...]
    shared_neighbours: tuple[int | str, ...]  # one step from both ends, over edges of any type
    neighbourhood: Explanation | None  # the source's side, with the target's as its `other`

    def __repr__(self) -> str:
        strongest = ", ".join(f"{cut_short(one.name)} {one.value:+.3f}" for one in self.strongest[:3])
        link = f"{cut_short(repr(self.source))} – {self.edge_type} → {cut_short(repr(self.target))}"
        known = ", known" if self.known else ""
        return (
            f"LinkExplanation({link}: {self.answer.probability:.1%}{known}; log-odds {self.answer.log_odds:+.3f}: {strongest})"
        )

    def _repr_html_(self) -> str:
        rows = [{"contribution": one.name, "log_odds": one.value, "without": one.probability_without} for one in self.strongest]
        return html_table(pa.Table.from_pylist(rows[:SHOWN]), len(rows))

    @property
    def contributions(self) -> tuple[LinkContribution, ...]:
        """Return everything that adds up to the log-odds: the type's term first, paths last."""
        return (*self.terms, *self.paths)

    @property
    def strongest(self) -> list[LinkContribution]:
        """Return all contributions, the largest first, whether they speak for the link or against it."""
        return sorted(self.contributions, key=lambda one: -abs(one.value))

    @property
    def ends(self) -> tuple[Explanation, ...]:
        """Return what both neighbourhoods are made of, where these are a part of the score; else nothing."""
        return () if self.neighbourhood is None else self.neighbourhood.ends

    @property
    def known_in_words(self) -> str:
        """Say whether the link is known and, if so, whether that it is there may be evidence for it here."""
        if not self.known:
            return "It is not a known link."
        known = "It is a known link, in the graph or of the training data"
        if self.neighbourhood is None:
            return f"{known}; that it is there is no evidence here."
        return f"{known}, and may be evidence for itself here: each node may be in the other's neighbourhood because of it."

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it for JSON, with the first `top` paths and shared neighbours, or with all."""
        return {
            "source": self.source,
            "type": self.edge_type,
            "target": self.target,
            "answer": asdict(self.answer),
            "known": self.known,
            "num_steps": self.num_steps,
            "parts": [asdict(part) for part in self.parts],
            "terms": [asdict(term) for term in self.terms],
            "num_paths": len(self.paths),
            "paths": [_as_lists(asdict(path)) for path in self.paths[:top]],
            "num_shared_neighbours": len(self.shared_neighbours),
            "shared_neighbours": list(self.shared_neighbours[:top]),
            "neighbourhood": None if self.neighbourhood is None else self.neighbourhood.to_dict(top),
        }


def _as_lists(content: Any) -> Any:
    """Return tuples as lists, as JSON has them."""
    if isinstance(content, dict):
        return {name: _as_lists(value) for name, value in content.items()}
    return [_as_lists(value) for value in content] if isinstance(content, tuple | list) else content


def chance(log_odds: float) -> float:
    """Return the probability of log-odds."""
    return float(1 / (1 + np.exp(-log_odds)))
