"""Columns of a node table as one matrix of features, and the same for nodes that come later.

A column belongs to the node types that have any value in it: others have zeros there, and so have columns of their own. A
number becomes one column, text (or what is `categorical`) one for each value, a list one for each place.
"""

import warnings
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from gatas.datasets.config import TableData
from gatas.datasets.labels import find_column
from gatas.datasets.node_columns import whole_or_none
from gatas.errors import GatasWarning, GraphError
from gatas.graph.checks import ANY_NUMBER
from gatas.graph.column_types import is_list, is_number_column, is_text
from gatas.graph.inputs import Floats, Ints
from gatas.graph.tables import Table, codes_of, warn_of_unused

ONE_KIND = ("",)
"""The types of nodes where no column says."""
MOST_CATEGORIES = 1000
FORMAT = 1

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Kinds:
    """The type of each node; all alike where there are no types."""

    number: Ints
    names: tuple[str, ...]


class Column(BaseModel, frozen=True, extra="forbid"):
    """A column of the table, and the numbers of the node types that have values in it."""

    name: str
    types: tuple[int, ...]


class Number(Column):
    """(x - shift) / scale; a gap that may be filled is the mean."""

    kind: Literal["number"] = "number"
    mean: float
    shift: float
    scale: float

    @property
    def width(self) -> int:
        return 1

    def encoded(self, people: Table, values: Any, kinds: Kinds, gaps: Mask, missing: str) -> Floats:
        numbers = _as_numbers(people, self.name, values)
        present = ~np.isnan(numbers)
        filled = (np.where(gaps, self.mean, numbers) - self.shift) / self.scale
        with np.errstate(over="ignore"):
            column: Floats = np.where(present | gaps, filled, 0.0).astype(np.float32)[:, None]
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise GraphError(
                f"{people.place(row, self.name)}: {numbers[row]:g} is too large. Rescale the column, or take logarithms."
            )
        return column


class Category(Column):
    """A column for each value, in ascending order; a gap is none of them."""

    kind: Literal["category"] = "category"
    values: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values)

    def encoded(self, people: Table, values: Any, kinds: Kinds, gaps: Mask, missing: str) -> Floats:
        texts = _as_categories(people, self.name, values)
        found = pc.index_in(texts, value_set=pa.array(self.values, pa.string()))
        codes: Ints = np.asarray(pc.fill_null(found, -1))
        self._refuse_unseen(people, texts, np.asarray(texts.is_valid()) & (codes < 0), missing)
        columns: Floats = (codes[:, None] == np.arange(len(self.values))).astype(np.float32)
        return columns

    def _refuse_unseen(self, people: Table, texts: Any, unseen: Mask, missing: str) -> None:
        """A value that training did not have is refused, or counts as none where gaps may be filled."""
        if not unseen.any():
            return
        row = int(np.argmax(unseen))
        if missing == "refuse":
            known = ", ".join(map(repr, self.values[:10])) + (" …" if len(self.values) > 10 else "")
            raise GraphError(
                f"{people.place(row, self.name)}: {texts[row].as_py()!r} was in no node of training, which had {known}. Give "
                "one of these, or train with data.missing: fill, which takes it for no category."
            )
        warnings.warn(
            f"{people.path}, column {self.name!r}: {int(unseen.sum()):,} values that training did not have, such as "
            f"{texts[row].as_py()!r}, were taken for no category.",
            GatasWarning,
            stacklevel=5,
        )


class Lists(Column):
    """As they are given. Where node types have lists of different lengths, each has columns of its own."""

    kind: Literal["list"] = "list"
    widths: tuple[int, ...]  # by node type

    @property
    def alike(self) -> bool:
        return len({width for width in self.widths if width}) < 2

    @property
    def width(self) -> int:
        return max(self.widths) if self.alike else sum(self.widths)

    def encoded(self, people: Table, values: Any, kinds: Kinds, gaps: Mask, missing: str) -> Floats:
        rows, lengths, numbers = _as_lists(people, self.name, values)
        widths = np.array(self.widths, np.int64)
        wrong = lengths != widths[kinds.number[rows]]
        if wrong.any():
            row, longest = int(rows[np.argmax(wrong)]), widths[kinds.number[rows[np.argmax(wrong)]]]
            length = lengths[np.argmax(wrong)]
            raise GraphError(f"{people.place(row, self.name)}: the list has {length} numbers, others of its type {longest}.")
        starts = np.zeros_like(widths) if self.alike else np.cumsum(widths) - widths
        matrix = np.zeros((people.num_rows, self.width), np.float32)
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        matrix[np.repeat(rows, lengths), within + np.repeat(starts[kinds.number[rows]], lengths)] = numbers
        return matrix


class Encoding(BaseModel, frozen=True, extra="forbid"):
    """How columns become features: what was learned of them in training, to be done again with other nodes."""

    format: int = FORMAT
    types: tuple[str, ...]
    missing: Literal["refuse", "fill"]
    columns: tuple[Annotated[Number | Category | Lists, Field(discriminator="kind")], ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def kinds(self, people: Table) -> Kinds:
        """The types of nodes that come later, numbered as in training."""
        if self.types == ONE_KIND:
            return Kinds(np.zeros(people.num_rows, np.int64), ONE_KIND)
        known = ", ".join(map(repr, self.types))
        if "node_type" not in people.columns:
            raise GraphError(f"{people.path} does not say of what type nodes are; training had {known}. Add the column.")
        codes, names = codes_of(people, "node_type")
        if unseen := [name for name in names if name not in self.types]:
            row = int(np.argmax(codes == names.index(unseen[0])))
            raise GraphError(
                f"{people.place(row, 'node_type')}: no node of training was of type {unseen[0]!r}, only of {known}."
            )
        return Kinds(np.array([self.types.index(name) for name in names], np.int64)[codes], self.types)

    def encoded(self, people: Table, kinds: Kinds) -> Floats:
        """(n, F) features of the nodes of a table."""
        parts = []
        for column in self.columns:
            values = _values(people, column.name)
            gaps = self.gaps(people, column, values, kinds)
            if values is None or pa.types.is_null(values.type):
                values = pa.nulls(people.num_rows, _BLANK[column.kind])
            parts.append(column.encoded(people, values, kinds, gaps, self.missing))
        return np.concatenate(parts, axis=1)

    def gaps(self, people: Table, column: Column, values: Any, kinds: Kinds) -> Mask:
        """Nodes without a value whose type has some: refused, unless they may be filled."""
        present = np.zeros(people.num_rows, np.bool_) if values is None else _present(values)
        gaps: Mask = np.isin(kinds.number, column.types) & ~present
        if not gaps.any():
            return gaps
        if values is None and self.missing == "refuse":
            raise GraphError(
                f"{people.path} has no column {column.name!r}, which the model was trained on. Add it, or train with "
                "data.missing: fill (the mean, or no category)."
            )
        if self.missing == "refuse":
            row = int(np.argmax(gaps))
            own = kinds.number == kinds.number[row]
            of = f" of type {kinds.names[kinds.number[row]]!r}" if len(kinds.names) > 1 else ""
            raise GraphError(
                f"{people.path}, column {column.name!r}: {int((gaps & own).sum()):,} of {int(own.sum()):,} nodes{of} have no "
                f"value, the first in row {row + 1}. Fill them in, or set data.missing: fill (the mean, or no category)."
            )
        return gaps


_BLANK = {"number": pa.float64(), "category": pa.string(), "list": pa.list_(pa.float64())}


def learn_encoding(people: Table, config: TableData, kinds: Kinds, training: Ints | None) -> Encoding | None:
    """Of the columns that settings choose, or None. Numbers are standardised over `training` nodes, or over all."""
    names = chosen_columns(people, config)
    warn_of_unused(people, used=(*names, *(config.label_columns)))
    if not names:
        return None
    measured = np.ones(people.num_rows, np.bool_)
    if training is not None:
        measured = np.isin(np.arange(people.num_rows), training)
    columns = tuple(learn_column(people, name, config, kinds, measured) for name in names)
    return Encoding(types=kinds.names, missing=config.missing, columns=columns)


def chosen_columns(people: Table, config: TableData) -> list[str]:
    """The columns that the settings name, in their order; without any, all numbers and lists that are left."""
    labels = config.label_columns
    if config.features is None:
        rest = {name: values for name, values in people.others.items() if name not in labels}
        chosen = [name for name, values in rest.items() if is_number_column(values) or is_list(values.type)]
        return [*chosen, *(name for name in config.categorical if name not in chosen)]
    chosen = []
    for wanted in (*config.features, *config.categorical):
        matching = [name for name in people.others if fnmatchcase(name, wanted)] if "*" in wanted else []
        if "*" in wanted and not matching:
            raise GraphError(f"{people.path} has no column like {wanted!r}, which data.features names.")
        chosen += [name for name in matching or [wanted] if name not in chosen]
    if given_away := [name for name in chosen if name in (*labels, people.column_names.get("label"))]:
        raise GraphError(f"data.features names {given_away[0]!r}, the labels: this gives the answer away. Leave it out.")
    return chosen


def learn_column(people: Table, name: str, config: TableData, kinds: Kinds, measured: Mask) -> Number | Category | Lists:
    """What is learned of one column, over `measured` nodes."""
    values = _joined(find_column(people, name, "data.features"))
    if is_list(values.type):
        return _learned_lists(people, name, values, kinds)
    if name in config.categorical or is_text(values):
        return _learned_categories(people, name, values, kinds, config)
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected numbers, text or lists of numbers.")
    return _learned_number(people, name, values, kinds, config, measured)


def _learned_number(people: Table, name: str, values: Any, kinds: Kinds, config: TableData, measured: Mask) -> Number:
    """Mean and deviation are those of training nodes; of all that have a value, where no training node has one."""
    types = _types_with(people, name, values, kinds)
    numbers = _as_numbers(people, name, values)
    present = ~np.isnan(numbers)
    known = numbers[present & measured] if (present & measured).any() else numbers[present]
    mean, deviation = float(known.mean()), float(known.std())
    if not config.standardise:
        return Number(name=name, types=types, mean=mean, shift=0.0, scale=1.0)
    return Number(name=name, types=types, mean=mean, shift=mean, scale=deviation if deviation > 0 else 1.0)


def _learned_categories(people: Table, name: str, values: Any, kinds: Kinds, config: TableData) -> Category:
    texts = _as_categories(people, name, values)
    types = _types_with(people, name, texts, kinds)
    if name not in config.categorical:
        _refuse_numbers(people, name, texts)
    known = pc.unique(texts).drop_null()
    if len(known) > MOST_CATEGORIES:
        raise GraphError(f"{people.path}, column {name!r} has {len(known):,} different values; one column for each would be "
                         f"made, and at most {MOST_CATEGORIES:,} are. Leave it out of data.features.")  # fmt: skip
    return Category(name=name, types=types, values=tuple(known.take(pc.sort_indices(known)).to_pylist()))


def _learned_lists(people: Table, name: str, values: Any, kinds: Kinds) -> Lists:
    rows, lengths, _ = _as_lists(people, name, values)
    widths = np.zeros(len(kinds.names), np.int64)
    np.maximum.at(widths, kinds.number[rows], lengths)
    return Lists(name=name, types=_types_with(people, name, values, kinds), widths=tuple(widths.tolist()))


def _types_with(people: Table, name: str, values: Any, kinds: Kinds) -> tuple[int, ...]:
    """The types of nodes that have any value."""
    types = np.unique(kinds.number[_present(values)])
    if not types.size:
        raise GraphError(f"{people.path}, column {name!r} has no values. Leave it out of data.features.")
    return tuple(types.tolist())


def _values(people: Table, name: str) -> Any:
    """A column of any table, or None."""
    ours = {column: people.columns[name] for name, column in people.column_names.items()}
    values = {**people.others, **ours}.get(name)
    return None if values is None else _joined(values)


def _joined(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _present(values: Any) -> Mask:
    """NaN and empty text are gaps, too."""
    present = values.is_valid()
    if pa.types.is_floating(values.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(values), False)))
    elif is_text(values):
        present = pc.and_(present, pc.fill_null(pc.not_equal(values, ""), False))
    return np.asarray(present)


def _as_numbers(people: Table, name: str, values: Any) -> NDArray[np.float64]:
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        text = f", such as {values.drop_null()[0].as_py()!r}" if is_text(values) and len(values.drop_null()) else ""
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}{text}; expected numbers.")
    numbers = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan))
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise GraphError(f"{people.place(row, name)}: the feature is {numbers[row]}; expected a finite number.")
    return numbers


def _as_categories(people: Table, name: str, values: Any) -> Any:
    """Text, in which 3 and 3.0 are the same; empty is a gap."""
    if pa.types.is_nested(values.type):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected text or numbers that are codes.")
    if pa.types.is_floating(values.type) and (numbers := whole_or_none(values)) is not None:
        values = numbers
    texts = values.cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _as_lists(people: Table, name: str, values: Any) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """The rows that have a list, how long each is, and their numbers one after another."""
    if not is_list(values.type) or not (is_number_column(values.flatten()) or pa.types.is_null(values.type.value_type)):
        raise GraphError(f"{people.path}, column {name!r} holds {values.type}; expected lists of numbers.")
    rows = np.flatnonzero(np.asarray(values.is_valid()))
    lengths: Ints = np.asarray(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)[rows]
    numbers = np.asarray(pc.fill_null(values.drop_null().flatten().cast(pa.float64()), np.nan))
    if not np.isfinite(numbers).all():
        place = np.searchsorted(np.cumsum(lengths), int(np.argmin(np.isfinite(numbers))), side="right")
        raise GraphError(f"{people.place(int(rows[place]), name)}: a number in the list is missing or not finite.")
    return rows, lengths, numbers


def _refuse_numbers(people: Table, name: str, values: Any) -> None:
    """Text that is mostly numbers is a column of numbers with something wrong in it."""
    numeric = pc.match_substring_regex(values, ANY_NUMBER)
    count = pc.sum(numeric).as_py() or 0
    if 2 * count > len(values) - values.null_count:
        row = pc.index(numeric, False).as_py()
        if row < 0:
            return
        raise GraphError(
            f"{people.place(row, name)}: {values[row].as_py()!r} is not a number, while {count:,} others are. Mend it, or "
            "list the column in data.categorical."
        )
