"""Arrays that are written from front to back, of a length that is known only at the end, and mapped afterwards."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.graph.inputs import frozen


class ArrayWriter:
    """Appends to a file of plain numbers."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self.name, self.dtype, self.length = name, np.dtype(dtype), 0
        self.file = (folder / f"{name}.bin").open("wb")

    def append(self, values: NDArray[Any]) -> None:
        np.ascontiguousarray(values, self.dtype).tofile(self.file)
        self.length += values.size

    def finish(self) -> list[Any]:
        """Type and length, for `mapped`."""
        self.file.close()
        return [self.dtype.name, self.length]


def mapped(folder: Path, name: str, described: list[Any], width: int | None = None) -> NDArray[Any]:
    """A read-only map of what was written; with a width, a matrix."""
    dtype, length = described
    if not length:
        empty: NDArray[Any] = np.empty(0, dtype)
        return frozen(empty if width is None else empty.reshape(-1, width))
    values = np.memmap(folder / f"{name}.bin", dtype, mode="r", shape=(length,))
    return np.asarray(values if width is None else values.reshape(-1, width))
