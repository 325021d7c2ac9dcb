"""The ids that users know nodes by, integers or strings, and their way back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.errors import GraphError
from gatas.graph.inputs import Ints, frozen


@dataclass(frozen=True, eq=False)
class Names:
    """Distinct ids, one per node. `bytes` is None for integers; text is held as Arrow holds it, so it can be mapped."""

    values: Ints  # the ids themselves, or (N + 1,) offsets into `bytes`
    bytes: NDArray[np.uint8] | None = None
    _column: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_column", self._as_arrow())
        if len(self._column) and self._column.null_count == 0:
            distinct = pc.count_distinct(self._column).as_py()
            if distinct != len(self._column):
                name = next(name for name, count in _counts(self._column) if count > 1)
                raise GraphError(f"the id {name!r} names more than one node. Ids must be distinct.")

    @classmethod
    def of(cls, names: Iterable[int] | Iterable[str] | pa.Array | NDArray[Any]) -> "Names":
        """From integers or from strings, not both."""
        try:
            column = names if isinstance(names, pa.Array) else pa.array(_listed(names))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise GraphError(f"ids must all be integers or all be strings ({error}).") from error
        if column.null_count:
            raise GraphError(f"id {column.is_null().index(True).as_py()} is missing. Every node needs an id.")
        if pa.types.is_integer(column.type):
            return cls(frozen(column.cast(pa.int64()).to_numpy(zero_copy_only=False)))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            text = pa.concat_arrays([column.cast(pa.large_string())])  # a copy whose offsets start at 0
            _, offsets, data = text.buffers()
            starts = np.frombuffer(offsets, np.int64, count=len(text) + 1) if offsets else np.zeros(1, np.int64)
            content = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
            return cls(frozen(starts), frozen(content[: starts[-1]]))
        if len(column) == 0:
            return cls(np.empty(0, np.int64))
        raise GraphError(f"ids are of type {column.type}; expected integers or strings.")

    def _as_arrow(self) -> Any:
        if self.bytes is None:
            return pa.array(self.values)
        buffers = [None, pa.py_buffer(np.ascontiguousarray(self.values)), pa.py_buffer(self.bytes)]
        column = pa.Array.from_buffers(pa.large_string(), len(self.values) - 1, buffers)
        try:
            column.validate(full=True)  # the bytes may come from a file
        except pa.ArrowInvalid as error:
            raise GraphError(f"the stored ids are damaged ({error}).") from error
        return column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, node: int) -> int | str:
        name: int | str = self._column[int(node)].as_py()
        return name

    def take(self, nodes: Any) -> list[int | str]:
        """The ids of several nodes."""
        names: list[int | str] = self._column.take(pa.array(np.asarray(nodes, np.int64))).to_pylist()
        return names

    def tolist(self) -> list[int | str]:
        """Every id, in node order."""
        return list(self._column.to_pylist())

    def find(self, names: Sequence[int | str]) -> Ints:
        """The nodes that carry these ids."""
        wanted = pa.array(names)
        if self.bytes is None and pa.types.is_string(wanted.type):
            wanted = pa.array([int(name) if name.lstrip("-").isdecimal() else None for name in names], pa.int64())
        elif self.bytes is not None and pa.types.is_integer(wanted.type):
            wanted = pa.array([str(name) for name in names])
        found = pc.index_in(wanted.cast(self._column.type), value_set=self._column)
        if found.null_count:
            missing = names[found.is_null().index(True).as_py()]
            near = get_close_matches(str(missing), [str(name) for name in self._column[:100_000].to_pylist()], n=3)
            hint = f" Nearest known: {', '.join(near)}." if near else ""
            raise GraphError(f"no node has the id {missing!r}.{hint}")
        return found.to_numpy(zero_copy_only=False).astype(np.int64)


def _listed(names: Any) -> Any:
    return names if isinstance(names, np.ndarray) else list(names)


def _counts(column: Any) -> list[tuple[Any, int]]:
    return [(row["values"].as_py(), row["counts"].as_py()) for row in pc.value_counts(column)]
