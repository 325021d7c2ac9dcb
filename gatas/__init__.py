"""Learn node representations from a sample of typed multi-step neighbours.

Names are loaded when first used, so that `import gatas` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gatas.datasets import Dataset, Pairs, load_dataset
    from gatas.errors import DatasetError, GatasError, GatasWarning, GraphError, TransitionError
    from gatas.graph import Graph, read_graph
    from gatas.graph.networkx import from_networkx, to_networkx
    from gatas.graph.pyg import from_pyg, to_pyg
    from gatas.nn import Encoder
    from gatas.sampling import Neighbourhood, NeighbourSampler
    from gatas.transitions import OnDemand, Transitions

_HOMES = {
    "Dataset": "gatas.datasets",
    "DatasetError": "gatas.errors",
    "Encoder": "gatas.nn",
    "GatasError": "gatas.errors",
    "GatasWarning": "gatas.errors",
    "Graph": "gatas.graph",
    "GraphError": "gatas.errors",
    "NeighbourSampler": "gatas.sampling",
    "Neighbourhood": "gatas.sampling",
    "OnDemand": "gatas.transitions",
    "Pairs": "gatas.datasets",
    "TransitionError": "gatas.errors",
    "Transitions": "gatas.transitions",
    "from_networkx": "gatas.graph.networkx",
    "from_pyg": "gatas.graph.pyg",
    "load_dataset": "gatas.datasets",
    "read_graph": "gatas.graph",
    "to_networkx": "gatas.graph.networkx",
    "to_pyg": "gatas.graph.pyg",
}

__all__ = [
    "Dataset",
    "DatasetError",
    "Encoder",
    "GatasError",
    "GatasWarning",
    "Graph",
    "GraphError",
    "NeighbourSampler",
    "Neighbourhood",
    "OnDemand",
    "Pairs",
    "TransitionError",
    "Transitions",
    "from_networkx",
    "from_pyg",
    "load_dataset",
    "read_graph",
    "to_networkx",
    "to_pyg",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gatas' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
