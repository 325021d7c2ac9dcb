"""`Explanation`: the rows that an answer is made of, with the ids and names that users know.

S rows, K heads, F'' head size. A row is a neighbour as seen over one typed path.
"""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatas.graph.counts import counted
from gatas.graph.inputs import Ints
from gatas.inference.prediction import SHOWN, cut_short, html_table
from gatas.sampling.sampler import Mode

Float64s = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """What is explained: a class, a label or a type of link, how probable it is, and ln p / (1 - p)."""

    name: str
    probability: float
    log_odds: float


@dataclass(frozen=True)
class NumberAnswer:
    """What is explained: a number of a node, in the units that the data has."""

    name: str
    value: float


@dataclass(frozen=True)
class SpreadLabels:
    """What labels spread over the whole graph add to the log-odds of an answer, which are the sum of both numbers."""

    without: float  # log-odds by the node's neighbourhood alone
    effect: float


@dataclass(frozen=True)
class ExplanationPart:
    """Rows that have a path or a depth in common: sums over them, and the effect of them all."""

    name: str
    num_rows: int
    probability: float
    attention: float
    share: float
    effect: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a node is represented as it is, and what that does to an answer; the row most attended to is the first.

    `contributions` add up over rows to what each head gives to σ. `effect` is the answer's log-odds less what they would be
    if the row were left out and the attention shared among the others: above 0 it speaks for the answer, below against it. Of
    a number it is the number less what it would be, in its units.
    Where labels are spread over the graph, `label_spreading` has what they add to the log-odds; rows are left out beside it.
    Without an answer, as for one node of a model that predicts links, there are no effects. Of a link this is the source's
    side, and `other` the target's. A node of a model that scores links without neighbourhoods has no rows, and a `note` on why.
    """

    target: int | str
    neighbour: tuple[int | str, ...]
    path: tuple[str, ...]
    relations: tuple[tuple[str, ...], ...]  # of each row's path, first step first
    step: Ints  # (S,)
    probability: Float64s  # (S,)      P
    weights: Float64s  # (S, K)        α, adds up to 1
    contributions: Float64s  # (S, K, F'')   α d
    answer: Answer | NumberAnswer | None
    effect: Float64s | None  # (S,)
    paths: tuple[ExplanationPart, ...]  # the most attended to first
    depths: tuple[ExplanationPart, ...]  # from the node itself on
    depth_coefficients: Float64s  # (C + 1,)   q
    mode: Mode
    num_candidates: int  # that the rows were chosen from
    coverage: float  # P of the rows against P of all candidates
    other: "Explanation | None" = None
    label_spreading: SpreadLabels | None = None  # where the model has it
    note: str | None = None  # why there are no rows, where the model looks at none

    def __len__(self) -> int:
        return len(self.neighbour)

    def __repr__(self) -> str:
        if self.note is not None:
            return f"Explanation({cut_short(repr(self.target))}: {self.note})"
        answer = "" if self.answer is None else f" {cut_short(repr(self.answer.name))}, {_how_much(self.answer)}"
        if self.label_spreading is not None:
            answer += f" (spread labels: {self.label_spreading.effect:+.3f} log-odds)"
        link = "" if self.other is None else f" → {cut_short(repr(self.other.target))}"
        rows = ", ".join(
            f"{cut_short(repr(self.neighbour[k]))} ({cut_short(self.path[k])}) {self.attention[k]:.1%}"
            for k in range(min(3, len(self)))
        )
        return (
            f"Explanation({cut_short(repr(self.target))}{link}:{answer}; {counted(len(self), 'row')}, most attended to: {rows})"
        )

    def _repr_html_(self) -> str:
        if self.note is not None:
            return f"<p>{escape(self.note)}</p>"
        columns = ("neighbour", "path", "attention", "effect")
        rows = [{name: row[name] for name in columns} for row in self.rows(SHOWN)]
        parts = [] if self.other is None else [self.other._repr_html_()]
        return "".join([html_table(pa.Table.from_pylist(rows), len(self)), *parts])

    @property
    def ends(self) -> tuple["Explanation", ...]:
        """Return this explanation; for a link, those of both ends."""
        return (self,) if self.other is None else (self, self.other)

    @property
    def attention(self) -> Float64s:
        """Return (S,) α, the mean over heads; adds up to 1."""
        return np.asarray(self.weights.mean(1))

    @property
    def output(self) -> Float64s:
        """Return (K, F''), what the heads give to σ."""
        return np.asarray(self.contributions.sum(0))

    @property
    def share(self) -> Float64s:
        """Return (S,) shares of the output that lie along it. They add up to 1; below 0 a row works against the output."""
        return shares_of(self.contributions)

    @property
    def probability_without(self) -> Float64s | None:
        """Return (S,) probabilities of the answer with each row left out."""
        if not isinstance(self.answer, Answer) or self.effect is None:
            return None
        return np.asarray(1 / (1 + np.exp(self.effect - self.answer.log_odds)))

    @property
    def value_without(self) -> Float64s | None:
        """Return (S,) numbers with each row left out, where a number is explained."""
        if not isinstance(self.answer, NumberAnswer) or self.effect is None:
            return None
        return np.asarray(self.answer.value - self.effect)

    def rows(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return rows as data, the first `top` or all."""
        columns = {"probability": self.probability, "attention": self.attention, "share": self.share, "effect": self.effect,
                   "probability_without": self.probability_without, "value_without": self.value_without}  # fmt: skip
        return [
            {
                "neighbour": self.neighbour[k],
                "path": self.path[k],
                "relations": list(self.relations[k]),
                "step": int(self.step[k]),
                **{name: None if column is None else float(column[k]) for name, column in columns.items()},
                "attention_by_head": self.weights[k].tolist(),
            }
            for k in range(len(self) if top is None else min(top, len(self)))
        ]

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return all but the contributions' vectors, for JSON."""
        link = {} if self.other is None else {"other": self.other.to_dict(top)}
        return {
            "target": self.target,
            "answer": None if self.answer is None else asdict(self.answer),
            "label_spreading": None if self.label_spreading is None else asdict(self.label_spreading),
            "note": self.note,
            "mode": self.mode,
            "num_rows": len(self),
            "num_candidates": self.num_candidates,
            "coverage": self.coverage,
            "depth_coefficients": self.depth_coefficients.tolist(),
            "depths": [asdict(part) for part in self.depths],
            "paths": [asdict(part) for part in self.paths],
            "rows": self.rows(top),
            **link,
        }

    def to_pyg(self) -> Any:
        """Return PyG's `Explanation`: an edge for each row from neighbour to target, with its attention as `edge_mask`.

        `node_mask` has each node's attention over all its rows; path, step, P, share, effect and contribution of an edge are
        `edge_…`. `node_ids` has the id of each `node_index`, targets first, `path_names` the name of each `edge_type`.
        """
        import torch

        from gatas.graph.pyg import import_pyg

        ids = list(dict.fromkeys([end.target for end in self.ends] + [name for end in self.ends for name in end.neighbour]))
        place, names = {name: k for k, name in enumerate(ids)}, sorted({name for end in self.ends for name in end.path})
        source = torch.tensor([place[name] for end in self.ends for name in end.neighbour], dtype=torch.int64)
        target = torch.tensor([place[end.target] for end in self.ends for _ in end.neighbour], dtype=torch.int64)

        def column(name: str) -> torch.Tensor:
            return torch.from_numpy(np.concatenate([getattr(end, name) for end in self.ends])).float()

        attention = column("attention")
        of_answer = {} if self.answer is None else {"edge_effect": column("effect"), "answer": self.answer.name}
        return import_pyg("explain").Explanation(
            num_nodes=len(ids),
            node_index=torch.arange(len(ids)),
            node_ids=dict(enumerate(ids)),  # a list would be cut with the edges, were it as long
            node_mask=torch.zeros(len(ids)).index_add_(0, source, attention)[:, None],
            edge_index=torch.stack([source, target]),
            edge_mask=attention,
            edge_type=torch.tensor([names.index(name) for end in self.ends for name in end.path], dtype=torch.int64),
            edge_step=column("step").long(),
            edge_probability=column("probability"),
            edge_share=column("share"),
            edge_contribution=column("contributions"),
            path_names=dict(enumerate(names)),
            **of_answer,
        )


def _how_much(answer: Answer | NumberAnswer) -> str:
    return f"{answer.value:.4g}" if isinstance(answer, NumberAnswer) else f"{answer.probability:.1%}"


def shares_of(contributions: Float64s) -> Float64s:
    """Return (S,) ⟨contribution, output⟩ / ⟨output, output⟩ over all heads; zeros where there is no output."""
    output = contributions.sum(0)
    along = np.einsum("skf,kf->s", contributions, output)
    return np.asarray(along / max(float((output**2).sum()), np.finfo(np.float64).tiny))
