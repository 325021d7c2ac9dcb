"""What do 1,000 targets cost as the graph grows: ours, full-graph GAT, GraphSAGE on samples? Where do the lines cross?

    python -m benchmarks.peers [--device cuda] [--edges 1e4,1e5,1e6] [--limit 120] [--memory GIB] [--to FILE.json]

Graphs with hubs from 10⁴ to 10⁷ edges. Every cell (a model on a graph) runs in another process, on a CPU in one of its own, and
is written to the JSON file at once; the same command goes on where it was. What takes too long or too much memory is a row that
says so.
"""

import argparse
import json
import multiprocessing
import sys
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

import torch

from benchmarks.peers_cell import FEWEST_EDGES, SETTINGS, Cell, answer
from benchmarks.peers_report import MODELS, PACKAGES, write_report
from benchmarks.report import FOLDER, accelerator, how_made, processor
from gatas.errors import GatasError
from gatas.experiments.measuring import NUM_TARGETS
from gatas.transitions.cost import available_memory

EDGES = [10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000]


class Worker(AbstractContextManager["Worker"]):
    """Measures cells in another process: a new one for each on a CPU, for the sake of memory, and one for all on a GPU.

    There torch itself counts bytes, a process takes long to begin, and a fork of one that knows CUDA cannot use it.
    """

    def __init__(self, device: str, memory: float) -> None:
        self.device, self.memory, self.lasts = device, memory, device == "cuda"
        self.process: BaseProcess | None = None

    def measure(self, name: str, num_edges: int, limit: float) -> Cell:
        """Ends the process when its time is over."""
        process = self.process or self._begin()
        try:
            self.connection.send((name, num_edges))
            found = self.connection.recv() if self.connection.poll(limit) else {"failed": f"more than {limit:g} s"}
        except (EOFError, OSError):
            process.join()
            found = {"failed": f"killed by signal {-(process.exitcode or 0)}, for want of memory as a rule"}
        if not self.lasts or "failed" in found:
            self._end()
        return found

    def _begin(self) -> BaseProcess:
        context: Any = multiprocessing.get_context("spawn" if self.lasts else "forkserver")
        if not self.lasts:
            context.set_forkserver_preload(["benchmarks.peers_cell"])
        self.connection, far_end = context.Pipe()
        process: BaseProcess = context.Process(target=answer, args=(far_end, self.device, self.memory))
        process.start()
        self.process = process
        far_end.close()
        return process

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()


def run_cells(path: Path, content: dict[str, Any], edges: list[int], limit: float, worker: Worker) -> None:
    """Those that are not there yet; a model that failed is not tried on larger graphs."""
    cells = content["cells"]
    for num_edges in sorted(edges):
        for name in MODELS:
            if any((cell["model"], cell["asked"]) == (name, num_edges) for cell in cells):
                continue
            worse = [cell for cell in cells if cell["model"] == name and "failed" in cell and cell["asked"] < num_edges]
            started = perf_counter()
            if worse:
                found = {"failed": f"not tried: {worse[0]['failed']} at {worse[0]['asked']:,} edges"}
            else:
                found = worker.measure(name, num_edges, limit)
            cells.append({"model": name, "asked": num_edges, "date": f"{datetime.now(UTC):%Y-%m-%d}", **found})
            write_json(path, content)
            said = found.get("failed") or f"{found['train_seconds']:.3g} s trained, {found['embed_seconds']:.3g} s embedded"
            print(f"{num_edges:>10,} {MODELS[name]}: {said} ({perf_counter() - started:.0f} s)", file=sys.stderr, flush=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """All of it or nothing."""
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


def opened(path: Path, device: str) -> dict[str, Any]:
    """What was measured before, if that was on the same machine and with the same settings."""
    head = {
        "device": device,
        "hardware": f"{processor()}, {torch.get_num_threads()} threads{accelerator()}",
        "settings": SETTINGS,
    }
    if not path.exists():
        return {"made": how_made(PACKAGES), **head, "cells": []}
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        before = {key: content[key] for key in (*head, "cells")} | {"made": content.get("made")}
    except (ValueError, KeyError, TypeError) as error:
        raise GatasError(f"{path} is not a file of this benchmark ({error!r}). Name another with --to.") from None
    other = [key for key in head if before[key] != head[key]]
    if other:
        raise GatasError(f"{path} was measured with another {' and '.join(other)}. Name another file with --to, or remove it.")
    return before


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    name = "peers-gpu" if given.device == "cuda" else "peers"
    path = given.to or FOLDER / f"{datetime.now(UTC):%Y-%m-%d}-{name}.json"
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("--device cuda: torch sees no GPU here. Leave it out to measure on the CPU.")
    try:
        content = opened(path, given.device)
    except GatasError as error:
        sys.exit(str(error))
    memory = 2**30 * given.memory if given.memory else 0.9 * available_memory()
    with Worker(given.device, memory) as worker:
        run_cells(path, content, given.edges, given.limit, worker)
    write_report(path, content)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--edges", type=sizes, default=EDGES, help="of the graphs, such as 1e4,1e5")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a cell may take, all in all")
    parser.add_argument("--memory", type=float, help="GiB that a cell on the CPU may take; else nearly all that is free")
    parser.add_argument("--to", type=Path, help="a JSON file to write to and go on from; the report is written beside it")
    return parser.parse_args(arguments)


def sizes(text: str) -> list[int]:
    try:
        found = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, such as 1e4,1e5") from None
    if min(found) < FEWEST_EDGES:
        raise argparse.ArgumentTypeError(
            f"{min(found):,} edges have too few nodes for {NUM_TARGETS:,} targets: {FEWEST_EDGES:,} do"
        )
    return found


if __name__ == "__main__":
    main()
