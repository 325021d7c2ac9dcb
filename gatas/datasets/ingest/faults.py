"""What is wrong with edge files: counted over all of them, and refused with the first places."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GraphError
from gatas.graph.ids import WHOLE_NUMBER
from gatas.graph.inputs import FLOAT32
from gatas.graph.tables import ANY_NUMBER, DECIMAL, is_number_column, is_text, is_text_file

SHOWN = 3
"""Places that a message names."""

WHAT_TO_DO = {
    "missing": "Fill it in, or remove the row.",
    "blank": "Remove them: 'a' and ' a' would be two nodes.",
    "large": "Write it as text.",
    "weight": f"Weights must be positive and lie between {FLOAT32.tiny:.0e} and {FLOAT32.max:.0e}: remove it, or rescale all.",
    "unknown": "Add it to the node table, or remove the edge.",
}


class Faults:
    """Counts of each kind of fault, and where the first ones are."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, wrong: Any, what: str, place: Any, values: Any) -> None:
        """Rows of an Arrow mask; `what` may show the value, `place` names a row."""
        count = pc.sum(wrong).as_py() or 0
        if not count:
            return
        entry = self.found.setdefault(kind, {"count": 0, "places": []})
        rows = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))[: SHOWN - len(entry["places"])]
        entry["places"] += [f"{place(int(row))}: {what.format(values[int(row)].as_py())}" for row in rows]
        entry["count"] += count


def refuse(faults: Sequence[Mapping[str, Any]]) -> None:
    """Raise for the first kind of fault that any file has."""
    for kind, remedy in WHAT_TO_DO.items():
        entries = [found[kind] for found in faults if kind in found]
        if count := sum(entry["count"] for entry in entries):
            places = [place for entry in entries for place in entry["places"]][:SHOWN]
            more = f" ({count:,} rows are so, among them: {'; '.join(places[1:])}.)" if count > 1 else ""
            raise GraphError(f"{places[0]}. {remedy}{more}")


class ColumnFacts:
    """What decides how an id column is read: its kind, and for text whether all of it is numbers."""

    def __init__(self, path: Path, column: str, kind: Any) -> None:
        self.column, self.from_text = column, is_text_file(path)
        self.text = bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
        if not (self.text or pa.types.is_integer(kind)):
            raise GraphError(
                f"{path}, column {column!r} holds {kind}; expected integers or text. Floats, booleans and dates cannot name "
                "nodes without loss: cast the column first."
            )
        self.rows, self.whole, self.numeric, self.decimal = 0, True, True, ""
        self.least, self.most = 2**63 - 1, -(2**63)

    def look(self, values: Any, place: Any, faults: Faults) -> Any:
        """Check some rows; gives them as int64 or text."""
        self.rows += len(values)
        faults.add("missing", pc.is_null(values), "the id is missing", place, values)
        values = pc.fill_null(values, pa.scalar("?" if self.text else 0, values.type))
        if not self.text:
            return self._integers(values, place, faults)
        blank = pc.or_(pc.equal(values, ""), pc.not_equal(values, pc.utf8_trim_whitespace(values)))
        faults.add("blank", blank, "the id is {!r}, which is empty or has spaces around it", place, values)
        if self.from_text:
            self._look_for_numbers(values, place)
        return values.cast(pa.string())

    def _integers(self, values: Any, place: Any, faults: Faults) -> Any:
        if pa.types.is_uint64(values.type):
            large = pc.greater(values, pa.scalar(2**63 - 1, pa.uint64()))
            faults.add("large", large, "{} does not fit into 63 bits", place, values)
            values = pc.if_else(large, pa.scalar(0, pa.uint64()), values)
        numbers = values.cast(pa.int64())
        self._widen(numbers)
        return numbers

    def _look_for_numbers(self, values: Any, place: Any) -> None:
        self.numeric = self.numeric and bool(pc.all(pc.match_substring_regex(values, ANY_NUMBER), min_count=0).as_py())
        if self.numeric and not self.decimal:
            row = pc.index(pc.match_substring_regex(values, DECIMAL), True).as_py()
            self.decimal = f"{place(row)}: {values[row].as_py()!r}" if row >= 0 else ""
        if self.whole and pc.all(pc.match_substring_regex(values, WHOLE_NUMBER), min_count=0).as_py():
            try:
                self._widen(values.cast(pa.int64()))
            except pa.ArrowInvalid:  # 19 digits, and too large
                self.whole = False
        else:
            self.whole = False

    def _widen(self, numbers: Any) -> None:
        if len(numbers):
            ends = pc.min_max(numbers).as_py()
            self.least, self.most = min(self.least, ends["min"]), max(self.most, ends["max"])


def refuse_decimals(columns: Sequence[Mapping[str, Any]]) -> None:
    """In text files, 1 and 1.0 would be two: columns of numbers that are not all whole are refused."""
    text = [column for column in columns if column["from_text"] and column["rows"]]
    wrong = [column["decimal"] for column in text if column["decimal"]]
    if wrong and all(column["numeric"] for column in text):
        raise GraphError(f"{wrong[0]} is not a whole number, while all values are numbers. "
                         "Write whole numbers without a decimal point, or text.")  # fmt: skip


def are_integers(columns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether ids of all files are compared as integers or as text; text files hold text until it is all numbers."""
    columns = [column for column in columns if column["rows"]]
    if all(not column["text"] or (column["from_text"] and column["whole"]) for column in columns):
        return True
    if len({column["text"] for column in columns}) > 1:
        described = ", ".join(dict.fromkeys(f"{c['described']} {'text' if c['text'] else 'integers'}" for c in columns))
        raise GraphError(f"ids must be of one kind, but {described}. Cast one of the columns.")
    return False


def read_weights(values: Any, path: Path, column: str, place: Any, faults: Faults) -> Any:
    """Weights in float32; what cannot be one is counted, and is 1 in the meantime."""
    if is_text(values) and is_text_file(path):
        text = pc.utf8_trim_whitespace(values)
        numeric = pc.or_(
            pc.match_substring_regex(text, ANY_NUMBER), pc.match_substring_regex(text, r"^[+-]?(?i:nan|inf|infinity)$")
        )
        missing = pc.equal(text, "")
        faults.add("missing", missing, "the weight is missing", place, values)
        wrong = pc.and_(pc.invert(numeric), pc.invert(missing))
        faults.add("weight", wrong, "{!r} is not a number", place, values)
        values = pc.if_else(numeric, text, "1").cast(pa.float64())
    if not (is_number_column(values) or pa.types.is_null(values.type)):
        raise GraphError(f"{path}, column {column!r} holds {values.type}; expected numbers.")
    missing = pc.is_null(values)
    faults.add("missing", missing, "the weight is missing", place, values)
    wide = np.asarray(pc.fill_null(values.cast(pa.float64()), 1.0))
    usable = (wide == 0) | ((wide >= FLOAT32.tiny) & (wide <= FLOAT32.max))  # NaN compares false
    faults.add("weight", pa.array(~usable), "weight is {}", place, values)
    return pa.array(np.where(usable, wide, 1.0).astype(np.float32))
