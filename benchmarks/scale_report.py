"""The report of benchmarks/scale.py: what each stage took, how that grows, and what it is for each node."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Report
from benchmarks.watching import Row
from gatas.transitions.cost import readable_bytes

PACKAGES = ("numpy", "numba", "torch", "duckdb", "pyarrow", "ray")
STAGES = ("generate", "ingest", "transitions", "train", "embed")
ENGINES = ("-", "serial", "pool", "ray")
HEADER = (
    "stage", "engine", "seconds", "processor s", "load", "driver", "a worker", "others", "together", "result", "most on disk",
)  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """A stage's cost as the sizes that were measured give it: so much, and so much more for each node."""

    fixed: float
    each: float
    bytes_each: float

    def seconds(self, nodes: float) -> float:
        """Of one processor."""
        return self.fixed + self.each * nodes

    def num_bytes(self, nodes: float) -> float:
        return self.bytes_each * nodes


def rates(rows: list[Row], engines: tuple[str, ...] = ENGINES) -> dict[str, Rate]:
    """A line through the processor seconds of all sizes and engines, each size counting alike; bytes of the largest.

    Of one size alone all is counted for its nodes.
    """
    found = {}
    for stage in STAGES:
        whole = [row for row in rows if row["stage"] == stage and row["engine"] in engines and "bytes" in row]
        if not whole:
            continue
        nodes, seconds = (np.array([row[name] for row in whole], np.float64) for name in ("nodes", "cpu_seconds"))
        if len(set(nodes)) > 1:
            each, fixed = np.polyfit(nodes, seconds, 1, w=1 / nodes)
        else:
            each, fixed = np.mean(seconds / nodes), 0.0
        largest = max(whole, key=lambda row: row["nodes"])
        found[stage] = Rate(float(fixed), float(each), largest["bytes"] / largest["nodes"])
    return found


def installed() -> list[str]:
    return [name for name in PACKAGES if find_spec(name)]


def write_report(content: dict[str, Any], path: Path) -> None:
    report = Report("scale", "Ingest, transitions, training and embeddings as graphs grow", installed(), content.get("made"))
    add_settings(report, content)
    for note in content.get("notes", ()):
        report.add(f"\n{note}")
    order = {name: number for number, name in enumerate(STAGES + ENGINES)}
    rows = sorted(content["rows"], key=lambda row: (row["nodes"], order[row["stage"]], order[row["engine"]]))
    for nodes in dict.fromkeys(row["nodes"] for row in rows):
        same = [row for row in rows if row["nodes"] == nodes]
        graph = next((row for row in same if "edges" in row), None)
        about = f", {graph['edges']:,} edges, {graph['walks']:,} walks of two steps" if graph else ""
        report.add(f"\n## {nodes:,} nodes{about}")
        report.table(HEADER, [cells(row) for row in same])
        add_sums(report, same)
    add_growth(report, rows)
    add_rates(report, rows)
    report.write(path)


def cells(row: Row) -> list[str]:
    seconds = f"{row['seconds']:,.0f}"
    if "cut" in row:
        parts = row.get("parts", {})
        seconds = f"cut {row['cut']}" + (f", {parts['done']} of {parts['total']} parts done" if parts.get("total") else "")
    if "failed" in row:
        seconds = f"failed: {' '.join(row['failed'])}"
    held = [readable_bytes(row[role]["held"]) if row[role]["processes"] else "" for role in ("driver", "worker", "other")]
    result = readable_bytes(row["bytes"]) if "bytes" in row else ""
    return [row["stage"], row["engine"], seconds, f"{row['cpu_seconds']:,.0f}", f"{row['load']:.0f}", *held,
            readable_bytes(row["together"]), result, readable_bytes(row["disk"])]  # fmt: skip


def add_settings(report: Report, content: dict[str, Any]) -> None:
    model, training = content["model"], content["training"]
    report.add(
        f"\n{content['degree']} edges for each node, of 3 types, not doubled by inverses; degrees by a power law of exponent "
        f"{content['exponent']:g}; 32 features. C = {model['num_steps']}, `max_candidates` {model['max_candidates']}, "
        f"S = {model['sample_size']}, K = {model['num_heads']}; {training['epochs']} epoch of {content['labelled']:,} labelled "
        f"nodes (of 10⁵ nodes: 90,000) in batches of {training['batch_size']}, with 1,000 nodes to validate and 1,000 to test; "
        "rows of transitions are made for each batch. Ingest within 2 GB. Two workers for `pool` and `ray`, all cores for "
        f"`serial`. Device of training and embeddings: {content['device']}."
    )
    report.add(
        "\nEvery stage is a command of its own, from start to end, imports and Ray's start among it. Memory is the most that "
        "`RssAnon` of /proc/PID/status showed, looked at every 0.25 s: of the command's process (driver), of the largest "
        "worker, of the largest other process (Ray's servers), and of all at one time (together). Pages of mapped files are "
        "not in it: the system takes them back when it needs them (VmHWM, with them, is in the JSON). Processor seconds are of "
        "all processes. Load is the machine's load average, which others share: above the number of cores seconds are longer "
        "than on an idle machine; processor seconds far less, memory and bytes not at all."
    )


def add_sums(report: Report, rows: list[Row]) -> None:
    """Whether engines wrote the same bytes."""
    for stage in ("transitions", "embed"):
        sums = {row["engine"]: row["sha256"] for row in rows if row["stage"] == stage and "sha256" in row}
        if len(sums) > 1:
            same = "the same bytes" if len(set(sums.values())) == 1 else "DIFFERENT BYTES"
            report.add(f"`{stage}`: {same} from {', '.join(sums)}.")


def add_growth(report: Report, rows: list[Row]) -> None:
    """Of each stage and engine, over the sizes."""
    sizes = sorted({row["nodes"] for row in rows})
    if len(sizes) < 2:
        return
    whole = [row for row in rows if "bytes" in row]
    report.add("\n## Growth\n\nProcessor seconds; memory of the largest process; bytes of the result; by number of nodes.")
    table = []
    for stage, engine in dict.fromkeys((row["stage"], row["engine"]) for row in rows):
        found = {row["nodes"]: row for row in whole if (row["stage"], row["engine"]) == (stage, engine)}
        shown: list[str] = []
        for what in (processor, largest, result):
            shown += [what(found[nodes]) if nodes in found else "" for nodes in sizes]
        table.append([stage, engine, *shown])
    names = [f"{what}, {nodes:.0e}".replace("e+0", "e") for what in ("s", "memory", "result") for nodes in sizes]
    report.table(("stage", "engine", *names), table)


def add_rates(report: Report, rows: list[Row]) -> None:
    """The cost model."""
    table = []
    for engine in ENGINES:
        for stage, rate in rates(rows, (engine,)).items():
            table.append([stage, engine, f"{rate.fixed:.1f}", f"{1e6 * rate.each:.1f}", f"{rate.bytes_each:,.0f}"])
    if table:
        report.add(
            "\n## For each node\n\nProcessor seconds = fixed + each · nodes: the line through all sizes, each counting alike. "
            "Where fixed is 0 there is one size, and all is counted for its nodes."
        )
        report.table(("stage", "engine", "fixed, s", "each, µs", "result, bytes"), table)


def processor(row: Row) -> str:
    return f"{row['cpu_seconds']:,.0f}"


def largest(row: Row) -> str:
    return readable_bytes(max(row[role]["held"] for role in ("driver", "worker", "other")))


def result(row: Row) -> str:
    return readable_bytes(row["bytes"])
