"""What a command takes, seen from outside: seconds, memory of its processes, bytes on disk."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

INTERVAL = 0.25
"""Seconds between looks at the processes."""
LOOKS_AT_DISK = 8
"""One in so many."""
Row = dict[str, Any]


def watch(command: Sequence[str], folder: Path, log: Path, limit: float, disk: float) -> Row:
    """Run a command that writes below `folder`; it is ended after `limit` seconds, or `disk` bytes.

    Memory is RssAnon of /proc/PID/status, the most that a look found: what a process holds, without pages of mapped files,
    which the system takes back when it needs them. `resident` is VmHWM, with them, as the kernel itself keeps it. Processor
    seconds are those of every process when it was last looked at.
    """
    seen: dict[int, Row] = {}
    row: Row = {"together": 0, "disk": 0, "load": psutil.getloadavg()[0]}
    started = time.perf_counter()
    with log.open("w") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT)
        driver, looks = psutil.Process(process.pid), 0
        while process.poll() is None:
            row["together"] = max(row["together"], look(driver, seen))
            if looks % LOOKS_AT_DISK == 0:
                row["disk"] = max(row["disk"], size_of(folder))
            over = time.perf_counter() - started > limit, row["disk"] > disk
            if any(over):
                row["cut"] = f"after {limit:g} s" if over[0] else f"at {disk / 1e9:g} GB on disk"
                end(driver)
            looks += 1
            time.sleep(INTERVAL)
    row |= {"seconds": time.perf_counter() - started, "cpu_seconds": sum(one["cpu"] for one in seen.values())}
    row |= {"load": (row["load"] + psutil.getloadavg()[0]) / 2, "disk": max(row["disk"], size_of(folder))}
    for role in ("driver", "worker", "other"):
        ours = [one for pid, one in seen.items() if one["role"] == role]
        row[role] = {"processes": len(ours), **{of: max((one[of] for one in ours), default=0) for of in ("held", "resident")}}
    if process.returncode and "cut" not in row:
        row["failed"] = log.read_text().strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
    return row


def look(driver: psutil.Process, seen: dict[int, Row]) -> int:
    """Bytes that all processes hold now, each counted for itself too."""
    together = 0
    try:
        processes = [driver, *driver.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        try:
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
            cpu, words = process.cpu_times(), " ".join(process.cmdline())
        except (psutil.Error, OSError):
            continue  # it ended
        if "RssAnon" not in fields:
            continue  # it ended, and is not waited for yet
        held, resident = (int(fields[name].split()[0]) << 10 for name in ("RssAnon", "VmHWM"))
        one = seen.setdefault(process.pid, {"held": 0, "resident": 0, "role": "other"})
        one["role"] = "driver" if process == driver else role_of(words) or one["role"]
        one |= {"held": max(one["held"], held), "resident": max(one["resident"], resident), "cpu": cpu.user + cpu.system}
        together += held
    return together


def role_of(words: str) -> str | None:
    """A worker, by its command; others, such as Ray's servers, are none."""
    return "worker" if words.startswith("ray::_call") or "multiprocessing.spawn" in words else None


def end(driver: psutil.Process) -> None:
    """Workers end with it; what does not is killed."""
    processes = [driver, *driver.children(recursive=True)]
    driver.terminate()
    _, alive = psutil.wait_procs(processes, timeout=60)
    for process in alive:
        process.kill()


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; those without a name, which only a process knows, are not seen."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).stat().st_size
            except OSError:
                continue  # removed meanwhile
    return total
