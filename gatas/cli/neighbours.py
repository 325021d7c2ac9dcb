"""`gatas neighbours`: the nodes closest to one in the space of embeddings."""

from pathlib import Path
from typing import Literal

import typer

from gatas.cli.importing import quick_imports
from gatas.cli.output import plain_table, print_json, print_table, progress_bar, stdout
from gatas.cli.runs import DeviceOption, RunArgument, load_predictor


def neighbours(
    run: Path = RunArgument,
    node: str = typer.Argument(metavar="ID", help="The node's id."),
    top: int = typer.Option(10, "--top", min=1, help="How many."),
    method: Literal["exact", "hnsw"] = typer.Option("exact", "--method", help="hnsw: quicker with millions, misses some."),
    embeddings: Path | None = typer.Option(None, "--embeddings", metavar="FILE", help="What `gatas embed` wrote, .parquet."),
    device: str = DeviceOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Find the nodes whose representations are most alike, by the cosine between them."""
    with quick_imports():
        from gatas.inference.ids import indices_of
        from gatas.inference.neighbours import NearestNodes, faiss_or_refuse, read_embeddings

    faiss_or_refuse()
    predictor, _ = load_predictor(run, device)
    indices_of(predictor.graph, node)  # what is wrong with it, before the work
    if embeddings is None:
        with progress_bar("embeddings") as progress:
            rows = predictor.embed_all(progress=progress)
    else:
        rows = read_embeddings(embeddings, predictor)
    index = NearestNodes(predictor.dataset.graph, rows, method)
    found, recall = index.nearest(node, top), index.recall(top)
    if json:
        print_json({"node": node, "method": method, "recall": recall, "neighbours": found.table().to_pylist()})
        return
    table = plain_table("node", "similarity#")
    for name, similarity in zip(found.ids.to_pylist(), found.similarities, strict=True):
        table.add_row(str(name), f"{similarity:.4f}")
    print_table(f"Nearest to {node}", table)
    if method == "hnsw":
        stdout.print(f"HNSW finds {recall:.1%} of the {top} nearest, measured on {index.num_checked:,} nodes.", soft_wrap=True)
