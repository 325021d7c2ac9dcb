"""From features back to the columns that they were made of, as far as an encoding keeps what they were."""

import math
from typing import Any

import numpy as np

from gatas.datasets.encoded_columns import SPREAD, Category, Hashed, IndexLists, Lists, Number, Quantile
from gatas.datasets.encoding import EncodedColumn, Encoding
from gatas.graph.inputs import Floats

Value = bool | float | str | list[float] | list[int] | None
DIGITS = 6
"""Features are float32: more digits of a number were not kept."""


def decoded_columns(encoding: Encoding, features: Floats, node_type: int) -> dict[str, Value]:
    """Return the values by column of a node with these features; those that nodes of its type have.

    A gap that was filled with the mean reads as the mean, a value outside of what ranks were made of as the nearest one.
    """
    found: dict[str, Value] = {}
    first = 0
    for column in encoding.columns:
        own = features[first : first + column.width]
        first += column.width
        if node_type in column.types:
            found[column.name] = _decoded(column, own, node_type)
    return found


def _decoded(column: EncodedColumn, own: Floats, node_type: int) -> Value:
    match column:
        case Number():
            value = _rounded(_number(column, float(own[0])))
            return bool(value) if column.boolean and value in (0, 1) else value
        case Quantile():
            rank = float(own[0]) / SPREAD + 0.5 if column.standardised else float(own[0])
            return _rounded(float(np.interp(rank, column.ranks, column.knots)))
        case Category():
            (codes,) = np.nonzero(own)
            return None if not codes.size else "other" if codes[0] >= len(column.values) else column.values[codes[0]]
        case Hashed():
            (codes,) = np.nonzero(own)
            return f"hash {codes[0]}" if codes.size else None
        case Lists():
            start = 0 if column.alike else sum(column.widths[:node_type])
            return [_rounded(float(value)) for value in own[start : start + column.widths[node_type]]]
        case IndexLists():
            return [int(index) for index in np.flatnonzero(own)]


def _number(column: Number, value: float) -> float:
    """Undo scale and logarithm; what is below the precision that a scaled number had is rounded away, so that 0 is 0."""
    given: Any = value * column.scale + column.shift
    size = max(abs(column.shift), abs(column.scale), abs(given))
    given = round(given, DIGITS - math.floor(math.log10(size)))
    return float(np.sign(given) * np.expm1(abs(given))) if column.log else float(given)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
