"""What do the trainings of the embedded data and of the example give?

    python -m benchmarks.first_runs

Each is the command in the table, seed 0, in a process of its own, on the CPU and into a folder that is then removed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import Report

EXAMPLES = Path(__file__).parents[1] / "examples" / "bibliography"
RUNS = {
    "digits": "accuracy",
    "kinship": "roc_auc",
    "examples/bibliography/topics.yaml": "accuracy",
    "examples/bibliography/citations.yaml": "roc_auc",
}
"""What is trained, and what it is measured by."""


def trained(name: str, folder: Path) -> dict[str, Any]:
    """The metrics of a training by the command line."""
    given = str(EXAMPLES / Path(name).name) if name.endswith(".yaml") else name
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
    metrics: dict[str, Any] = json.loads(done.stdout)["metrics"]
    return metrics


def main() -> None:
    report = Report(
        "first-runs", "What do the trainings of the embedded data and of the example give?", ("torch", "numba", "numpy")
    )
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, metric in RUNS.items():
            metrics = trained(name, Path(scratch))
            measured = [f"{metrics[split][metric]['mean']:.4f}" if split in metrics else "–" for split in ("valid", "test")]
            rows.append((f"`gatas train {name}`", metric, *measured))
    report.table(("command", "metric", "validation", "test"), rows)
    report.add("Seed 0, one run each; the ROC-AUC is the mean over link types.")
    report.write()


if __name__ == "__main__":
    main()
