"""What ids, types and weights of tables must be like, checked batch by batch, wherever the batches go.

What is wrong is counted over all rows and refused with the first places.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GraphError
from gatas.graph.column_types import is_number_column, is_text, is_text_file, is_text_type
from gatas.graph.ids import WHOLE_NUMBER
from gatas.graph.inputs import FLOAT32

ANY_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
NOT_FINITE = r"^[+-]?(?i:nan|inf|infinity)$"
DECIMAL = r"[.eE]"
SHOWN = 3
"""Places that a message names."""

NOUNS = {"source": "id", "target": "id", "id": "id", "edge_type": "type", "node_type": "type", "graph": "graph"}
"""What the values of our columns are called, of those that name something."""

WHAT_TO_DO = {
    "missing": "Fill it in, or remove the row.",
    "blank id": "Remove them: 'a' and ' a' would be two nodes.",
    "blank type": "Remove them: 'a' and ' a' would be two types.",
    "blank graph": "Remove them: 'a' and ' a' would be two graphs.",
    "large": "Write it as text.",
    "number": "Fill in a number, or remove the row.",
    "weight": f"Weights must be positive and lie between {FLOAT32.tiny:.0e} and {FLOAT32.max:.0e}: remove it, or rescale all.",
}

Place = Callable[[int], str]
"""Names a row of a batch, with its file and column."""


@dataclass
class Faults:
    """Counts of each kind of fault, and where the first ones are."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, kind: str, wrong: Any, what: str, place: Place, values: Any) -> None:
        """Count the rows of an Arrow mask; `what` may show the value."""
        count = pc.sum(wrong).as_py() or 0
        if not count:
            return
        entry = self.found.setdefault(kind, {"count": 0, "places": []})
        rows = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))[: SHOWN - len(entry["places"])]
        entry["places"] += [f"{place(int(row))}: {what.format(values[int(row)].as_py())}" for row in rows]
        entry["count"] += count


def refuse_faults(faults: Sequence[Mapping[str, Any]]) -> None:
    """Raise for the first kind of fault that any file has."""
    for kind, remedy in WHAT_TO_DO.items():
        entries = [found[kind] for found in faults if kind in found]
        if count := sum(entry["count"] for entry in entries):
            places = [place for entry in entries for place in entry["places"]]
            raise GraphError(with_count(f"{places[0]}. {remedy}", count, "rows", places))


def refuse_unknown_nodes(places: Sequence[str], count: int) -> NoReturn:
    """Say which edges name nodes that are not in the node table."""
    raise GraphError(with_count(f"{places[0]}. Add it to the node table, or remove the edge.", count, "ends of edges", places))


def with_count(message: str, count: int, what: str, places: Sequence[str]) -> str:
    """Add how many rows have a fault, and where further ones are."""
    return f"{message} ({count:,} {what} are so, among them: {'; '.join(places[1:SHOWN])}.)" if count > 1 else message


@dataclass
class IdFacts:
    """What decides how a column of ids is read: whether it is text and, in a text file, whether all of it is numbers."""

    column: str  # the file's name for it
    noun: str = "id"
    text: bool = False
    from_text: bool = False
    rows: int = 0
    whole: bool = True
    numeric: bool = True
    decimal: str = ""

    def look(self, values: Any, place: Place, faults: Faults) -> Any:
        """Check some rows; return them as int64 or text."""
        if not len(values):
            return values if self.text else pa.array([], pa.int64())
        if not (self.text or pa.types.is_integer(values.type) or pa.types.is_null(values.type)):
            raise GraphError(
                f"{place(0)}: {self.noun}s are of type {values.type} (first value {values[0].as_py()!r}); expected integers or "
                "text. Floats, booleans and dates cannot name anything without loss: cast the column first."
            )
        self.rows += len(values)
        if values.null_count:
            faults.add("missing", pc.is_null(values), f"the {self.noun} is missing", place, values)
            values = values.cast(pa.int64()) if pa.types.is_null(values.type) else values
            values = pc.fill_null(values, pa.scalar("?" if self.text else 0, values.type))
        return self._text(values, place, faults) if self.text else self._integers(values, place, faults)

    def _text(self, values: Any, place: Place, faults: Faults) -> Any:
        blank = pc.or_(pc.equal(values, ""), pc.not_equal(values, pc.utf8_trim_whitespace(values)))
        what = f"the {self.noun} is {{!r}}, which is empty or has spaces around it"
        faults.add(f"blank {self.noun}", blank, what, place, values)
        if self.from_text and self.numeric:
            self.look_for_numbers(values, place)
        return values

    def _integers(self, values: Any, place: Place, faults: Faults) -> Any:
        if pa.types.is_uint64(values.type):
            large = pc.greater(values, pa.scalar(2**63 - 1, pa.uint64()))
            faults.add("large", large, "{} does not fit into 63 bits", place, values)
            values = pc.if_else(large, pa.scalar(0, pa.uint64()), values)
        return values.cast(pa.int64())

    def look_for_numbers(self, values: Any, place: Place) -> None:
        """See whether text is all numbers, and these all whole; whole ones need no further look."""
        if pc.all(pc.match_substring_regex(values, WHOLE_NUMBER), min_count=0).as_py():
            self.whole = self.whole and _fits(values)
            return
        self.whole = False
        self.numeric = bool(pc.all(pc.match_substring_regex(values, ANY_NUMBER), min_count=0).as_py())
        if self.numeric and not self.decimal:
            row = pc.index(pc.match_substring_regex(values, DECIMAL), True).as_py()
            self.decimal = f"{place(row)}: {values[row].as_py()!r}" if row >= 0 else ""


def _fits(values: Any) -> bool:
    """Whether text of whole numbers is below 2^63."""
    if pc.max(pc.binary_length(values)).as_py() < 19:
        return True
    try:
        values.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True


def refuse_decimals(columns: Sequence[IdFacts], hint: str = "Write whole numbers without a decimal point, or text.") -> None:
    """Refuse text files' columns of numbers that are not all whole: 1 and 1.0 would be two."""
    text = [column for column in columns if column.from_text and column.rows]
    wrong = [column.decimal for column in text if column.decimal]
    if wrong and all(column.numeric for column in text):
        raise GraphError(f"{wrong[0]} is not a whole number, while all values are numbers. {hint}")


def are_integers(columns: Sequence[tuple[str, IdFacts]]) -> bool:
    """Whether ids of all columns are compared as integers or as text; text files hold text until it is all numbers."""
    columns = [(described, facts) for described, facts in columns if facts.rows]
    if all(not facts.text or (facts.from_text and facts.whole) for _, facts in columns):
        return True
    if len({facts.text for _, facts in columns}) > 1:
        kinds = ", ".join(dict.fromkeys(f"{what} {'text' if facts.text else 'integers'}" for what, facts in columns))
        raise GraphError(f"ids must be of one kind, but {kinds}. Cast one of the columns.")
    return False


@dataclass
class ColumnChecks:
    """Checks the columns of one table, batch after batch.

    Args:
        path: The file, for messages.
        names: Our columns that it has, with its names for them.
        types: Their types, by our names.
    """

    path: Path
    names: Mapping[str, str]
    types: Mapping[str, Any]
    rows: int = 0
    faults: Faults = field(default_factory=Faults)
    facts: dict[str, IdFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from_text = is_text_file(self.path)
        for name, column in self.names.items():
            if name in NOUNS:
                self.facts[name] = IdFacts(column, NOUNS[name], is_text_type(self.types[name]), from_text)

    def look(self, batch: Any) -> dict[str, Any]:
        """Check a batch with our column names: ids become int64 or text, weights float32; others stay as they are."""
        found = {}
        for name in batch.schema.names:
            values, place = batch.column(name), self._place(name)
            if name in self.facts:
                values = self.facts[name].look(values, place, self.faults)
            elif name == "weight":
                values = _weights(values, is_text_file(self.path), place, self.faults)
            found[name] = values
        self.rows += batch.num_rows
        return found

    def _place(self, name: str) -> Place:
        first = self.rows
        return lambda row: f"{self.path}, row {first + row + 1}, column {self.names[name]!r}"


def _weights(values: Any, from_text: bool, place: Place, faults: Faults) -> Any:
    """Read weights as float32; what cannot be one is counted, and is 1 in the meantime."""
    if is_text(values) and from_text:
        values = _parsed_weights(values, place, faults)
    if len(values) and not (is_number_column(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{place(0)}: {values[0].as_py()!r} is {values.type}; expected numbers.")
    faults.add("missing", pc.is_null(values), "the weight is missing", place, values)
    wide = np.asarray(pc.fill_null(values.cast(pa.float64()), 1.0))
    usable = (wide == 0) | ((wide >= FLOAT32.tiny) & (wide <= FLOAT32.max))  # NaN compares false
    if not usable.all():
        faults.add("weight", pa.array(~usable), "weight is {}", place, values)
        wide = np.where(usable, wide, 1.0)
    return pa.array(wide.astype(np.float32))


def _parsed_weights(values: Any, place: Place, faults: Faults) -> Any:
    text = pc.utf8_trim_whitespace(values)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        numeric = pc.or_(pc.match_substring_regex(text, ANY_NUMBER), pc.match_substring_regex(text, NOT_FINITE))
        missing = pc.equal(text, "")
        faults.add("missing", missing, "the weight is missing", place, values)
        wrong = pc.and_(pc.invert(numeric), pc.invert(missing))
        faults.add("number", wrong, "{!r} is not a number", place, values)
        return pc.if_else(numeric, text, "1").cast(pa.float64())
