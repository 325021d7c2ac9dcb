"""What a job does, and the job itself: a task that was planned, in its folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from gatas.graph.storage import NamedArrays, Store
from gatas.scale.parts import Part, read_part


@dataclass(frozen=True)
class Outline:
    """What a task has to say before it is cut into parts."""

    seconds: Any  # (N,) estimated, of one thread
    num_bytes: float
    multiple: int  # of so many nodes parts are
    arrays: NamedArrays
    parameters: dict[str, Any]


class JobTask(Protocol):
    """What is done: a frozen dataclass of plain settings, which travels to workers and into the plan."""

    @property
    def name(self) -> str: ...

    @property
    def data(self) -> Path:
        """Return the store of the graph that all parts are computed from."""

    def identity(self) -> dict[str, Any]:
        """Return all that parts depend on, without paths."""

    def outline(self, scratch: Path) -> Outline:
        """Estimate the work, once, in a worker; what is large lies in files of the scratch folder."""

    def arrays(self, job: "Job", part: Part, threads: int) -> NamedArrays:
        """Compute a part in a worker, as a function of the job and the range."""

    def assemble(self, job: "Job", out: Path, overwrite: bool) -> dict[str, Any]:
        """Write the whole, a piece at a time, from parts in their order; says what was written."""


@dataclass(frozen=True)
class Job:
    """A task that was planned, in its folder."""

    folder: Path
    task: JobTask
    key: str
    plan: Store

    @property
    def parts(self) -> list[Part]:
        return [Part(first, last) for first, last in pairwise(self.plan.array("cuts").tolist())]

    @property
    def stores(self) -> Iterator[Store]:
        """Give the stores of all parts, one after another: a process may not open all files at once."""
        return (self.read(part) for part in self.parts)

    def read(self, part: Part, *, verify: bool = False) -> Store:
        return read_part(self.folder / "parts", self.key, part, verify=verify)

    def has(self, part: Part) -> bool:
        return (self.folder / "parts" / part.name).exists()
