"""A finished run named on the command line, with new nodes if there are any, and files of ids."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from gatas.errors import ConfigError

if TYPE_CHECKING:
    from gatas.inference import Predictor

RunArgument = typer.Argument(metavar="RUN", help="Folder that `gatas train` wrote, of one seed.")
FewNodesOption = typer.Option(None, "--nodes", metavar="FILE", help="Only the nodes in this table's column of ids.")
NewNodesOption = typer.Option(
    None, "--new-nodes", metavar="FILE", help="Nodes never seen: ids and features, in columns as in training."
)
NewFeaturesOption = typer.Option(
    None, "--new-features", metavar="FILE", help="Their sparse features (.npz), where training had such a file; in their order."
)
NewEdgesOption = typer.Option(None, "--new-edges", metavar="FILE", help="Their edges: source, target[, type][, weight].")
NewEmbeddingsOption = typer.Option("mean", "--new-embeddings", help="In place of learned ones: neighbours' mean, or zeros.")
DeviceOption = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one.")

EmbeddingChoice = Literal["mean", "zeros"]
"""`gatas.inference.new_nodes.EmbeddingRule`, which takes seconds to import."""


def load_predictor(
    run: Path,
    device: str,
    nodes: Path | None = None,
    new_nodes: Path | None = None,
    new_edges: Path | None = None,
    rule: EmbeddingChoice = "mean",
    new_features: Path | None = None,
) -> "tuple[Predictor, list[Any] | None]":
    """Load a run's predictor, and the ids it is asked for: given, or new, or None for all."""
    from gatas.inference.columns import read_ids, read_new_nodes
    from gatas.inference.loading import load  # torch: seconds that other commands need not wait

    predictor = load(run, device=device)
    ids = None if nodes is None else read_ids(predictor.dataset, nodes)
    if new_nodes is None and new_edges is None and new_features is None:
        return predictor, ids
    given = read_new_nodes(predictor.dataset, new_nodes, new_edges, new_features)
    extended = predictor.with_new_nodes(**given, embeddings=rule)
    return extended, extended.new_ids if ids is None else ids


def refuse_with_engine(**given: Any) -> None:
    """Refuse options that choose nodes beside --engine, which is for all nodes."""
    for name, value in given.items():
        if value:
            said = "ids" if name == "ids" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{said} and --engine were given; engines answer for all nodes of a run. Leave one of them out.")


def refuse_both(**given: Any) -> None:
    """Refuse more than one of these options."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if len(names) > 1:
        raise ConfigError(f"{' and '.join(names)} were given; expected one of them.")
