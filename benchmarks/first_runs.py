"""What do the trainings give that the README begins with?

    python -m benchmarks.first_runs

Each is the command in the table, seed 0, in a process of its own, on the CPU and into a folder that is then removed. Processor
seconds are of all threads, from start to end, imports among them: they say on a machine that others use too what it takes.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from benchmarks.startup import cpu_seconds

EXAMPLES = Path(__file__).parents[1] / "examples" / "bibliography"
RUNS = {
    "digits": "accuracy",
    "kinship": "roc_auc",
    "examples/bibliography/topics.yaml": "accuracy",
    "examples/bibliography/citations.yaml": "roc_auc",
}
"""What is trained, and what it is measured by."""


def trained(name: str, folder: Path) -> tuple[dict[str, Any], float]:
    """The metrics of a training by the command line, and the processor seconds of its process."""
    before, given = cpu_seconds(), str(EXAMPLES / Path(name).name) if name.endswith(".yaml") else name
    command = [
        sys.executable,
        "-m",
        "gatas",
        "train",
        given,
        "--device",
        "cpu",
        "--json",
        "--out",
        str(folder / Path(name).stem),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gatas train {name} ended with code {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["metrics"], cpu_seconds() - before


def main() -> None:
    report = Report("first-runs", "What do the trainings give that the README begins with?", ("torch", "numba", "numpy"))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, metric in RUNS.items():
            metrics, seconds = trained(name, Path(scratch))
            measured = [f"{metrics[split][metric]['mean']:.4f}" if split in metrics else "–" for split in ("valid", "test")]
            rows.append((f"`gatas train {name}`", metric, *measured, f"{seconds:.1f}"))
    report.table(("command", "metric", "validation", "test", "processor seconds"), rows)
    report.add("Seed 0, one run each; the ROC-AUC is the mean over link types.")
    report.write()


if __name__ == "__main__":
    main()
