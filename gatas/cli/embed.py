"""`gatas embed`: the representations of nodes as a file."""

from pathlib import Path

import typer

from gatas.cli.importing import quick_imports
from gatas.cli.jobs import (
    EngineChoice,
    EngineOption,
    GpusOption,
    JobOption,
    PartsOption,
    RayAddressOption,
    WorkersOption,
    answer_all,
    chosen_engine,
)
from gatas.cli.output import print_json, progress_bar, stdout
from gatas.cli.runs import (
    DeviceOption,
    EmbeddingChoice,
    FewNodesOption,
    NewEdgesOption,
    NewEmbeddingsOption,
    NewNodesOption,
    RunArgument,
    load_predictor,
    refuse_with_engine,
)
from gatas.cli.verify import VerifyOption, verified


def embed(
    run: Path = RunArgument,
    out: Path = typer.Option(..., "--out", help="File to write: .parquet (id, embedding, model) or .npy (rows alone)."),
    nodes: Path | None = FewNodesOption,
    new_nodes: Path | None = NewNodesOption,
    new_edges: Path | None = NewEdgesOption,
    new_embeddings: EmbeddingChoice = NewEmbeddingsOption,
    batch_size: int | None = typer.Option(
        None, "--batch-size", min=1, help="Nodes at a time, 256 on a CPU, 1,024 on a GPU; changes memory, not vectors."
    ),
    device: str = DeviceOption,
    engine: EngineChoice | None = EngineOption,
    workers: int | None = WorkersOption,
    parts: int | None = PartsOption,
    job: Path | None = JobOption,
    ray_address: str | None = RayAddressOption,
    gpus_per_worker: float = GpusOption,
    verify: bool = VerifyOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write the representations of all nodes, of some, or of new ones, a batch at a time."""
    with quick_imports():
        from gatas.inference.files import EMBEDDINGS, check_suffix

    check_suffix(out, EMBEDDINGS)
    if verify:
        verified(run)
    chosen = chosen_engine(engine, workers, parts, job, ray_address, None, gpus_per_worker)
    if chosen is not None:
        refuse_with_engine(nodes=nodes, new_nodes=new_nodes, new_edges=new_edges)
        written = answer_all("embeddings", run, out, chosen, parts, job, device, batch_size)
        report(out, written["nodes"], written["size"], written["model"], json)
        return
    predictor, ids = load_predictor(run, device, nodes, new_nodes, new_edges, new_embeddings)
    with progress_bar("embeddings") as progress:
        count = predictor.write_embeddings(out, ids, batch_size=batch_size, progress=progress)
    report(out, count, predictor.embedding_size, predictor.fingerprint, json)


def report(out: Path, count: int, size: int, fingerprint: str, json: bool) -> None:
    """Print what a file holds."""
    if json:
        print_json({"file": str(out), "nodes": count, "size": size, "model": fingerprint})
    else:
        stdout.print(f"{out}: {count:,} nodes, {size} numbers each, model {fingerprint[:12]}", soft_wrap=True)
