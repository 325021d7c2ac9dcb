"""Arrays that are written from front to back, of a length that is known only at the end, and mapped afterwards."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatas.graph.inputs import frozen


class ArrayWriter:
    """Appends to a file of plain numbers."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self.name, self.dtype, self.length = name, np.dtype(dtype), 0
        self.file = (folder / f"{name}.bin").open("wb")

    def append(self, values: NDArray[Any]) -> None:
        """Append values, not by `tofile`, which says nothing of a disk that is full for its last bytes."""
        if values.size:
            self.file.write(np.ascontiguousarray(values, self.dtype).data.cast("B"))
            self.length += values.size

    def finish(self) -> list[Any]:
        """Close the file; return type and length, for `mapped`."""
        self.file.close()
        return [self.dtype.name, self.length]


def collected(
    pieces: Iterator[Mapping[str, NDArray[Any]]], dtypes: Mapping[str, Any], scratch: Path | None
) -> dict[str, NDArray[Any]]:
    """Collect arrays that come in pieces: in memory, or in files of a scratch folder that lose their names once mapped."""
    if scratch is None:
        parts: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, dtype)] for name, dtype in dtypes.items()}
        for piece in pieces:
            for name, values in piece.items():
                parts[name].append(values.astype(dtypes[name], copy=False))
        return {name: np.concatenate(pieces) for name, pieces in parts.items()}
    with TemporaryDirectory(prefix=".gatas-", dir=scratch) as folder:
        writers = {name: ArrayWriter(Path(folder), name, dtype) for name, dtype in dtypes.items()}
        for piece in pieces:
            for name, values in piece.items():
                writers[name].append(values)
        return {name: mapped(Path(folder), name, writer.finish(), mode="c") for name, writer in writers.items()}


def mapped(
    folder: Path, name: str, described: list[Any], width: int | None = None, mode: Literal["r", "c"] = "r"
) -> NDArray[Any]:
    """Map what was written, read-only or with changes that stay in memory; with a width, as a matrix."""
    dtype, length = described
    if not length:
        empty: NDArray[Any] = np.empty(0, dtype)
        return frozen(empty if width is None else empty.reshape(-1, width))
    values = np.memmap(folder / f"{name}.bin", dtype, mode=mode, shape=(length,))
    return np.asarray(values if width is None else values.reshape(-1, width))
