"""A finished run named on the command line, with new nodes if there are any, and files of ids."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from gatas.errors import ConfigError

if TYPE_CHECKING:
    from gatas.inference import View
    from gatas.tasks import Model

RunArgument = typer.Argument(metavar="RUN", help="Folder that `gatas train` wrote, of one seed.")
FewNodesOption = typer.Option(None, "--nodes", metavar="FILE", help="Only the nodes in this table's column of ids.")
NewNodesOption = typer.Option(
    None, "--new-nodes", metavar="FILE", help="Nodes never seen: ids and features, in columns as in training."
)
NewEdgesOption = typer.Option(None, "--new-edges", metavar="FILE", help="Their edges: source, target[, type][, weight].")
NewEmbeddingsOption = typer.Option("mean", "--new-embeddings", help="In place of learned ones: neighbours' mean, or zeros.")
DeviceOption = typer.Option("auto", "--device", help="cpu, cuda, or auto: a GPU where there is one.")

Rule = Literal["mean", "zeros"]


def load_model(run: Path, data_dir: Path | None, device: str) -> "Model":
    """The model of a run, on a device."""
    from gatas.training import load  # torch: seconds that other commands need not wait
    from gatas.training.loop import chosen_device

    where = chosen_device(device)
    return load(run, data_dir=data_dir).to(where)


def load_view(
    model: "Model", nodes: Path | None, new_nodes: Path | None, new_edges: Path | None, rule: Rule
) -> "tuple[View, list[Any] | None]":
    """What the model is asked about, and the ids it is asked for: given, or new, or None for all."""
    from gatas.inference import View, read_new_nodes
    from gatas.inference.columns import read_ids
    from gatas.inference.new_nodes import ids_of_new

    ids = None if nodes is None else read_ids(model, nodes)
    if new_nodes is None and new_edges is None:
        return View(model), ids
    view = read_new_nodes(model, new_nodes, new_edges, embeddings=rule)
    return view, ids_of_new(view) if ids is None else ids


def refuse_with_engine(**given: Any) -> None:
    """Engines are for all nodes."""
    for name, value in given.items():
        if value:
            said = "ids" if name == "ids" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{said} and --engine were given; engines answer for all nodes of a run. Leave one of them out.")


def refuse_both(**given: Any) -> None:
    """Of these options at most one may be given."""
    names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if len(names) > 1:
        raise ConfigError(f"{' and '.join(names)} were given; expected one of them.")
