"""A task that can go wrong in every way, and engines to run it on."""

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from gatas.graph import Graph
from gatas.scale import Job, open_engine, run_job
from gatas.scale.parts import Part
from gatas.scale.task import Outline

ENGINES = ("serial", "pool", "ray")


@dataclass(frozen=True)
class Squares:
    """The squares of 0 … n - 1. What has the node `bad` in it goes wrong, as often as `times` says."""

    num_nodes: int
    scratch: str  # where each attempt at a part leaves a mark
    trouble: str = ""
    bad: int = -1
    times: int = 1000
    seconds: float = 0.0

    name = "squares"

    @property
    def data(self) -> Path:
        return Path(self.scratch).with_name("graph")

    def identity(self) -> dict[str, Any]:
        return {"task": self.name, "num_nodes": self.num_nodes}

    def outline(self, scratch: Path) -> Outline:
        return Outline(np.ones(self.num_nodes), 8.0 * self.num_nodes, 1, {}, {})

    def arrays(self, job: Job, part: Part, threads: int) -> dict[str, Any]:
        tried = len(list(Path(self.scratch).glob(f"{part.name}*")))
        Path(self.scratch, f"{part.name}.{time.monotonic_ns()}").write_text(str(os.getpid()))
        time.sleep(self.seconds)
        if part.first <= self.bad < part.last and tried < self.times:
            self.go_wrong()
        return {"squares": np.arange(part.first, part.last) ** 2}

    def go_wrong(self) -> None:
        if self.trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        raise ValueError(f"node {self.bad} is poisoned")

    def assemble(self, job: Job, out: Path, overwrite: bool) -> dict[str, Any]:
        squares = np.concatenate([store.array("squares") for store in job.stores])
        temporary = out.with_name(uuid4().hex)
        temporary.write_bytes(squares.astype("<i8").tobytes())
        temporary.replace(out)
        return {"squares": len(squares)}

    def marks(self) -> list[str]:
        return sorted(path.name.split(".")[0] for path in Path(self.scratch).iterdir())


def squares(folder: Path, num_nodes: int = 30, **trouble: Any) -> Squares:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    if not folder.joinpath("graph").exists():
        Graph.from_edges([0], [1]).save(folder / "graph")
    return Squares(num_nodes, str(scratch), **trouble)


def expected(task: Squares) -> bytes:
    return (np.arange(task.num_nodes) ** 2).astype("<i8").tobytes()


def run(engine: str, task: Squares, folder: Path, **settings: Any) -> dict[str, Any]:
    """With two workers, where there may be more than one."""
    with open_engine(engine, None if engine == "serial" else 2) as opened:  # type: ignore[arg-type]
        return run_job(task, folder / "job", folder / "out", opened, **{"num_parts": 6, **settings})
