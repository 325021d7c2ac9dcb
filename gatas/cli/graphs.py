"""A graph named on the command line: a file, a saved folder, or a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatas.errors import GraphError

if TYPE_CHECKING:
    from gatas.datasets import Dataset
    from gatas.graph import Graph

NodesOption = typer.Option(None, "--nodes", help="Node table: id[, graph][, label][, split][, features…].")
ColumnOption = typer.Option([], "--column", help="Name of a column in your file, as source=from or edge_type=relation.")
NodeColumnOption = typer.Option([], "--node-column", help="Name of a column in your node table, as id=name or label=class.")
HeaderOption = typer.Option(True, "--header/--no-header", help="Whether the first line names the columns.")
InverseOption = typer.Option(False, "--inverse", help="Give every edge type an inverse type of its own.")
UndirectedOption = typer.Option(False, "--undirected", help="Add the reverse of every edge under the same type.")
DataDirOption = typer.Option(None, "--data-dir", help="Where named data sets are kept.")


def load_graph(named: str, *source: Any) -> "Graph":
    """Read the graph that was named; `source` are the other arguments of `load_named`."""
    from gatas.datasets import Dataset

    found = load_named(named, *source)
    return found.graph if isinstance(found, Dataset) else found


def load_named(
    named: str,
    nodes: Path | None,
    columns: list[str],
    node_columns: list[str],
    header: bool,
    inverse: bool,
    undirected: bool,
    data_dir: Path | None,
) -> "Graph | Dataset":
    """Read what was named: a data set where the name stands for one, else a graph."""
    from gatas.datasets import NAMES, load_dataset, open_dataset  # numba and pyarrow: what no command's help need wait for
    from gatas.graph import read_graph

    path, stored = Path(named), is_stored(named)
    known = not path.exists() and named in NAMES
    given = [flag for flag, value in (("--nodes", nodes), ("--column", columns), ("--node-column", node_columns),
                                      ("--no-header", not header), ("--inverse", inverse), ("--undirected", undirected))
             if value]  # fmt: skip
    if (stored or known) and given:
        what = "a saved graph" if stored else "a data set"
        raise GraphError(f"{named} is {what}, which is taken as it is; {', '.join(given)} belong to edge files.")
    if stored:
        return open_stored(path)
    if path.suffix in (".yaml", ".yml"):
        from gatas.training import load_config  # torch: seconds that other files need not wait

        return open_dataset(load_config(path).data, data_dir)
    if known:
        return load_dataset(named, data_dir)
    return read_graph(
        path,
        nodes,
        columns=column_names(columns),
        node_columns=column_names(node_columns),
        header=header,
        inverse=inverse,
        undirected=undirected,
    )


def open_stored(path: Path) -> "Graph | Dataset":
    """Map a store: a data set, or a graph alone."""
    from gatas.datasets.saved import dataset_of
    from gatas.graph.saved import KINDS, graph_of
    from gatas.graph.storage import open_store

    store = open_store(path, KINDS)
    return dataset_of(store) if store.parameters.get("task") is not None else graph_of(store)


def is_stored(named: str) -> bool:
    """Whether it is the folder of a saved graph, which is put back if its overwriting was cut short."""
    from gatas.files import recover_overwritten

    recover_overwritten(Path(named))
    return Path(named).is_dir()


def column_names(columns: list[str]) -> dict[str, str]:
    for column in columns:
        if "=" not in column:
            raise GraphError(f"--column {column!r} should read ours=yours, such as source=from.")
    return dict(column.split("=", 1) for column in columns)
