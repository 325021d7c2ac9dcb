"""What a predictor returns: `Prediction` for classes of nodes, `NumberPrediction` for numbers, `LinkPrediction` for links."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatas.graph.counts import counted

SHOWN = 10
"""Rows that a notebook shows."""
SHORT = 20
"""Characters of an id or a name in a `repr`."""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Classes of nodes, with their probabilities."""

    ids: Any  # a column
    names: tuple[str, ...]  # of the classes
    probabilities: NDArray[np.float32]  # (n, classes); add up to 1, unless a node may have any number of classes
    multi_label: bool
    deviations: NDArray[np.float32] | None = None  # (n, classes); over draws, where a spread was asked for

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def labels(self) -> list[Any]:
        """Return the likeliest class of each node; with multiple labels, a list of those that are likelier than not."""
        if not self.multi_label:
            return [self.names[place] for place in self.probabilities.argmax(1)]
        return [[self.names[place] for place in np.flatnonzero(row > 0.5)] for row in self.probabilities]

    def table(self) -> Any:
        """Return an Arrow table with the columns `id`, `class` or `classes`, and `p(…)` for each class.

        Where a spread over draws was asked for, `sd(…)` is its standard deviation.
        """
        labels = pa.array(self.labels, pa.list_(pa.string()) if self.multi_label else pa.string())
        columns = {"id": self.ids, "classes" if self.multi_label else "class": labels}
        chances = {f"p({name})": pa.array(column) for name, column in zip(self.names, self.probabilities.T, strict=True)}
        return pa.table({**columns, **chances, **_deviation_columns(self.names, self.deviations)})

    def __repr__(self) -> str:
        rows = zip(self.ids[:3].to_pylist(), self.labels[:3], strict=True)
        few = ", ".join(f"{cut_short(repr(one))}: {cut_short(repr(label))}" for one, label in rows)
        sizes = f"{counted(len(self), 'node')}, {counted(len(self.names), 'class', 'classes')}"
        return f"Prediction({sizes}; {few}{' …' if len(self) > 3 else ''})"

    def _repr_html_(self) -> str:
        columns = ["id", "classes" if self.multi_label else "class"]
        return html_table(self.table().select(columns).slice(0, SHOWN), len(self))


@dataclass(frozen=True, eq=False, repr=False)
class NumberPrediction:
    """Numbers of nodes, in the units that the data has."""

    ids: Any  # a column
    names: tuple[str, ...]  # of the numbers
    values: NDArray[np.float64]  # (n, targets)
    deviations: NDArray[np.float64] | None = None  # (n, targets); over draws, where a spread was asked for

    def __len__(self) -> int:
        return len(self.values)

    def table(self) -> Any:
        """Return an Arrow table with the column `id` and one for each number.

        Where a spread over draws was asked for, `sd(…)` is its standard deviation.
        """
        numbers = {name: pa.array(column) for name, column in zip(self.names, self.values.T, strict=True)}
        return pa.table({"id": self.ids, **numbers, **_deviation_columns(self.names, self.deviations)})

    def __repr__(self) -> str:
        rows = zip(self.ids[:3].to_pylist(), self.values[:3].tolist(), strict=True)
        few = ", ".join(f"{cut_short(repr(one))}: {', '.join(f'{value:.4g}' for value in row)}" for one, row in rows)
        return f"NumberPrediction({counted(len(self), 'node')}, {', '.join(self.names)}; {few}{' …' if len(self) > 3 else ''})"

    def _repr_html_(self) -> str:
        return html_table(self.table().slice(0, SHOWN), len(self))


@dataclass(frozen=True, eq=False, repr=False)
class LinkPrediction:
    """Links that were asked for, or that are likely, with their probabilities."""

    sources: Any  # columns of ids
    edge_types: list[str]
    targets: Any
    probabilities: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.probabilities)

    def table(self) -> Any:
        """Return an Arrow table with the columns `source`, `type`, `target` and `probability`."""
        columns = {"source": self.sources, "type": pa.array(self.edge_types, pa.string()), "target": self.targets}
        return pa.table({**columns, "probability": pa.array(self.probabilities)})

    def __repr__(self) -> str:
        rows = self.table().slice(0, 3).to_pylist()
        few = ", ".join(
            f"{cut_short(repr(row['source']))} {cut_short(row['type'])} {cut_short(repr(row['target']))}: "
            f"{row['probability']:.3f}"
            for row in rows
        )
        return f"LinkPrediction({counted(len(self), 'link')}; {few}{' …' if len(self) > 3 else ''})"

    def _repr_html_(self) -> str:
        return html_table(self.table().slice(0, SHOWN), len(self))


def _deviation_columns(names: tuple[str, ...], deviations: NDArray[Any] | None) -> dict[str, Any]:
    if deviations is None:
        return {}
    return {f"sd({name})": pa.array(column) for name, column in zip(names, deviations.T, strict=True)}


def cut_short(text: str) -> str:
    """Return the beginning of a text that is too long to be shown whole, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def html_table(table: Any, total: int) -> str:
    """Return the rows of an Arrow table as HTML, with a note where there are more."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = ("".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) for row in table.to_pylist())
    more = f"<caption>{len(table):,} of {total:,} rows</caption>" if total > len(table) else ""
    return f"<table>{more}<tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
