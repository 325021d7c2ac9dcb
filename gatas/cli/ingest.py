"""`gatas ingest`: edge files of any size into a graph store, in bounded memory."""

import re
from pathlib import Path
from typing import Any

import typer

from gatas.cli.output import print_json, progress_bar, stderr, stdout
from gatas.errors import ConfigError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
STAGES = ("read", "ids", "indices", "nodes", "sort", "store")


def ingest(
    edges: list[Path] = typer.Argument(help="Edge files (.parquet, .csv, .tsv, also .gz), folders of them, or a YAML config."),
    nodes: Path | None = typer.Option(None, "--nodes", help="Node table: a file, or a folder of files."),
    out: Path = typer.Option(..., "--out", help="Graph store to write; must not exist, unless the same command wrote it."),
    memory: str = typer.Option("2GB", "--memory", help="What the process may take, such as 500MB."),
    threads: int | None = typer.Option(None, "--threads", min=1, help="Threads; all cores if not given."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="A setting of data, as direction=undirected."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Sort, number and check edges on disk. The same command again goes on where it was stopped."""
    from gatas.datasets.ingest import ingest as run
    from gatas.datasets.settings import parsed_setting
    from gatas.graph import Graph
    from gatas.ops.threads import available_threads

    chosen: dict[str, Any] = {}
    if edges[0].suffix in (".yaml", ".yml"):
        edges, nodes, chosen = of_config(edges, nodes)
    chosen |= {key.removeprefix("data."): value for key, value in map(parsed_setting, settings)}
    with progress_bar("ingest") as bar:
        written = run(
            edges,
            nodes,
            out=out,
            memory=parsed_memory(memory),
            threads=threads or available_threads(),
            progress=lambda stage, share: bar((STAGES.index(stage) + share) / len(STAGES)),
            **chosen,
        )
    if not written:
        stderr.print(f"{out} was ingested before, by the same command: nothing is left to do", soft_wrap=True)
    graph = Graph.open(out)
    if json:
        print_json({"folder": str(out), "nodes": graph.num_nodes, "edges": graph.num_edges, "repeated": graph.num_repeated})
    else:
        stdout.print(f"{out}: {graph!r}, {graph.num_repeated:,} repeats collapsed", soft_wrap=True)


def of_config(named: list[Path], nodes: Path | None) -> tuple[list[Path], Path | None, dict[str, Any]]:
    """Return the files and settings of a config's data; paths in it are relative to it."""
    from gatas.datasets.settings import read_yaml

    path = named[0]
    if len(named) > 1 or nodes is not None:
        raise ConfigError(f"{path} names its edge and node tables itself; give no others beside it.")
    content = read_yaml(path, "a config over files of one's own, as `gatas init` writes")
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("edges"), str):
        raise ConfigError(f"{path} has no data.edges; expected a config over files of one's own, as `gatas init` writes.")
    files = {key: data.pop(key) for key in ("edges", "nodes") if key in data}
    own = None if files.get("nodes") is None else path.parent / str(files["nodes"])
    return [path.parent / files["edges"]], own, data


def parsed_memory(text: str) -> int:
    """Read 2GB, 500 MB, 1.5G or a number of bytes."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise ConfigError(f"--memory is {text!r}; expected a size such as 500MB or 2GB.")
    return int(float(found[1]) * UNITS[found[2].upper()])
