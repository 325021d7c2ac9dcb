"""`gatas embed`: the representations of nodes as a file."""

from pathlib import Path
from typing import Literal

import typer

from gatas.cli import jobs, runs
from gatas.cli.importing import quick_imports
from gatas.cli.output import counted, print_json, progress_bar, stdout
from gatas.cli.verify import VerifyOption, verified
from gatas.errors import ConfigError


def embed(
    run: Path = runs.RunArgument,
    out: Path | None = typer.Option(None, "--out", help="File to write: .parquet (id, embedding, model) or .npy (rows alone)."),
    map_file: Path | None = typer.Option(
        None, "--map", metavar="FILE", help="A map of up to 5,000 nodes: .png or .svg, or .csv or .parquet (id, x, y, class)."
    ),
    map_method: Literal["auto", "t-sne", "umap"] = typer.Option(
        "auto", "--map-method", help="How nodes are placed; auto: UMAP where umap-learn is installed, else t-SNE."
    ),
    nodes: Path | None = runs.FewNodesOption,
    new_nodes: Path | None = runs.NewNodesOption,
    new_features: Path | None = runs.NewFeaturesOption,
    new_edges: Path | None = runs.NewEdgesOption,
    new_embeddings: runs.EmbeddingChoice = runs.NewEmbeddingsOption,
    batch_size: int | None = typer.Option(
        None, "--batch-size", min=1, help="Nodes at a time, 256 on a CPU, 1,024 on a GPU; changes memory, not vectors."
    ),
    device: str = runs.DeviceOption,
    engine: jobs.EngineChoice | None = jobs.EngineOption,
    workers: int | None = jobs.WorkersOption,
    parts: int | None = jobs.PartsOption,
    job: Path | None = jobs.JobOption,
    ray_address: str | None = jobs.RayAddressOption,
    gpus_per_worker: float = jobs.GpusOption,
    verify: bool = VerifyOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write the representations of all nodes, of some, or of new ones, a batch at a time; or draw a map of them."""
    with quick_imports():
        from gatas.inference.embedding_map import check_map_suffix
        from gatas.inference.files import EMBEDDINGS, check_suffix

    if out is None and map_file is None:
        raise ConfigError("nothing is to be written. Give --out FILE for representations, --map FILE for a map, or both.")
    if out is not None:
        check_suffix(out, EMBEDDINGS)
    if map_file is not None:
        check_map_suffix(map_file)
    if verify:
        verified(run)
    chosen = jobs.chosen_engine(engine, workers, parts, job, ray_address, None, gpus_per_worker)
    if chosen is not None:
        runs.refuse_with_engine(nodes=nodes, new_nodes=new_nodes, new_features=new_features, new_edges=new_edges, map=map_file)
        assert out is not None
        written = jobs.answer_all("embeddings", run, out, chosen, parts, job, device, batch_size)
        report(out, written["nodes"], written["size"], written["model"], json)
        return
    predictor, ids = runs.load_predictor(run, device, nodes, new_nodes, new_edges, new_embeddings, new_features)
    if out is not None:
        with progress_bar("embeddings") as progress:
            count = predictor.write_embeddings(out, ids, batch_size=batch_size, progress=progress)
        report(out, count, predictor.embedding_size, predictor.fingerprint, json)
    if map_file is not None:
        with progress_bar("embeddings") as progress:
            found = predictor.map_embeddings(ids, method=map_method, progress=progress)
        found.write(map_file)
        if out is None or not json:
            report_map(map_file, len(found.coordinates), found.num_nodes, found.method, json)


def report_map(path: Path, shown: int, count: int, method: str, json: bool) -> None:
    """Print what a map shows."""
    if json:
        print_json({"file": str(path), "nodes": shown, "of": count, "method": method})
    else:
        stdout.print(f"{path}: a map of {shown:,} of {counted(count, 'node')}, {method}", soft_wrap=True)


def report(out: Path, count: int, size: int, fingerprint: str, json: bool) -> None:
    """Print what a file holds."""
    if json:
        print_json({"file": str(out), "nodes": count, "size": size, "model": fingerprint})
    else:
        stdout.print(
            f"{out}: {counted(count, 'node')}, {counted(size, 'number')} each, model {fingerprint[:12]}", soft_wrap=True
        )
