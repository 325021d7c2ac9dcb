"""The steps of a showcase: commands that are printed, run and measured, one after another."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gatas.experiments.recording import commit, versions

GATAS = (sys.executable, "-m", "gatas")


def made_by() -> dict[str, Any]:
    """Return the day, the commit of the code, and the versions of Python and of what computes."""
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "versions": versions(), "cores": os.cpu_count()}


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
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout:
            printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        print(printed, end="", flush=True)
        if process.returncode:
            raise SystemExit(f"error: {name} failed with exit code {process.returncode}; the same command goes on from here.")
        taken = {"seconds": round(time.perf_counter() - start, 1), "peak_bytes": used.ru_maxrss * 1024, "commit": commit()}
        self.done[name] = {"command": shown, **taken, "printed": printed}
        self.path.write_text(json.dumps(self.done, indent=1), encoding="utf-8")
        return printed

    def costs(self) -> dict[str, Any]:
        """Return what each step took, and the commit that it ran at: a step that is not run again keeps its own."""
        kept = ("seconds", "peak_bytes", "commit")
        return {name: {key: step[key] for key in kept if key in step} for name, step in self.done.items()}
