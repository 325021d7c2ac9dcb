"""`gatas predict`: classes of nodes, or links between them."""

import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from gatas.cli import jobs, runs
from gatas.cli.importing import quick_imports
from gatas.cli.output import counted, plain_table, print_json, print_table, progress_bar, remark_on_loops, stderr, stdout
from gatas.cli.verify import VerifyOption, verified
from gatas.errors import ConfigError

if TYPE_CHECKING:
    from gatas.inference import LinkPrediction, NumberPrediction, Prediction, Predictor

KnownChoice = Literal["train", "valid", "all"]
"""`gatas.inference.link_ends.KnownLinks`, which takes seconds to import."""
SHOWN = 20
"""Rows that are printed where no file is asked for."""
LIKELIEST = 3
"""Classes that are printed for each."""


def predict(
    run: Path = runs.RunArgument,
    ids: list[str] = typer.Argument(None, metavar="ID", help="Nodes to classify; all if none are given."),
    out: Path | None = typer.Option(None, "--out", help="File to write: .parquet, .csv or .json."),
    nodes: Path | None = runs.FewNodesOption,
    pairs: Path | None = typer.Option(None, "--pairs", metavar="FILE", help="Score these links: source, target[, type]."),
    source: list[str] = typer.Option([], "--source", metavar="ID", help="Find this node's likeliest links; repeatable."),
    sources: Path | None = typer.Option(None, "--sources", metavar="FILE", help="The same for a table's column of ids."),
    target: list[str] = typer.Option([], "--target", metavar="ID", help="Find the likeliest links to this node; repeatable."),
    edge_type: str | None = typer.Option(None, "--type", help="Type of the links, where there are several."),
    top: int = typer.Option(10, "--top", min=1, help="How many links for each node."),
    known: KnownChoice = typer.Option(
        "valid", "--known", help="Links that are left out beside the graph's: those of training, also of validation, or all."
    ),
    draws: int | None = typer.Option(
        None, "--draws", min=2, help="Draw neighbours so often: means over draws, and their standard deviation."
    ),
    new_nodes: Path | None = runs.NewNodesOption,
    new_features: Path | None = runs.NewFeaturesOption,
    new_edges: Path | None = runs.NewEdgesOption,
    new_embeddings: runs.EmbeddingChoice = runs.NewEmbeddingsOption,
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
    """Predict classes or numbers of nodes; of a model of links, score given links or rank the likeliest."""
    with quick_imports():
        from gatas.inference.columns import read_ids
        from gatas.inference.files import TABLES, check_suffix

    runs.refuse_both(nodes=nodes, pairs=pairs, source=source, sources=sources, target=target)
    if ids and nodes is not None:
        raise ConfigError("ids and --nodes were given; expected one of them.")
    if out is not None:
        check_suffix(out, TABLES)
    if verify:
        verified(run)
    chosen = jobs.chosen_engine(engine, workers, parts, job, ray_address, None, gpus_per_worker)
    if chosen is not None:
        asked: dict[str, Any] = {"ids": ids, "nodes": nodes, "pairs": pairs, "source": source, "sources": sources}
        new = {"new_nodes": new_nodes, "new_features": new_features, "new_edges": new_edges}
        runs.refuse_with_engine(**asked, target=target, draws=draws, **new)
        if out is None:
            raise ConfigError("--engine writes the classes of all nodes: say into which file, by --out.")
        report(out, jobs.answer_all("predictions", run, out, chosen, parts, job, device)["nodes"], json)
        return
    predictor, wanted = runs.load_predictor(run, device, nodes, new_nodes, new_edges, new_embeddings, new_features)
    if not predictor.predicts_links:
        if pairs or source or sources or target or edge_type:
            what = "numbers" if predictor.predicts_numbers else "classes"
            raise ConfigError(
                f"the model predicts {what} of nodes; --pairs, --source, --sources, --target and --type are for links."
            )
        classify(predictor, ids or wanted, out, json, draws)
    elif draws is not None:
        raise ConfigError("--draws is for classes or numbers of nodes, but the model predicts links. Leave it out.")
    elif pairs is not None:
        show(scored(predictor, pairs, edge_type), out, json)
    elif target and not ids:
        show(ranked(predictor, {"target": target, "known": known}, edge_type, top), out, json)
    else:
        starts = list(source) or (wanted if sources is None else read_ids(predictor.dataset, sources))
        if ids or not starts:
            raise ConfigError("the model predicts links. Give --pairs FILE, or --source ID with --type T and --top K.")
        show(ranked(predictor, {"source": starts, "known": known}, edge_type, top), out, json)


def classify(predictor: "Predictor", ids: list[Any] | None, out: Path | None, json: bool, draws: int | None = None) -> None:
    """Print or write the classes or numbers of nodes given by id, or of all."""
    import numpy as np

    from gatas.inference import NumberPrediction

    if out is not None:
        with progress_bar("predictions") as progress:
            count = predictor.write_predictions(out, ids, draws=draws, progress=progress)
        report(out, count, json)
        return
    num_nodes = predictor.graph.num_nodes
    few = np.arange(num_nodes if json else min(SHOWN, num_nodes))
    found = predictor.predict_indices(few, draws=draws) if ids is None else predictor.predict(ids, draws=draws)
    if json:
        print_json(found.table().to_pylist())
        return
    if isinstance(found, NumberPrediction):
        print_numbers(found)
    else:
        print_classes(found)
    if ids is None and num_nodes > SHOWN:
        stderr.print(f"{SHOWN} of {num_nodes:,} nodes; --out FILE writes them all")


def print_numbers(found: "NumberPrediction") -> None:
    """Print the numbers of nodes, with their deviation over draws where it was asked for."""
    table = plain_table("id", *(f"{name}#" for name in found.names))
    for number, name in enumerate(found.ids.to_pylist()):
        cells = [f"{value:.6g}" for value in found.values[number]]
        if found.deviations is not None:
            cells = [f"{cell} ± {own:.2g}" for cell, own in zip(cells, found.deviations[number], strict=True)]
        table.add_row(str(name), *cells)
    print_table(f"Numbers of {counted(len(found), 'node')}", table)


def print_classes(found: "Prediction") -> None:
    """Print the likeliest classes, however many there are."""
    table = plain_table("id", "classes" if found.multi_label else "class", "likeliest")
    for number, (name, label) in enumerate(zip(found.ids.to_pylist(), found.labels, strict=True)):
        row, spread = found.probabilities[number], None if found.deviations is None else found.deviations[number]
        best = (-row).argsort(kind="stable")[:LIKELIEST]
        deviations = ["" if spread is None else f" ± {spread[place]:.3f}" for place in best]
        likeliest = ", ".join(
            f"{found.names[k]} {row[k]:.3f}{deviation}" for k, deviation in zip(best, deviations, strict=True)
        )
        table.add_row(str(name), ", ".join(label) if found.multi_label else label, likeliest)
    what = "Class" if len(found) == 1 and not found.multi_label else "Classes"
    print_table(f"{what} of {counted(len(found), 'node')}", table)


def scored(predictor: "Predictor", pairs: Path, edge_type: str | None) -> "LinkPrediction":
    """Score the links of a file, of the types it says or all of one."""
    from gatas.graph.tables import ids_of
    from gatas.inference.columns import read_edge_table

    table = read_edge_table(predictor.dataset, pairs, ("edge_type",))
    if "edge_type" in table.columns and edge_type is not None:
        raise ConfigError(f"{pairs} says each link's type, and --type came too. Give one of them.")
    types = ids_of(table, "edge_type") if "edge_type" in table.columns else only_type(predictor, edge_type)
    with progress_bar("links") as progress:
        found = predictor.score_links(ids_of(table, "source"), types, ids_of(table, "target"), progress=progress)
    remark_on_loops(sum(map(operator.eq, found.sources.to_pylist(), found.targets.to_pylist())))
    return found


def ranked(predictor: "Predictor", asked: dict[str, Any], edge_type: str | None, top: int) -> "LinkPrediction":
    """Find the likeliest links from some nodes, the `source`, or to some, the `target`."""
    with progress_bar("links") as progress:
        return predictor.rank_links(**asked, edge_type=only_type(predictor, edge_type), top=top, progress=progress)


def only_type(predictor: "Predictor", edge_type: str | None) -> str:
    """Return what was asked for, or the only type there is."""
    names = predictor.names
    if edge_type is None and len(names) > 1:
        raise ConfigError(f"--type is missing; the model knows links of the types {', '.join(map(repr, names))}.")
    return names[0] if edge_type is None else edge_type


def show(found: "LinkPrediction", out: Path | None, json: bool) -> None:
    """Write links into a file, or print them as JSON or as a table."""
    from gatas.inference.files import write_tables

    table = found.table()
    if out is not None:
        write_tables(out, table.schema, [table])
        report(out, len(table), json)
    elif json:
        print_json(table.to_pylist())
    else:
        print_links(table)


def print_links(table: Any) -> None:
    shown = plain_table("source", "type", "target", "probability#")
    for row in table.to_pylist():
        shown.add_row(str(row["source"]), row["type"], str(row["target"]), f"{row['probability']:.4f}")
    print_table(counted(len(table), "link"), shown)


def report(out: Path, count: int, json: bool) -> None:
    if json:
        print_json({"file": str(out), "rows": count})
    else:
        stdout.print(f"{out}: {counted(count, 'prediction')}", soft_wrap=True)
