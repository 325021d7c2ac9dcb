"""Whether the values of a column can be what is predicted of nodes: classes, or numbers."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gatas.datasets.node_columns import whole_or_none
from gatas.graph.column_types import is_list, is_number_column, is_text

FEW = 50
"""Values with no more different ones are taken for a type or a graph."""
MOST_CLASSES = 1000
"""A column with the name of a label and no more different values is one."""


def can_be_target(values: Any, task: str | None) -> bool:
    """Whether values can be what a task predicts; without a task, classes or fractions."""
    if task == "node regression":
        return is_number_column(values)
    return can_be_label(values) or (task is None and are_fractions(values))


def are_fractions(values: Any) -> bool:
    """Whether values are numbers that are not all whole."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return bool(pa.types.is_floating(values.type)) and whole_or_none(values) is None


def can_be_label(values: Any) -> bool:
    """Whether values can be classes: few, or many that repeat; lists of classes; whole numbers written as decimals."""
    if is_list(values.type):
        return True
    if pa.types.is_floating(values.type) and (whole := whole_or_none(values)) is not None:
        values = whole
    if is_few(values):
        return True
    if not (is_text(values) or pa.types.is_integer(values.type)):
        return False
    return bool(pc.count_distinct(values).as_py() <= min(MOST_CLASSES, (len(values) - values.null_count) / 2))


def is_few(values: Any) -> bool:
    """Whether values repeat, so that they can be types or graphs."""
    if not (is_text(values) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)):
        return False
    return bool(pc.count_distinct(values).as_py() <= FEW)
