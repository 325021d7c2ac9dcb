"""From the ids and type names that users know to indices and numbers, and back."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from gatas.errors import GraphError
from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints


def indices_of(graph: Graph | ExtendedGraph, ids: Any) -> Ints:
    """Return the indices of nodes given by id: a list, an array, a column, or a single id."""
    wanted = listed(ids)
    if graph.node_ids is not None:
        return graph.node_ids.indices(wanted) if wanted else np.empty(0, np.int64)
    return np.array([graph.index_of(one) for one in wanted], np.int64)


def ids_of(graph: Graph | ExtendedGraph, nodes: Ints) -> Any:
    """Return the ids of nodes given by index, as an Arrow column."""
    if graph.node_ids is None:
        return pa.array(nodes, pa.int64())
    return pa.array(graph.node_ids.take(nodes), pa.int64() if graph.node_ids.are_integers else pa.string())


def types_of(names: Sequence[str], given: Any, count: int, what: str) -> Ints:
    """Return numbers of `count` types given by name; one for all, or one for each."""
    wanted = [str(name) for name in listed(given)]
    wanted = wanted * count if len(wanted) == 1 else wanted
    if len(wanted) != count:
        raise GraphError(f"{len(wanted)} types were given for {count} links. Give one for all, or one for each.")
    places = {name: place for place, name in enumerate(names)}
    for name in wanted:
        if name not in places:
            near = get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            known = ", ".join(map(repr, names[:20])) + (" …" if len(names) > 20 else "")
            raise GraphError(f"there is no {what} {name!r}.{hint} The model knows {known}.")
    return np.array([places[name] for name in wanted], np.int64)


def listed(values: Any) -> list[Any]:
    """Return ids as a list; a single id is a list of one."""
    if isinstance(values, str | int | np.integer):
        return [values]
    for name in ("to_pylist", "tolist"):
        if hasattr(values, name):
            found = getattr(values, name)()
            return found if isinstance(found, list) else [found]
    try:
        return list(values)
    except TypeError:
        raise GraphError(f"ids came as a {type(values).__name__}; expected a list of ids.") from None
