"""`NodeIds`: the ids that users know nodes by, integers or strings, and the index of each."""

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

FEW = 8
"""Ids that are looked up one by one: cheaper than a hash table of all of them."""


@dataclass(frozen=True, eq=False)
class NodeIds:
    """Distinct ids, one per node. `bytes` is None for integers; text is held as Arrow holds it, so it can be mapped.

    `of` checks that ids are distinct. Ids of a store were checked when it was written, and may not fit in memory.
    """

    values: Ints  # the ids themselves, or (N + 1,) offsets into `bytes`
    bytes: NDArray[np.uint8] | None = None
    _column: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_column", self._as_arrow())

    @classmethod
    def of(cls, ids: Iterable[int] | Iterable[str] | pa.Array | NDArray[Any]) -> "NodeIds":
        """Make ids from integers or from strings, not both."""
        try:
            column = ids if isinstance(ids, pa.Array) else pa.array(ids if isinstance(ids, np.ndarray) else list(ids))
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
    def are_integers(self) -> bool:
        return self.bytes is None

    @cached_property
    def _index(self) -> dict[int | str, int]:
        """Make a hash table of all ids, for callers that look up again and again."""
        return {node_id: index for index, node_id in enumerate(self.tolist())}

    def get(self, node_id: int | str) -> int:
        """Return the index of the node with this id, or -1."""
        wanted = as_integer(node_id) if self.are_integers else as_text(node_id)
        return -1 if wanted is None else self._index.get(wanted, -1)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: int) -> int | str:
        return self.take([index])[0]

    def take(self, indices: Any) -> list[int | str]:
        """Return the ids of nodes given by index."""
        try:
            found: list[int | str] = self._column.take(pa.array(np.asarray(indices, np.int64))).to_pylist()
        except pa.ArrowIndexError as error:
            raise GraphError(f"nodes have indices 0 to {len(self) - 1} ({error}).") from error
        return found

    def tolist(self) -> list[int | str]:
        """Return every id, in node order."""
        return list(self._column.to_pylist())

    def indices(self, ids: Sequence[int | str]) -> Ints:
        """Return the index of each id; integers may be written as text, and text that is a number as an integer."""
        wanted = pa.array([as_integer(one) if self.are_integers else as_text(one) for one in ids], self._column.type)
        if len(wanted) <= FEW:
            found = np.array([pc.index(self._column, one).as_py() if one.is_valid else -1 for one in wanted], np.int64)
        else:
            found = pc.fill_null(pc.index_in(wanted, value_set=self._column), -1).to_numpy().astype(np.int64)
        if (found < 0).any():
            refuse_unknown_id(ids[int(np.argmax(found < 0))], self._column[:MOST_COMPARED].to_pylist())
        return found


def refuse_unknown_id(node_id: object, known: Sequence[int | str]) -> NoReturn:
    """Raise an error that names the nearest known ids."""
    near = get_close_matches(str(node_id), [str(other) for other in known[:MOST_COMPARED]], n=3)
    hint = f" Nearest known: {', '.join(near)}." if near else ""
    raise GraphError(f"no node has the id {node_id!r}.{hint}")


def _refuse_repeated(column: Any) -> None:
    if pc.count_distinct(column).as_py() != len(column):
        counts = pc.value_counts(column)
        twice = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()].as_py()
        raise GraphError(f"duplicate id {twice!r}: ids must be distinct. Rename or remove one of the nodes.")


def as_integer(node_id: object) -> int | None:
    """Return an int64, also where it is written as text; None for anything else: 1.0, True and "007" are no integer ids."""
    if isinstance(node_id, str):
        node_id = int(node_id) if re.fullmatch(WHOLE_NUMBER, node_id) else None
    if isinstance(node_id, bool) or not isinstance(node_id, int | np.integer):
        return None
    return int(node_id) if -(2**63) <= int(node_id) < 2**63 else None


def as_text(node_id: object) -> str | None:
    """Return text, also of an integer; None for anything else."""
    if isinstance(node_id, bool) or not isinstance(node_id, str | int | np.integer):
        return None
    text = str(node_id)
    return text if text.encode("utf-8", "ignore").decode() == text else None  # half a surrogate pair names nothing


def index_among(node_id: object, num_nodes: int) -> int:
    """Return the index that an id is, where ids are the indices; anything else is refused."""
    index = as_integer(node_id)
    if index is None or not 0 <= index < num_nodes:
        raise GraphError(f"no node has the id {node_id!r}; ids are 0 to {num_nodes - 1}.")
    return index
