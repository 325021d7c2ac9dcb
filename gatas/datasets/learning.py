"""How columns of a node table become features, learned of the table: `learn_encoding`."""

from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.datasets.column_values import Mask, as_categories, as_lists, as_numbers, present_values, refuse_numbers
from gatas.datasets.config import TableData
from gatas.datasets.encoding import Category, EncodedColumn, Encoding, Lists, NodeTypes, Number
from gatas.datasets.labels import find_column
from gatas.errors import GraphError
from gatas.graph.column_types import is_list, is_number_column, is_text, joined
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, warn_of_unused

MOST_CATEGORIES = 1000


def learn_encoding(table: Table, config: TableData, node_types: NodeTypes, training: Ints | None) -> Encoding | None:
    """Learn how the columns that settings choose become features; None where there are none.

    Numbers are standardised over `training` nodes, or over all.
    """
    names = chosen_columns(table, config)
    warn_of_unused(table, used=(*names, *(config.label_columns)))
    if not names:
        return None
    measured = np.ones(table.num_rows, np.bool_)
    if training is not None:
        measured = np.isin(np.arange(table.num_rows), training)
    columns = tuple(learn_column(table, name, config, node_types, measured) for name in names)
    return Encoding(types=node_types.names, missing=config.missing, columns=columns)


def chosen_columns(table: Table, config: TableData) -> list[str]:
    """Return the columns that the settings name, in their order; without any, all numbers and lists that are left."""
    labels = config.label_columns
    if config.features is None:
        rest = {name: values for name, values in table.others.items() if name not in labels}
        chosen = [name for name, values in rest.items() if is_number_column(values) or is_list(values.type)]
        return [*chosen, *(name for name in config.categorical if name not in chosen)]
    chosen = []
    for wanted in (*config.features, *config.categorical):
        matching = [name for name in table.others if fnmatchcase(name, wanted)] if "*" in wanted else []
        if "*" in wanted and not matching:
            raise GraphError(f"{table.path} has no column like {wanted!r}, which data.features names.")
        chosen += [name for name in matching or [wanted] if name not in chosen]
    if given_away := [name for name in chosen if name in (*labels, table.column_names.get("label"))]:
        raise GraphError(f"data.features names {given_away[0]!r}, the labels: this gives the answer away. Leave it out.")
    return chosen


def learn_column(table: Table, name: str, config: TableData, node_types: NodeTypes, measured: Mask) -> EncodedColumn:
    """Learn how one column becomes features, over `measured` nodes."""
    values = joined(find_column(table, name, "data.features"))
    if is_list(values.type):
        return _learned_lists(table, name, values, node_types)
    if name in config.categorical or is_text(values):
        return _learned_categories(table, name, values, node_types, config)
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected numbers, text or lists of numbers.")
    return _learned_number(table, name, values, node_types, config, measured)


def _learned_number(table: Table, name: str, values: Any, node_types: NodeTypes, config: TableData, measured: Mask) -> Number:
    """Take mean and deviation of training nodes; where none has a value, of all nodes that have one."""
    types = _types_with(table, name, values, node_types)
    numbers = as_numbers(table, name, values)
    present = ~np.isnan(numbers)
    known = numbers[present & measured] if (present & measured).any() else numbers[present]
    mean, deviation = float(known.mean()), float(known.std())
    if not config.standardise:
        return Number(name=name, types=types, mean=mean, shift=0.0, scale=1.0)
    return Number(name=name, types=types, mean=mean, shift=mean, scale=deviation if deviation > 0 else 1.0)


def _learned_categories(table: Table, name: str, values: Any, node_types: NodeTypes, config: TableData) -> Category:
    texts = as_categories(table, name, values)
    types = _types_with(table, name, texts, node_types)
    if name not in config.categorical:
        refuse_numbers(table, name, texts)
    known = pc.unique(texts).drop_null()
    if len(known) > MOST_CATEGORIES:
        raise GraphError(f"{table.path}, column {name!r} has {len(known):,} different values; one column for each would be "
                         f"made, and at most {MOST_CATEGORIES:,} are. Leave it out of data.features.")  # fmt: skip
    return Category(name=name, types=types, values=tuple(known.take(pc.sort_indices(known)).to_pylist()))


def _learned_lists(table: Table, name: str, values: Any, node_types: NodeTypes) -> Lists:
    rows, lengths, _ = as_lists(table, name, values)
    widths = np.zeros(len(node_types.names), np.int64)
    np.maximum.at(widths, node_types.index[rows], lengths)
    return Lists(name=name, types=_types_with(table, name, values, node_types), widths=tuple(widths.tolist()))


def _types_with(table: Table, name: str, values: Any, node_types: NodeTypes) -> tuple[int, ...]:
    """Return the types of nodes that have any value."""
    types = np.unique(node_types.index[present_values(values)])
    if not types.size:
        raise GraphError(f"{table.path}, column {name!r} has no values. Leave it out of data.features.")
    return tuple(types.tolist())
