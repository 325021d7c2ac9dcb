"""Run the showcase from end to end: tables, trainings, rankings, new packages, explanations; write what was measured.

    python examples/packages/showcase.py FOLDER --results results/showcases/packages.json

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
from steps import Steps, add_options, made_by

HERE = Path(__file__).parent
SECTION_EPOCHS, LINK_EPOCHS = 6, 2
LINK_SETTINGS = (
    "--set",
    "model.link_score=[vectors, paths]",
    "--set",
    "model.vector_size=128",
    "--set",
    "model.max_degree=256",
)
LINK_TYPES = ("--set", "data.link_types=[depends, recommends, suggests]")
PEERS = {"sections": ("label-propagation", "gcn"), "links": ("popularity", "adamic-adar")}
EXPLAINED = "package:vim-gtk3"
LINK = ("package:vim-gtk3", "suggests", "package:vim-doc")


def sections(steps: Steps, folder: Path) -> dict[str, Any]:
    """Learn sections, beside peers, and say those of packages that are new."""
    tables, config, run = folder / "sections", folder / "sections.yaml", folder / "runs/sections"
    given = ("--nodes", tables / "nodes.parquet", "--set", "data.label=section", "--yes", "--force", "--out", config)
    steps.run("init sections", "gatas", "init", tables / "edges.parquet", *given)
    steps.run("train sections", "gatas", "train", config, "--set", f"training.epochs={SECTION_EPOCHS}", "--out", run)
    measured = json.loads(steps.run("evaluate sections", "gatas", "evaluate", run, "--json"))["test"]
    out, new = folder / "new-sections.parquet", new_tables(tables)
    steps.run("new packages", "gatas", "predict", run, *new, "--out", out)
    steps.run("explain", "gatas", "explain", run, EXPLAINED, "--out", folder / "pictures")
    return {"test": {"accuracy": measured["accuracy"], "macro_f1": measured["macro_f1"]}, **of_new_packages(tables, out)}


def new_tables(tables: Path) -> tuple[str | Path, ...]:
    return ("--new-nodes", tables / "new-nodes.parquet", "--new-edges", tables / "new-edges.parquet")


def of_new_packages(tables: Path, predicted: Path) -> dict[str, Any]:
    """Compare what was said of new packages with their sections, beside the most frequent section of Debian 12."""
    table = pq.read_table(predicted)
    answers = dict(zip(table["id"].to_pylist(), table["class"].to_pylist(), strict=True))
    truth = pq.read_table(tables / "new-sections.parquet").to_pylist()
    old = [section for section in pq.read_table(tables / "nodes.parquet")["section"].to_pylist() if section is not None]
    frequent = max(sorted(set(old)), key=old.count)
    right = sum(answers[row["id"]] == row["section"] for row in truth)
    share = sum(row["section"] == frequent for row in truth) / len(truth)
    return {"new_packages": len(truth), "test_new_packages": right / len(truth), "test_most_frequent_section": share}


def links(steps: Steps, folder: Path) -> dict[str, Any]:
    """Learn links of Debian 12, and rank those that Debian 13 added."""
    tables, config, run = folder / "links", folder / "links.yaml", folder / "runs/links"
    given = ("--nodes", tables / "nodes.parquet", *LINK_TYPES, "--yes", "--force", "--out", config)
    steps.run("init links", "gatas", "init", tables / "train.parquet", *given)
    epochs = ("--set", f"training.epochs={LINK_EPOCHS}", "--no-report")
    steps.run("train links", "gatas", "train", config, *LINK_SETTINGS, *epochs, "--out", run)
    measured = json.loads(steps.run("rank links", "gatas", "evaluate", run, "--protocol", "ranking", "--json"))
    steps.run("explain link", "gatas", "explain", run, "--link", *LINK, "--out", folder / "pictures")
    kept = {key: value for key, value in measured["test"].items() if isinstance(value, int | float)}
    valid = {"mrr": json.loads((run / "metrics.json").read_text())["valid"]["ranking"]["mrr"]}
    return {"valid": valid, "test": kept, "test_by_type": measured["test"].get("by_type", {})}


def peers(steps: Steps, folder: Path) -> dict[str, Any]:
    """Measure other models on the same splits, one seed of each, for as many seconds at most as ours took."""
    found: dict[str, Any] = {}
    for data, models in PEERS.items():
        seconds = max(1, round(steps.done[f"train {data}"]["seconds"]))
        chosen = ("--models", ",".join(models), "--seeds", "1", "--max-seconds", str(seconds), "--out", folder)
        steps.run(f"peers of {data}", "gatas", "compare", "--data", folder / f"{data}.yaml", *chosen)
        for model in models:
            (run,) = json.loads((folder / "peers" / f"{data}-{model}.json").read_text())["runs"]
            test = run["test"].get("ranking", run["test"])
            kept = {key: value for key, value in test.items() if isinstance(value, int | float)}
            found.setdefault(data, {})[model] = {"test": kept, "cut": run.get("cut", "")}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the showcase of Debian's packages.")
    add_options(parser)
    parser.add_argument("--peers", action="store_true", help="train and measure peers too")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    steps = Steps(given.folder)
    if not given.built:
        steps.run("build", sys.executable, HERE / "build.py", given.folder)
    found = {"sections": sections(steps, given.folder), "links": links(steps, given.folder)}
    if given.peers:
        found["peers"] = peers(steps, given.folder)
    graph = json.loads((given.folder / "summary.json").read_text())
    content = {
        **made_by(), "load_average_at_the_end": os.getloadavg()[2], "seed": 0,
        "graph": graph, **found, "steps": steps.costs(),
    }  # fmt: skip
    results = given.results or given.folder / "results.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: content[key] for key in (*found, "steps")}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
