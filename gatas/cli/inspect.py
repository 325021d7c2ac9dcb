"""`gatas inspect`: what a graph looks like before anything is computed."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatas.cli.graphs import (
    ColumnOption,
    DataDirOption,
    HeaderOption,
    InverseOption,
    NodeColumnOption,
    NodesOption,
    UndirectedOption,
    column_names,
    load_named,
)
from gatas.cli.output import plain_table, print_json, print_table
from gatas.errors import TransitionError

if TYPE_CHECKING:
    from gatas.datasets import Dataset
    from gatas.datasets.encoding import Encoding
    from gatas.graph import Graph, Summary
    from gatas.transitions import Cost

MOST_LINES = 40
"""Columns of features that are listed one by one."""


def inspect(
    edges: str = typer.Argument(help="Edge file (.parquet, .csv, .tsv, also .gz), saved graph folder, or data set name."),
    nodes: Path | None = NodesOption,
    column: list[str] = ColumnOption,
    node_column: list[str] = NodeColumnOption,
    header: bool = HeaderOption,
    inverse: bool = InverseOption,
    undirected: bool = UndirectedOption,
    data_dir: Path | None = DataDirOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show counts, degrees by type, components, oddities, and what its transitions would cost."""
    from gatas.datasets import Dataset
    from gatas.graph import summarise

    named = load_named(edges, nodes, column, node_column, header, inverse, undirected, data_dir)
    graph = named.graph if isinstance(named, Dataset) else named
    facts = facts_of_dataset(named) if isinstance(named, Dataset) else facts_of_table(nodes, node_column)
    summary, costs = summarise(graph), {steps: _cost(graph, steps) for steps in (1, 2, 3)}
    if json:
        content = asdict(summary) | asdict(facts)
        print_json(content | {"transitions": {str(steps): _as_json(cost) for steps, cost in costs.items()}})
    else:
        print_summary(edges, summary, facts)
        if isinstance(named, Dataset) and named.encoding is not None:
            print_features(named.encoding)
        print_costs(costs)


@dataclass(frozen=True)
class NodeFacts:
    """What is known about nodes besides their edges, in numbers."""

    num_graphs: int = 1
    feature_size: int = 0
    num_classes: int = 0
    splits: dict[str, int] = field(default_factory=dict)


def facts_of_dataset(dataset: "Dataset") -> NodeFacts:
    """Count features, classes and splits of a data set."""
    from gatas.datasets import NodeTargets

    classes = len(dataset.names) if isinstance(dataset.targets, NodeTargets) else 0
    splits = {name: len(rows) for name, rows in dataset.splits.items()}
    return NodeFacts(dataset.nodes.num_graphs, dataset.nodes.num_features, classes, splits)


def facts_of_table(nodes: Path | None, columns: list[str]) -> NodeFacts:
    """Count features, classes and splits of a node table; none where there is no table."""
    from gatas.datasets.node_columns import features_of, labels_of, splits_of
    from gatas.graph.columns import table_columns
    from gatas.graph.tables import codes_of, read_table

    if nodes is None:
        return NodeFacts()
    table = read_table(nodes, table_columns("nodes", column_names(columns)))
    features, (_, names) = features_of(table, None), labels_of(table)
    graphs = len(codes_of(table, "graph")[1]) if "graph" in table.columns else 1
    splits = {name: len(rows) for name, rows in splits_of(table).items()}
    return NodeFacts(graphs, 0 if features is None else features.shape[1], len(names), splits)


def print_summary(name: str, summary: "Summary", of_nodes: NodeFacts) -> None:
    """Print counts, then degrees by type."""
    facts = plain_table("", "#")
    facts.show_header = False
    lines = {
        "nodes": summary.num_nodes,
        "edges": summary.num_edges,
        "edge types": len(summary.degrees),
        "graphs": of_nodes.num_graphs,
        "components": summary.num_components,
        "largest component": summary.largest_component,
        "isolated nodes": summary.num_isolated,
        "dangling nodes (no way out)": summary.num_dangling,
        "self edges (kept, never walked)": summary.num_self_edges,
        "repeated edges (collapsed)": summary.num_repeated,
        "features": of_nodes.feature_size,
        "classes": of_nodes.num_classes,
        **{f"{split}": count for split, count in of_nodes.splits.items()},
    }
    for label, count in lines.items():
        facts.add_row(label, f"{count:,}")
    print_table(name, facts)
    degrees = plain_table("edge type", "edges#", "sources#", "targets#", "mean#", "median#", "90 %#", "99 %#", "max#")
    for row in summary.degrees:
        numbers = (row.num_edges, row.num_sources, row.num_targets, row.mean, row.median, row.p90, row.p99, row.max)
        degrees.add_row(row.edge_type, *(f"{n:,.1f}" if isinstance(n, float) else f"{n:,}" for n in numbers))
    print_table("Degrees by type, of nodes that have any", degrees)


def print_features(encoding: "Encoding") -> None:
    """Print how the columns of the node table became features."""
    table = plain_table("column", "encoded as", "columns#")
    for column in encoding.columns[:MOST_LINES]:
        table.add_row(column.name, column.described, f"{column.width:,}")
    if len(encoding.columns) > MOST_LINES:
        rest = encoding.columns[MOST_LINES:]
        table.add_row(f"… {len(rest):,} more", "", f"{sum(column.width for column in rest):,}")
    print_table("Features", table)


def print_costs(costs: "dict[int, Cost | None]") -> None:
    """Print upper bounds for the transitions of every node."""
    from gatas.transitions import readable_bytes

    table = plain_table("steps C#", "entries, at most#", "per node#", "memory, at most#")
    for steps, cost in costs.items():
        if cost is None:
            table.add_row(str(steps), "too many paths for 63-bit ids", "", "")
            continue
        per_node = cost.num_entries / len(cost.walks)
        table.add_row(str(steps), f"{cost.num_entries:,.0f}", f"{per_node:,.0f}", readable_bytes(cost.num_bytes))
    print_table("Transitions, if built", table)


def _cost(graph: "Graph", steps: int) -> "Cost | None":
    from gatas.transitions import estimate_cost

    try:
        return estimate_cost(graph, steps)
    except TransitionError:
        return None


def _as_json(cost: "Cost | None") -> dict[str, Any] | None:
    return None if cost is None else {"max_entries": cost.num_entries, "max_bytes": cost.num_bytes, "walks": cost.num_walks}
