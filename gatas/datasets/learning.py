"""How columns of a node table become features, learned of the table: `learn_encoding`."""

import warnings
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.column_values import Mask, as_categories, as_lists, as_numbers, present_values, refuse_numbers
from gatas.datasets.config import TableData
from gatas.datasets.encode_setting import ColumnEncoding, encoding_for
from gatas.datasets.encoded_columns import (
    Category,
    Hashed,
    IndexLists,
    Lists,
    NodeTypes,
    Number,
    Quantile,
    signed_log,
)
from gatas.datasets.encoding import EncodedColumn, Encoding
from gatas.datasets.feature_files import NO_FILES, FeatureFile
from gatas.datasets.index_lists import as_indices, is_ragged, list_lengths
from gatas.datasets.labels import find_column
from gatas.errors import GatasWarning, GraphError
from gatas.graph.column_types import is_list, is_number_column, is_text, joined
from gatas.graph.inputs import Ints
from gatas.graph.tables import Table, warn_of_unused

MOST_CATEGORIES = 1000
"""Different values that get a column each, where settings say nothing."""
FREQUENT = 200
"""Values that get a column where there are more; all others share one."""
MOST_KNOTS = 256
"""Quantiles that are kept of a column."""


def learn_encoding(
    table: Table,
    config: TableData,
    node_types: NodeTypes,
    training: Ints | None,
    files: Mapping[str, FeatureFile] = NO_FILES,
) -> Encoding | None:
    """Learn how the columns that settings choose become features; None where there are none.

    Numbers are standardised over `training` nodes, or over all. Columns that came from files are as wide as these.
    """
    names = chosen_columns(table, config)
    warn_of_unused(table, used=(*names, *(config.label_columns), *value_columns(config)))
    if not names:
        return None
    _check_encoded(table, names, config)
    measured = np.ones(table.num_rows, np.bool_)
    if training is not None:
        measured = np.isin(np.arange(table.num_rows), training)
    columns = [learn_column(table, name, config, node_types, measured) for name in names]
    columns = [column.model_copy(update=files[column.name]._asdict()) if column.name in files else column for column in columns]
    return Encoding(types=node_types.names, missing=config.missing, columns=tuple(columns))


def value_columns(config: TableData) -> list[str]:
    """Return the columns that hold the values of others' indices."""
    return [name for name in config.indices.values() if name is not None]


def _check_encoded(table: Table, names: list[str], config: TableData) -> None:
    """Refuse encodings of columns that are no features."""
    for setting, wanted in (("encode", config.encode), ("indices", config.indices)):
        for name in wanted:
            if not any(fnmatchcase(column, name) for column in names):
                find_column(table, name, f"data.{setting}")
                raise GraphError(f"data.{setting} names {name!r}, which is no feature. Add it to data.features.")


def chosen_columns(table: Table, config: TableData) -> list[str]:
    """Return the columns that the settings name, in their order; without any, all numbers and lists that are left."""
    labels = config.label_columns
    if config.features is None:
        rest = {name: values for name, values in table.others.items() if name not in labels}
        able = [name for name, values in rest.items() if is_number_column(values) or is_list(values.type)]
        named = (*config.categorical, *config.indices, *(name for name in config.encode if name in rest))
        return list(dict.fromkeys(name for name in (*able, *named) if name not in value_columns(config)))
    chosen = list[str]()
    for wanted in (*config.features, *config.categorical, *config.indices):
        matching = [name for name in table.others if fnmatchcase(name, wanted)] if "*" in wanted else []
        if "*" in wanted and not matching:
            raise GraphError(f"{table.path} has no column like {wanted!r}, which data.features names.")
        chosen += [name for name in matching or [wanted] if name not in (*chosen, *value_columns(config))]
    if given_away := [name for name in chosen if name in (*labels, table.column_names.get("label"))]:
        raise GraphError(f"data.features names {given_away[0]!r}, the labels: this gives the answer away. Leave it out.")
    return chosen


def learn_column(table: Table, name: str, config: TableData, node_types: NodeTypes, measured: Mask) -> EncodedColumn:
    """Learn how one column becomes features, over `measured` nodes."""
    values = joined(find_column(table, name, "data.features"))
    encoding = encoding_for(name, config.encode)
    if name in config.indices or (is_list(values.type) and are_indices(values, node_types)):
        return _learned_indices(table, name, values, node_types, config)
    if is_list(values.type):
        if encoding is not None:
            raise GraphError(
                f"{table.path}, column {name!r} holds lists, which are taken as they are. Leave it out of data.encode."
            )
        return _learned_lists(table, name, values, node_types)
    as_codes = name in config.categorical or (encoding is not None and encoding.of_categories)
    if as_codes or is_text(values):
        if encoding is not None and not encoding.of_categories:
            raise GraphError(f"{table.path}, column {name!r} is text or categorical; data.encode says {encoding.kind!r}, which "
                             "is for numbers. Choose one-hot, frequent N or hashed N.")  # fmt: skip
        return _learned_categories(table, name, values, node_types, as_codes, encoding)
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        numbers = ", such as days" if pa.types.is_temporal(values.type) else ""
        raise GraphError(f"{table.path}, column {name!r} holds {values.type}; expected numbers, text or lists of numbers. "
                         f"Leave it out of data.features, or convert it to numbers{numbers}.")  # fmt: skip
    kind = encoding.kind if encoding is not None else "standard" if config.standardise else "unscaled"
    return _learned_number(table, name, values, node_types, measured, kind, config.standardise)


def are_indices(values: Any, node_types: NodeTypes) -> bool:
    """Whether lists hold indices where no setting says so: whole numbers, in lists of different lengths within a node type."""
    if not pa.types.is_integer(values.type.value_type):
        return False
    rows = np.flatnonzero(np.asarray(values.is_valid()))
    return is_ragged(list_lengths(values)[rows], node_types.index[rows])


def _learned_number(
    table: Table, name: str, values: Any, node_types: NodeTypes, measured: Mask, kind: str, standardise: bool
) -> Number | Quantile:
    """Take mean and deviation, or quantiles, of training nodes; where none has a value, of all nodes that have one."""
    types = _types_with(table, name, values, node_types)
    numbers = as_numbers(table, name, values)
    present = ~np.isnan(numbers)
    known = numbers[present & measured] if (present & measured).any() else numbers[present]
    if kind == "quantile":
        knots, ranks = quantiles(known)
        return Quantile(name=name, types=types, knots=knots, ranks=ranks, standardised=standardise)
    known = signed_log(known) if kind == "log" else known
    mean, deviation = float(known.mean()), float(known.std())
    about: Any = {"name": name, "types": types, "log": kind == "log", "boolean": pa.types.is_boolean(values.type), "mean": mean}
    if kind == "unscaled" or not standardise:
        return Number(**about, shift=0.0, scale=1.0)
    return Number(**about, shift=mean, scale=deviation if deviation > 0 else 1.0)


def quantiles(numbers: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return numbers in ascending order, at most `MOST_KNOTS`, and the share that each has below it; equal ones by halves."""
    values, counts = np.unique(numbers, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(numbers)
    if len(values) > MOST_KNOTS:
        chosen = np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], MOST_KNOTS))
        chosen = np.unique(np.concatenate([[0], np.minimum(chosen, len(values) - 1), [len(values) - 1]]))
        values, ranks = values[chosen], ranks[chosen]
    return tuple(values.tolist()), tuple(ranks.tolist())


def _learned_categories(
    table: Table, name: str, values: Any, node_types: NodeTypes, as_codes: bool, encoding: ColumnEncoding | None
) -> Category | Hashed:
    texts = as_categories(table, name, values)
    types = _types_with(table, name, texts, node_types)
    if not as_codes:
        refuse_numbers(table, name, texts)
    if encoding is not None and encoding.kind == "hashed":
        return Hashed(name=name, types=types, buckets=encoding.size)
    counts = pc.value_counts(texts.drop_null())
    known = counts.field("values")
    if encoding is None and len(known) > MOST_CATEGORIES:
        encoding = _said_frequent(table, name, counts)
    if encoding is not None and encoding.kind == "frequent" and len(known) > encoding.size:
        known = _most_frequent(counts, encoding.size)
        return Category(name=name, types=types, values=tuple(sorted(known)), other=True)
    values = tuple(known.take(pc.sort_indices(known)).to_pylist())
    return Category(name=name, types=types, values=values, other=encoding is not None and encoding.kind == "frequent")


def _most_frequent(counts: Any, size: int) -> list[str]:
    """Return the most frequent values; of equally frequent ones the first in the order of text."""
    table = pa.table({"value": counts.field("values"), "count": counts.field("counts")})
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("value", "ascending")])
    return list(table["value"].take(order[:size]).to_pylist())


def _said_frequent(table: Table, name: str, counts: Any) -> ColumnEncoding:
    """Take the most frequent of too many values, with a warning; where hardly any repeats, refuse the column."""
    distinct, total = len(counts), pc.sum(counts.field("counts")).as_py()
    if 2 * distinct > total:
        raise GraphError(
            f"{table.path}, column {name!r} has {distinct:,} different values in {total:,} nodes; hardly any is known from "
            f"another node. Leave it out of data.features, or set data.encode: {{{name}: hashed 64}}."
        )
    largest = np.sort(np.asarray(counts.field("counts")))[::-1][:FREQUENT]
    warnings.warn(
        f"{table.path}, column {name!r} has {distinct:,} different values: the {FREQUENT} most frequent, which "
        f"{largest.sum() / total:.0%} of the nodes have, get a column each, and all others share one. data.encode: "
        f"{{{name}: frequent {FREQUENT}}} says so without this warning.",
        GatasWarning,
        stacklevel=6,
    )
    return ColumnEncoding("frequent", FREQUENT)


def _learned_indices(table: Table, name: str, values: Any, node_types: NodeTypes, config: TableData) -> IndexLists:
    _, indices = as_indices(table, name, values)
    beside = config.indices.get(name)
    if beside is not None:
        find_column(table, beside, "data.indices")
    if not len(indices):
        raise GraphError(f"{table.path}, column {name!r} has no indices. Leave it out of data.features.")
    types = _types_with(table, name, values, node_types)
    return IndexLists(name=name, types=types, width=int(indices.max()) + 1, values=beside)


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
