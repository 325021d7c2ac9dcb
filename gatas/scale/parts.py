"""Parts of a job: ranges of nodes of about equal work, each a folder that is there whole or not at all."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GatasError, StoreError
from gatas.files import is_disk_full
from gatas.graph.inputs import Ints
from gatas.graph.storage import NamedArrays, Store, open_store, write_store


@dataclass(frozen=True)
class Part:
    """The nodes from `first` on, before `last`."""

    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.first:010d}-{self.last:010d}"


@dataclass(frozen=True)
class PartOutcome:
    """What became of a call, in words and numbers: it has to travel."""

    num_bytes: int = 0
    error: str = ""
    traceback: str = ""
    foreseen: bool = False  # an error of ours, which says what to do
    full: bool = False  # the disk


def equal_work(work: NDArray[Any], num_parts: int, multiple: int) -> Ints:
    """Return the cuts between `num_parts` ranges of about equal work, or fewer, at multiples of a number of nodes."""
    blocks = np.add.reduceat(np.asarray(work, np.float64), np.arange(0, len(work), multiple))
    done = np.cumsum(blocks)
    wanted = np.linspace(0, done[-1], min(num_parts, len(blocks)) + 1)[1:-1]
    cuts = 1 + np.searchsorted(done, wanted)
    nearer = (cuts > 1) & (wanted - done[np.maximum(cuts - 2, 0)] < done[cuts - 1] - wanted)
    inner = np.minimum((cuts - nearer) * multiple, len(work))  # the last block may be a part of one
    edges: Ints = np.unique(np.concatenate([[0], inner, [len(work)]]))
    return edges


def write_part(folder: Path, key: str, part: Part, arrays: NamedArrays) -> int:
    """Write a part, unless it is there: the first writer wins. Gives its bytes."""
    try:
        write_store(folder / part.name, "part", arrays, {"key": key, "first": part.first, "last": part.last})
    except StoreError:
        if not (folder / part.name).exists():
            raise
    return sum(array.nbytes for array in arrays.values())


def read_part(folder: Path, key: str, part: Part, *, verify: bool = False) -> Store:
    """Map a part that is there; one of another job is refused."""
    store = open_store(folder / part.name, "part", verify=verify)
    if [store.parameter(name) for name in ("key", "first", "last")] != [key, part.first, part.last]:
        raise StoreError(f"{folder / part.name} is a part of another job. Remove it.")
    return store


def attempt(function: Callable[..., int], *arguments: Any) -> PartOutcome:
    """Call a function in a worker; whatever is raised comes back as words, with its traceback."""
    try:
        return PartOutcome(num_bytes=function(*arguments))
    except Exception as error:  # all that calls may raise: the job counts and records it
        words = str(error) if isinstance(error, GatasError) else f"{type(error).__name__}: {error}"
        return PartOutcome(0, words, traceback.format_exc(), isinstance(error, GatasError), is_disk_full(error))
