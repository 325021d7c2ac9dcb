"""What training from a store takes, as the graph grows and what is learned from does not.

    python -m benchmarks.store_training --nodes 100000,1000000,10000000 --work /tmp/graphs

Each graph is generated, ingested and trained on for one epoch, each in a process of its own. Memory is RssAnon of
/proc/self/status, looked at every 10 ms: what the process holds, without pages of mapped files, which the system takes back
whenever it needs them.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

TRAINED, MEASURED = 5_000, 1_000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", default="100000,1000000,10000000")
    arguments.add_argument("--degree", type=int, default=5, help="edges listed for each node")
    arguments.add_argument("--exponent", type=float, default=2.5, help="of the degrees' power law")
    arguments.add_argument("--max-degree", type=int, help="of nodes that walks go on through; else of any")
    arguments.add_argument("--memory", default="1GB", help="for the ingest")
    arguments.add_argument("--work", type=Path, default=Path("graphs"))
    arguments.add_argument("--stage", choices=("ingest", "train"), help="used by the script itself")
    given = arguments.parse_args()
    if given.stage is not None:
        print(json.dumps(watched(ingested if given.stage == "ingest" else trained, given)))
        return
    print("| nodes | edges | store | ingest s | ingest MB | open s | epoch s | training MB |\n|" + "---:|" * 8)
    for nodes in given.nodes.split(","):
        generate(given, int(nodes))
        found = {stage: in_process(stage, given, nodes) for stage in ("ingest", "train")}
        ingest, train = found["ingest"], found["train"]
        print(
            f"| {int(nodes):,} | {ingest['edges']:,} | {ingest['bytes'] / 1e6:,.0f} MB | {ingest['seconds']:.0f} | "
            f"{ingest['peak'] / 1e6:.0f} | {train['opened']:.1f} | {train['seconds']:.1f} | {train['peak'] / 1e6:.0f} |",
            flush=True,
        )


def generate(given: Any, nodes: int) -> None:
    from gatas.datasets.generating import GraphRecipe, generate_graph

    shares = {"train": TRAINED / nodes, "valid": MEASURED / nodes, "test": MEASURED / nodes}
    recipe = GraphRecipe(nodes=nodes, edges=given.degree * nodes, exponent=given.exponent, **shares)
    if not (given.work / f"data-{nodes}").exists():
        generate_graph(given.work / f"data-{nodes}", recipe, threads=2)


def in_process(stage: str, given: Any, nodes: str) -> dict[str, Any]:
    asked = ["--stage", stage, "--nodes", nodes, "--work", str(given.work), "--memory", given.memory]
    asked += [] if given.max_degree is None else ["--max-degree", str(given.max_degree)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.store_training", *asked], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def watched(work: Any, given: Any) -> dict[str, Any]:
    """What some work gives, and the most memory that it held."""
    peak, stopped = [anonymous()], threading.Event()

    def watch() -> None:
        while not stopped.wait(0.01):
            peak.append(max(peak.pop(), anonymous()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    found: dict[str, Any] = work(given)
    stopped.set()
    watcher.join()
    return {**found, "peak": peak[0]}


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) << 10


def ingested(given: Any) -> dict[str, Any]:
    from gatas.cli.ingest import parsed_memory
    from gatas.datasets.ingest import ingest

    data, store = given.work / f"data-{given.nodes}", given.work / f"store-{given.nodes}"
    started = time.perf_counter()
    if not store.exists():
        ingest(data / "edges", data / "nodes", out=store, memory=parsed_memory(given.memory))
    seconds = time.perf_counter() - started
    shape = json.loads((store / "manifest.json").read_text())["files"]["neighbour.npy"]["shape"]
    return {"seconds": seconds, "edges": shape[0], "bytes": sum(path.stat().st_size for path in store.iterdir())}


def trained(given: Any) -> dict[str, Any]:
    from gatas.datasets import StoreData, open_dataset
    from gatas.inference import fit_many
    from gatas.training import Config

    started = time.perf_counter()
    config = Config(
        data=StoreData(store=given.work / f"store-{given.nodes}"),
        model={"num_steps": 2, "sample_size": 50, "num_heads": 4, "max_candidates": 256, "max_degree": given.max_degree},
        training={"epochs": 1},
    )
    dataset = open_dataset(config.data)
    opened = time.perf_counter() - started
    runs = fit_many(config, [0], dataset=dataset, device="cpu")
    entry = runs[0].history[0]
    return {"opened": opened, "seconds": entry["seconds"], "accuracy": runs[0].metrics["valid"]["accuracy"]}


if __name__ == "__main__":
    main()
