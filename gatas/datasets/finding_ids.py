"""Which column of a node table holds the ids that edges name, and which columns of an edge table name them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gatas.errors import GraphError
from gatas.graph.column_types import is_text

ColumnValues = Mapping[str, Any]
LOOKED_AT = 100_000
"""Different values of a column of edges that are looked for among the ids of nodes."""


def found_id(
    edges: ColumnValues,
    nodes: ColumnValues,
    named_ends: Mapping[str, str | None],
    usual: str | None,
    edge_path: Path,
    node_path: Path | None,
) -> str:
    """Return the column of nodes that holds what edges name; of several the one with the usual name, or else the first.

    Ids are different for all nodes, so other columns are not looked at.
    """
    able = [name for name, values in nodes.items() if _is_able(values) and _is_unique(values)]
    ends = [name for name in named_ends.values() if name is not None and name in edges]
    ends = ends if len(ends) == len(named_ends) else []
    shares = {name: _share(edges, nodes[name], ends) for name in sorted(able, key=lambda name: name != usual)}
    best = max(shares.values(), default=0.0)
    if best > (0.5 if usual is not None else 0):
        return next(name for name, share in shares.items() if share == best)
    if usual is not None:
        return usual
    first = _able(edges)
    example = edges[first[0]][0].as_py() if first and len(edges[first[0]]) else None
    listed = ", ".join(map(repr, nodes))
    raise GraphError(
        f"{node_path} has no column of the ids that {edge_path} names, such as {example!r}; its columns are {listed}. Name it "
        "with --set data.id=COLUMN, or add it."
    )


def found_ends(
    edges: ColumnValues, ids: Any, settings: Mapping[str, Any], usual: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return source and target: as given, else columns that hold ids, those with usual names first, else any that could."""
    holding = [name for name in _able(edges) if ids is not None and _held(edges[name], ids) == 1]
    found: dict[str, str | None] = {end: settings[end] for end in usual if settings.get(end) is not None}
    order = (*holding, *_able(edges), *edges)
    for end, name in usual.items():
        other = usual["target" if end == "source" else "source"]
        named = [name] if name is not None and (len(holding) < 2 or name in holding) else []
        free = [one for one in (*named, *(one for one in order if one != other), *order) if one not in found.values()]
        found.setdefault(end, free[0] if free else None)
    return found


def _share(edges: ColumnValues, ids: Any, ends: list[str]) -> float:
    """Return the share of values that are ids, of the ends, or else of the two columns of edges that have the most."""
    shares = sorted((_held(edges[name], ids) for name in (ends or _able(edges))), reverse=True)
    return min(shares[:2], default=0.0) if len(shares) > 1 else 0.0


def _held(values: Any, ids: Any) -> float:
    """Return the share of different values that are ids of nodes."""
    given = pc.unique(values.drop_null())[:LOOKED_AT].cast(pa.string())
    if not len(given):
        return 0.0
    return float(pc.mean(pc.is_in(given, value_set=ids.cast(pa.string())).cast(pa.float64())).as_py())


def _able(columns: ColumnValues) -> list[str]:
    return [name for name, values in columns.items() if _is_able(values)]


def _is_able(values: Any) -> bool:
    return bool(is_text(values) or pa.types.is_integer(values.type))


def _is_unique(values: Any) -> bool:
    return bool(values.null_count == 0 and pc.count_distinct(values).as_py() == len(values))
