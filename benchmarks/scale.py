"""What a graph of 10⁵, 10⁶, 10⁷ nodes takes, stage by stage and engine by engine: seconds, memory, bytes on disk.

    python -m benchmarks.scale [--nodes 1e5,1e6,1e7] [--stages …] [--engines serial,pool,ray] [--device cuda] [--work FOLDER]

Every stage is a command of `gatas` in a process of its own, looked at from outside (benchmarks/watching.py), and a row of
the JSON file as soon as it is done; the same command goes on where it was. What takes too long, or too much disk, is cut, and
its row says so; it is tried again with a larger --limit.
"""

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import FOLDER, how_made
from benchmarks.scale_report import installed, write_report
from benchmarks.watching import Row, size_of, watch

STAGES = ("generate", "ingest", "transitions", "train", "embed")
IN_PARTS = ("transitions", "embed")
NEEDS = {"generate": (), "ingest": ("generate",), "transitions": ("ingest",), "train": ("ingest",), "embed": ("train",)}
DEGREE, EXPONENT, LABELLED, MEASURED = 20, 3.0, 100_000, 1_000
MODEL = {"num_steps": 2, "max_candidates": 256, "sample_size": 50, "num_heads": 4}
TRAINING = {"epochs": 1, "batch_size": 500}


@dataclass(frozen=True)
class Stage:
    """One row: what is run, and where it writes."""

    work: Path
    nodes: int
    name: str
    engine: str
    device: str
    exponent: float

    @property
    def key(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "stage": self.name, "engine": self.engine}

    def folder(self, name: str = "") -> Path:
        return self.work / f"{self.nodes}" / (name or (self.name if self.engine == "-" else f"{self.name}-{self.engine}"))

    @property
    def out(self) -> Path:
        return self.folder() / ("out.parquet" if self.name == "embed" else "out")

    def command(self) -> list[str]:
        words: Callable[[], list[str]] = getattr(self, f"{self.name}_command")
        return [sys.executable, "-m", "gatas", *words()]

    def generate_command(self) -> list[str]:
        counts = {"train": min(LABELLED, 0.9 * self.nodes), "valid": MEASURED, "test": MEASURED}
        settings = {name: count / self.nodes for name, count in counts.items()} | {"exponent": self.exponent}
        chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        return ["generate", str(self.out), "--nodes", str(self.nodes), "--edges", str(DEGREE * self.nodes), *chosen]

    def ingest_command(self) -> list[str]:
        data = self.folder("generate") / "out"
        given = ["--memory", "2GB", "--set", "direction=as given"]
        return ["ingest", str(data / "edges"), "--nodes", str(data / "nodes"), "--out", str(self.out), *given]

    def transitions_command(self) -> list[str]:
        asked = ["--steps", str(MODEL["num_steps"]), "--max-candidates", str(MODEL["max_candidates"])]
        return ["transitions", "build", str(self.folder("ingest") / "out"), "--out", str(self.out), *asked, *self.in_parts()]

    def train_command(self) -> list[str]:
        config = self.folder() / "config.yaml"
        data = {"store": str((self.folder("ingest") / "out").absolute())}
        config.write_text(json.dumps({"data": data, "model": MODEL, "training": TRAINING}))  # JSON is YAML
        return ["train", str(config), "--out", str(self.out), "--device", self.device]

    def embed_command(self) -> list[str]:
        run = self.folder("train") / "out"
        gpu = ["--gpus-per-worker", "0.5"] if self.device == "cuda" and self.engine != "serial" else []
        return ["embed", str(run), "--out", str(self.out), "--device", self.device, *gpu, *self.in_parts()]

    def in_parts(self) -> list[str]:
        workers = [] if self.engine == "serial" else ["--workers", "2"]
        return ["--engine", self.engine, *workers, "--job", str(self.folder() / "job")]

    def parts(self) -> Row:
        """How many parts are done, and of how many; how far seconds are from the plan's, on one process."""
        plan = self.folder() / "job" / "plan"
        done = sorted(self.folder().glob("job/parts/[0-9]*"), key=lambda part: part.stat().st_mtime)
        if not plan.exists():
            return {"done": 0, "total": None}
        cuts, estimated = (np.load(plan / f"{name}.npy") for name in ("cuts", "seconds"))
        found: Row = {"done": len(done), "total": len(estimated)}
        if self.engine == "serial" and len(done) > 2:
            numbers = np.searchsorted(cuts, [int(part.name.split("-")[0]) for part in done])
            taken = np.diff([part.stat().st_mtime for part in done])
            found["spread"] = float(np.std(np.log(taken / estimated[numbers[1:]]), ddof=1))
        return found

    def result(self) -> Row:
        """Bytes and a sum of what was written; a store's manifest has the sums of its files."""
        summed = self.out if self.out.is_file() else self.out / "manifest.json"
        found: Row = {"bytes": self.out.stat().st_size if self.out.is_file() else size_of(self.out)}
        if self.name in ("ingest", *IN_PARTS):
            found["sha256"] = hashlib.sha256(summed.read_bytes()).hexdigest()
        if self.name == "ingest":
            degree = np.diff(np.load(self.out / "indptr.npy"))
            neighbour = np.load(self.out / "neighbour.npy", mmap_mode="r")
            found |= {"edges": len(neighbour), "largest_degree": int(degree.max()), "walks": int(degree[neighbour].sum())}
        if self.name == "transitions":
            files = json.loads(summed.read_text())["files"]
            found["entries"] = sum(file["shape"][0] for name, file in files.items() if name.endswith("node.npy"))
        return found


def measure(stage: Stage, limit: float, disk: float) -> Row:
    """One row; what later stages do not need is removed."""
    shutil.rmtree(stage.folder(), ignore_errors=True)
    stage.folder().mkdir(parents=True)
    command = stage.command()
    row = {**stage.key, "date": f"{datetime.now(UTC):%Y-%m-%d}", "limit": limit}
    row |= watch(command, stage.folder(), stage.folder() / "log", limit, disk)
    if stage.name in IN_PARTS:
        row["parts"] = stage.parts()
        shutil.rmtree(stage.folder() / "job", ignore_errors=True)
    if "cut" not in row and "failed" not in row:
        row |= stage.result()
    if stage.name in IN_PARTS:
        shutil.rmtree(stage.folder())
    return row


def measure_all(given: argparse.Namespace, rows: list[Row], keep: Callable[[], None]) -> None:
    """The rows that are not there; a stage whose results are needed and gone is done again."""

    def wanted(stage: Stage) -> None:
        known = [row for row in rows if stage.key.items() <= row.items()]
        cut = any("cut" in row and row["limit"] >= given.limit for row in known)
        if cut or any("bytes" in row and (stage.name in IN_PARTS or stage.out.exists()) for row in known):
            return
        for name in NEEDS[stage.name]:
            wanted(replace(stage, name=name, engine="-"))
        before = [row for row in rows if row["nodes"] == stage.nodes and row["stage"] in NEEDS[stage.name]]
        if any("cut" in row or "failed" in row for row in before):
            return
        rows[:] = [row for row in rows if row not in known]
        rows.append(measure(stage, given.limit, given.disk * 1e9))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        keep()

    for nodes in (int(float(number)) for number in given.nodes.split(",")):
        for name in given.stages.split(","):
            for engine in given.engines.split(",") if name in IN_PARTS else ["-"]:
                wanted(Stage(given.work, nodes, name, engine, given.device, given.exponent))


def main() -> None:
    given = parse()
    path = given.to or FOLDER / f"{datetime.now(UTC):%Y-%m-%d}-scale{'-gpu' if given.device == 'cuda' else ''}.json"
    settings = {"device": given.device, "degree": DEGREE, "exponent": given.exponent, "labelled": LABELLED}
    settings |= {"model": MODEL, "training": TRAINING}
    content = json.loads(path.read_text()) if path.exists() else {"made": how_made(installed()), **settings, "rows": []}
    if any(content.get(name) != value for name, value in settings.items()):
        sys.exit(f"{path} was measured with other settings. Choose another with --to, or remove it.")

    def keep() -> None:
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(path)

    if not given.report:
        measure_all(given, content["rows"], keep)
    write_report(content, path.with_suffix(".md"))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="1e5,1e6,1e7")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--engines", default="serial,pool,ray")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of training and embedding")
    parser.add_argument("--exponent", type=float, default=EXPONENT, help="of the degrees' power law; near 2: the largest hubs")
    parser.add_argument("--work", type=Path, default=Path("graphs"), help="where graphs, runs and parts are kept")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that a stage may take")
    parser.add_argument("--disk", type=float, default=100, help="GB that a stage may write")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the report of what is there")
    parser.add_argument("--to", type=Path, help="the JSON file; the report is written beside it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
