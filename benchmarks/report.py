"""A dated report beside the benchmarks: command, hardware, versions, tables."""

import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

FOLDER = Path(__file__).parent


class Report:
    """Lines of Markdown, shown as they are added and written at the end."""

    def __init__(self, name: str, question: str, packages: Sequence[str], made: Mapping[str, str] | None = None) -> None:
        """`made`: how it was measured, if that was not by this very command."""
        self.name, self.lines = name, [f"# {question}", ""]
        for what, value in (made or how_made(packages)).items():
            self.add(f"- {what}: {value}")

    def add(self, line: str = "") -> None:
        print(line, flush=True)
        self.lines.append(line)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.add()
        self.add("| " + " | ".join(header) + " |")
        self.add("|" + "---|" * len(header))
        for row in rows:
            self.add("| " + " | ".join(str(cell) for cell in row) + " |")
        self.add()

    def write(self, path: Path | None = None) -> None:
        """To a dated file of this folder, unless a path is given."""
        path = path or FOLDER / f"{datetime.now(UTC):%Y-%m-%d}-{self.name}.md"
        path.write_text("\n".join(self.lines).rstrip() + "\n")
        print(f"written: {path.relative_to(FOLDER.parent) if path.is_relative_to(FOLDER.parent) else path}")


def how_made(packages: Sequence[str]) -> dict[str, str]:
    """Date, command, hardware and versions of this process."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f"`python -m benchmarks.{' '.join([Path(sys.argv[0]).stem, *sys.argv[1:]])}`",
        "hardware": f"{processor()}, {len(os.sched_getaffinity(0))} cores, {memory_gib():.0f} GiB{accelerator()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]),
    }


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median over several runs, each result let go before the next."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        times.append(perf_counter() - start)
        del result
    return statistics.median(times)


def captured(work: Callable[[], Any]) -> Any:
    """A CUDA graph of `work`, after three calls to warm up."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def gpu_milliseconds(work: Callable[[], Any], repeats: int) -> float:
    """The median over replays of a captured call, ten at a time, by the device's own clock."""
    import torch

    graph, times = captured(work), list[float]()
    graph.replay()
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(10):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 10)
    return statistics.median(times)


def resident_memory() -> int:
    """Bytes this process holds."""
    return _status("VmRSS:")


def peak_memory() -> int:
    """The most bytes this process alone has held; getrusage also knows its parent's."""
    return _status("VmHWM:")


def data_memory() -> int:
    """Bytes that count against RLIMIT_DATA."""
    return _status("VmData:")


def _status(field: str) -> int:
    return 1024 * int(Path("/proc/self/status").read_text().split(field)[1].split()[0])


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def accelerator() -> str:
    """The GPU, where a benchmark has one."""
    import torch

    return f"; {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""


def memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
