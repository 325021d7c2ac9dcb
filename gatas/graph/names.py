"""The ids that users know nodes by, integers or strings, and their way back."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.inputs import Ints, frozen

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,18})$"
"""Text that reads the same after a trip through int64 (if it fits): not "007", not "+1"."""

MOST_COMPARED = 100_000
"""Ids among which the nearest to one that is not known are looked for."""

FEW = 8  # names that are looked up one by one: cheaper than a hash table of all ids


@dataclass(frozen=True, eq=False)
class Names:
    """Distinct ids, one per node. `bytes` is None for integers; text is held as Arrow holds it, so it can be mapped.

    `of` looks that they are distinct; those of a store were looked at when it was written, and may not fit in memory.
    """

    values: Ints  # the ids themselves, or (N + 1,) offsets into `bytes`
    bytes: NDArray[np.uint8] | None = None
    _column: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_column", self._as_arrow())

    @classmethod
    def of(cls, names: Iterable[int] | Iterable[str] | pa.Array | NDArray[Any]) -> "Names":
        """From integers or from strings, not both."""
        try:
            column = names if isinstance(names, pa.Array) else pa.array(_listed(names))
            column = column.cast(pa.int64()) if pa.types.is_integer(column.type) else column
        except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as error:
            raise GraphError(f"ids must all be integers below 2^63 or all be text ({error}).") from error
        if column.null_count:
            raise GraphError(f"the id of node {column.is_null().index(True).as_py()} is missing. Every node needs an id.")
        if pa.types.is_integer(column.type):
            _refuse_repeated(column)
            return cls(frozen(column.to_numpy(zero_copy_only=False)))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            _refuse_repeated(column)
            text = pa.concat_arrays([column.cast(pa.large_string())])  # a copy whose offsets start at 0
            _, offsets, data = text.buffers()
            starts = np.frombuffer(offsets, np.int64, count=len(text) + 1) if offsets else np.zeros(1, np.int64)
            content = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
            return cls(frozen(starts), frozen(content[: starts[-1]]))
        if len(column) == 0:
            return cls(np.empty(0, np.int64))
        raise GraphError(f"ids are of type {column.type} (first value {column[0].as_py()!r}); expected integers or text.")

    def _as_arrow(self) -> Any:
        if self.values.dtype != np.int64 or self.values.ndim != 1:
            raise GraphError(f"ids have type {self.values.dtype} and shape {self.values.shape}; expected a vector of int64.")
        if self.bytes is None:
            return pa.array(self.values)
        if self.values.size == 0 or self.bytes.dtype != np.uint8 or self.bytes.ndim != 1:
            raise GraphError("the stored ids are damaged: expected offsets from 0 on, and bytes.")
        buffers = [None, pa.py_buffer(np.ascontiguousarray(self.values)), pa.py_buffer(np.ascontiguousarray(self.bytes))]
        try:
            column = pa.Array.from_buffers(pa.large_string(), len(self.values) - 1, buffers)
            column.validate(full=True)  # the bytes may come from a file
        except pa.ArrowInvalid as error:
            raise GraphError(f"the stored ids are damaged ({error}).") from error
        return column

    @property
    def whole(self) -> bool:
        """Whether ids are integers."""
        return self.bytes is None

    @cached_property
    def places(self) -> dict[int | str, int]:
        """The node of every id, for those who look up again and again; made when first asked for."""
        return {name: node for node, name in enumerate(self.tolist())}

    def place(self, name: int | str) -> int:
        """The node that carries an id, or -1."""
        wanted = as_number(name) if self.whole else as_text(name)
        return -1 if wanted is None else self.places.get(wanted, -1)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, node: int) -> int | str:
        return self.take([node])[0]

    def take(self, nodes: Any) -> list[int | str]:
        """The ids of several nodes."""
        try:
            names: list[int | str] = self._column.take(pa.array(np.asarray(nodes, np.int64))).to_pylist()
        except pa.ArrowIndexError as error:
            raise GraphError(f"nodes are numbered 0 to {len(self) - 1} ({error}).") from error
        return names

    def tolist(self) -> list[int | str]:
        """Every id, in node order."""
        return list(self._column.to_pylist())

    def find(self, names: Sequence[int | str]) -> Ints:
        """The nodes that carry these ids; integers may be written as text, and text that is a number as an integer."""
        wanted = pa.array([as_number(name) if self.whole else as_text(name) for name in names], self._column.type)
        if len(wanted) <= FEW:
            found = np.array([pc.index(self._column, name).as_py() if name.is_valid else -1 for name in wanted], np.int64)
        else:
            found = pc.fill_null(pc.index_in(wanted, value_set=self._column), -1).to_numpy().astype(np.int64)
        if (found < 0).any():
            refuse_unknown(names[int(np.argmax(found < 0))], self._column[:MOST_COMPARED].to_pylist())
        return found


def refuse_unknown(name: object, known: Sequence[int | str]) -> NoReturn:
    """Say so, with the nearest ids."""
    near = get_close_matches(str(name), [str(other) for other in known[:MOST_COMPARED]], n=3)
    hint = f" Nearest known: {', '.join(near)}." if near else ""
    raise GraphError(f"no node has the id {name!r}.{hint}")


def _refuse_repeated(column: Any) -> None:
    if pc.count_distinct(column).as_py() != len(column):
        counts = pc.value_counts(column)
        name = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()].as_py()
        raise GraphError(f"the id {name!r} names more than one node. Ids must be distinct.")


def as_number(name: object) -> int | None:
    """An int64, also where it is written as text; None for anything else: 1.0, True and "007" are no integer ids."""
    if isinstance(name, str):
        name = int(name) if re.fullmatch(WHOLE_NUMBER, name) else None
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        return None
    return int(name) if -(2**63) <= int(name) < 2**63 else None


def as_text(name: object) -> str | None:
    """Text, also of an integer; None for anything else."""
    if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
        return None
    text = str(name)
    return text if text.encode("utf-8", "ignore").decode() == text else None  # half a surrogate pair names nothing


def _listed(names: Any) -> Any:
    return names if isinstance(names, np.ndarray) else list(names)
