"""Run the showcase from end to end: tables, training, rankings beside peers, explanations; write what was measured.

    python examples/genes/showcase.py FOLDER --results results/showcases/genes.json

Every step is a command that is printed before it runs, and can be run by hand. Seconds and peak memory of each are measured. A
step whose result is there already is not run again. `--built` takes tables that were built before, also elsewhere.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

HERE = Path(__file__).absolute().parent
sys.path.append(str(HERE.parent / "packages"))  # which has the steps of a showcase
from steps import Steps, add_options, made_by  # noqa: E402

LINK_TYPES = "data.link_types=[biological process, molecular function, cellular component]"
SETTINGS = {
    "model.link_score": "[vectors, paths]",
    "model.vector_size": "128",
    "model.num_steps": "3",
    "model.max_degree": "128",
    "model.max_candidates": "[256, 384, 384]",
}
"""Chosen by validation links; the page says among what."""
EXPLAINED = (
    ("gene:EXTL1", "biological process", "GO:0015012 heparan sulfate proteoglycan biosynthetic process"),
    ("gene:FBXO3", "cellular component", "GO:0019005 SCF ubiquitin ligase complex"),
    ("gene:JAK1", "biological process", "GO:0035771 interleukin-4-mediated signaling pathway"),
    ("gene:MICU1", "molecular function", "GO:0019855 calcium channel inhibitor activity"),
)
"""New links that are explained, where the test has them: gene, type, term. They were picked among those ranked first."""


def settings() -> list[str]:
    return [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]


def train(steps: Steps, folder: Path, epochs: int) -> Path:
    """Learn the annotations of Debian 12."""
    config, run = folder / "genes.yaml", folder / "run"
    tables = [part for name in ("nodes", "valid", "test") for part in (f"--{name}", folder / f"{name}.parquet")]
    given = (*tables, "--set", LINK_TYPES, "--yes", "--force", "--out", config)
    steps.run("init", "gatas", "init", folder / "edges.parquet", *given)
    steps.run("train", "gatas", "train", config, *settings(), "--set", f"training.epochs={epochs}", "--no-report", "--out", run)
    return run


def rank(steps: Steps, folder: Path, run: Path, seconds: int, peers: list[str]) -> dict[str, Any]:
    """Rank the annotations that are new in Debian 13, by the run and by peers."""
    found = {}
    for name in ("gatas", *peers):
        out = folder / f"ranks-{name}.json"
        chosen = ("--run", run) if name == "gatas" else ("--peer", name, "--seconds", str(seconds))
        steps.run(f"rank by {name}", sys.executable, HERE / "ranks.py", folder, *chosen, "--out", out)
        found[name] = json.loads(out.read_text(encoding="utf-8"))
    return found


def explain(steps: Steps, folder: Path, run: Path) -> None:
    """Say and draw what new links rest on."""
    rows = pq.read_table(folder / "test.parquet", columns=["source", "type", "target"]).to_pylist()
    new = {(row["source"], row["type"], row["target"]) for row in rows}
    for number, link in enumerate((link for link in EXPLAINED if link in new), 1):
        steps.run(f"explain {number}", "gatas", "explain", run, "--link", *link, "--out", folder / "pictures")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the showcase of gene function.")
    add_options(parser)
    parser.add_argument("--papers", type=int, default=0, help="keep papers that name 2 to so many genes; by default none")
    parser.add_argument("--epochs", type=int, default=5, help="of our training (default: 5)")
    parser.add_argument("--seconds", type=int, help="of the training of each peer (default: as many as ours took)")
    parser.add_argument("--peers", default="popularity,complex,rotate", help="by commas; '' for none (default: all)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    steps = Steps(given.folder)
    if not given.built:
        steps.run("build", sys.executable, HERE / "build.py", given.folder, "--papers", str(given.papers))
    run = train(steps, given.folder, given.epochs)
    seconds = given.seconds or max(1, round(steps.done["train"]["seconds"]))
    ranks = rank(steps, given.folder, run, seconds, [name for name in given.peers.split(",") if name])
    explain(steps, given.folder, run)
    content = {
        **made_by(), "load_average_at_the_end": os.getloadavg()[2],
        "settings": {**SETTINGS, "training.epochs": given.epochs},
        "graph": json.loads((given.folder / "summary.json").read_text(encoding="utf-8")),
        "valid": json.loads((run / "metrics.json").read_text(encoding="utf-8"))["valid"]["ranking"], "ranks": ranks,
        "steps": steps.costs(),
    }  # fmt: skip
    results = given.results or given.folder / "results.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: content[key] for key in ("ranks", "steps")}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
