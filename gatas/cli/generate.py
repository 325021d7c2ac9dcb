"""`gatas generate`: a typed power-law graph with planted classes, as Parquet files of any size."""

from pathlib import Path
from typing import Any

import typer

from gatas.cli.output import print_json, progress_bar, stdout


def generate(
    out: Path = typer.Argument(help="Folder to write; must not exist. It will hold nodes/ and edges/."),
    nodes: int = typer.Option(100_000, "--nodes", help="How many nodes."),
    edges: int = typer.Option(1_000_000, "--edges", help="How many edges."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Change a setting, as hub=1000000."),
    seed: int = typer.Option(0, "--seed", help="The same seed and settings give the same files."),
    part_rows: int = typer.Option(1 << 24, "--part-rows", min=1, help="Rows of a file, at most."),
    threads: int | None = typer.Option(None, "--threads", min=1, help="Threads; all cores if not given."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Generate a graph with hubs, edge types and classes, in bounded memory: for tests of scale."""
    from gatas.datasets.generating import GraphRecipe, generate_graph
    from gatas.datasets.settings import checked, parsed_setting
    from gatas.ops.threads import available_threads

    given: dict[str, Any] = {"nodes": nodes, "edges": edges, "seed": seed}
    recipe = checked(GraphRecipe, given | dict(parsed_setting(setting) for setting in settings))
    with progress_bar("graph") as progress:
        generate_graph(out, recipe, part_rows=part_rows, threads=threads or available_threads(), progress=progress)
    size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    if json:
        print_json({"folder": str(out), "bytes": size, **recipe.model_dump()})
    else:
        listed = recipe.hub + recipe.edges
        stdout.print(f"{out}: {recipe.nodes:,} nodes, {listed:,} edges, {size:,} bytes", soft_wrap=True)
        stdout.print(f"Next: gatas ingest {out}/edges --nodes {out}/nodes --out STORE", soft_wrap=True)
