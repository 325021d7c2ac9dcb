"""The steps of a showcase: commands that are printed, run and measured, one after another."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from tempfile import TemporaryFile
from typing import Any

from gatas.experiments.recording import commit, hardware, versions
from gatas.training.loop import chosen_device

GATAS = (sys.executable, "-m", "gatas")
GPU_MEMORY = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits", "--loop-ms=500")


def made_by() -> dict[str, Any]:
    """Return the command, the day, the commit of the code, the machine, and the versions of Python and of what computes."""
    return {
        "command": shlex.join(["python", *sys.argv]),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "hardware": hardware(chosen_device("auto")),
        "versions": versions(),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what all showcases ask for."""
    parser.add_argument("folder", type=Path, help="where tables, runs and pictures are written")
    parser.add_argument("--results", type=Path, help="JSON to write what was measured to; by default FOLDER/results.json")
    parser.add_argument("--built", action="store_true", help="take the tables in FOLDER, which build.py wrote, maybe elsewhere")


@contextmanager
def gpu_memory() -> Iterator[dict[int, int]]:
    """Measure the most memory on a GPU that each process has, in bytes by its id, twice a second: it is there afterwards."""
    most: dict[int, int] = {}
    if which(GPU_MEMORY[0]) is None:
        yield most
        return
    with TemporaryFile("w+") as seen:
        watching = subprocess.Popen(GPU_MEMORY, stdout=seen, stderr=subprocess.DEVNULL)
        try:
            yield most
        finally:
            watching.terminate()
            watching.wait()
            seen.seek(0)
            for pid, megabytes in (line.split(", ") for line in seen.read().splitlines() if line.count(", ") == 1):
                if megabytes.isdigit():  # it may be unknown
                    most[int(pid)] = max(most.get(int(pid), 0), int(megabytes) << 20)


class Steps:
    """Runs commands one after another, and keeps what each took."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "steps.json"
        self.done: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def run(self, name: str, *command: str | Path) -> str:
        """Run a command; return what it printed, now or before."""
        shown = shlex.join(("gatas" if one == "gatas" else str(one)) for one in command)
        if name in self.done and self.done[name]["command"] == shown:
            return str(self.done[name]["printed"])
        print(f"\n$ {shown}", flush=True)
        words = [*GATAS, *map(str, command[1:])] if command[0] == "gatas" else list(map(str, command))
        with gpu_memory() as on_gpu:
            start = time.perf_counter()
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            with process.stdout:
                printed = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            seconds = round(time.perf_counter() - start, 1)
        process.returncode = os.waitstatus_to_exitcode(status)
        print(printed, end="", flush=True)
        if process.returncode:
            raise SystemExit(f"error: {name} failed with exit code {process.returncode}; the same command goes on from here.")
        taken: dict[str, Any] = {"seconds": seconds, "peak_bytes": used.ru_maxrss * 1024, "commit": commit()}
        if process.pid in on_gpu:
            taken["peak_gpu_bytes"] = on_gpu[process.pid]
        self.done[name] = {"command": shown, **taken, "printed": printed}
        self.path.write_text(json.dumps(self.done, indent=1), encoding="utf-8")
        return printed

    def costs(self) -> dict[str, Any]:
        """Return what each step took, and the commit that it ran at: a step that is not run again keeps its own."""
        kept = ("seconds", "peak_bytes", "peak_gpu_bytes", "commit")
        return {name: {key: step[key] for key in kept if key in step} for name, step in self.done.items()}
