"""Learn node representations from a sample of typed multi-step neighbours.

Names are loaded when first used, so that `import gatas` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # the one place: the package, the command, the server and run folders take it from here

if TYPE_CHECKING:
    from gatas.datasets import (
        Dataset,
        LinkTargets,
        NodeTable,
        NodeTargets,
        NumberTargets,
        Pairs,
        load_dataset,
        read_dataset,
    )
    from gatas.datasets.pyg import to_pyg
    from gatas.errors import (
        ConfigError,
        DatasetError,
        GatasError,
        GatasWarning,
        GraphError,
        MissingExtraError,
        TrainingError,
        TransitionError,
    )
    from gatas.graph import Graph, read_graph
    from gatas.graph.networkx import from_networkx, to_networkx
    from gatas.graph.pyg import from_pyg
    from gatas.inference import (
        Explanation,
        LinkExplanation,
        LinkPrediction,
        NumberPrediction,
        Prediction,
        Predictor,
        Run,
        fit,
        fit_many,
        load,
    )
    from gatas.inference.classifier import GatasClassifier
    from gatas.nn import Encoder
    from gatas.sampling import Neighbourhood, NeighbourSampler
    from gatas.tasks import LinkPredictor, NodeClassifier, NodeRegressor
    from gatas.training import Config, Limit, Runs, load_config
    from gatas.transitions import OnDemand, Transitions
    from gatas.tuning import tune

_HOMES = {
    "Config": "gatas.training",
    "ConfigError": "gatas.errors",
    "Dataset": "gatas.datasets",
    "DatasetError": "gatas.errors",
    "Encoder": "gatas.nn",
    "Explanation": "gatas.inference",
    "GatasClassifier": "gatas.inference.classifier",
    "GatasError": "gatas.errors",
    "GatasWarning": "gatas.errors",
    "Graph": "gatas.graph",
    "GraphError": "gatas.errors",
    "Limit": "gatas.training",
    "LinkExplanation": "gatas.inference",
    "LinkPrediction": "gatas.inference",
    "LinkPredictor": "gatas.tasks",
    "LinkTargets": "gatas.datasets",
    "MissingExtraError": "gatas.errors",
    "NeighbourSampler": "gatas.sampling",
    "Neighbourhood": "gatas.sampling",
    "NodeClassifier": "gatas.tasks",
    "NodeRegressor": "gatas.tasks",
    "NodeTable": "gatas.datasets",
    "NodeTargets": "gatas.datasets",
    "NumberPrediction": "gatas.inference",
    "NumberTargets": "gatas.datasets",
    "OnDemand": "gatas.transitions",
    "Pairs": "gatas.datasets",
    "Prediction": "gatas.inference",
    "Predictor": "gatas.inference",
    "Run": "gatas.inference",
    "Runs": "gatas.training",
    "TrainingError": "gatas.errors",
    "TransitionError": "gatas.errors",
    "Transitions": "gatas.transitions",
    "fit": "gatas.inference",
    "fit_many": "gatas.inference",
    "from_networkx": "gatas.graph.networkx",
    "from_pyg": "gatas.graph.pyg",
    "load": "gatas.inference",
    "load_config": "gatas.training",
    "load_dataset": "gatas.datasets",
    "read_dataset": "gatas.datasets",
    "read_graph": "gatas.graph",
    "to_networkx": "gatas.graph.networkx",
    "to_pyg": "gatas.datasets.pyg",
    "tune": "gatas.tuning",
}

__all__ = [
    "Config",
    "ConfigError",
    "Dataset",
    "DatasetError",
    "Encoder",
    "Explanation",
    "GatasClassifier",
    "GatasError",
    "GatasWarning",
    "Graph",
    "GraphError",
    "Limit",
    "LinkExplanation",
    "LinkPrediction",
    "LinkPredictor",
    "LinkTargets",
    "MissingExtraError",
    "NeighbourSampler",
    "Neighbourhood",
    "NodeClassifier",
    "NodeRegressor",
    "NodeTable",
    "NodeTargets",
    "NumberPrediction",
    "NumberTargets",
    "OnDemand",
    "Pairs",
    "Prediction",
    "Predictor",
    "Run",
    "Runs",
    "TrainingError",
    "TransitionError",
    "Transitions",
    "fit",
    "fit_many",
    "from_networkx",
    "from_pyg",
    "load",
    "load_config",
    "load_dataset",
    "read_dataset",
    "read_graph",
    "to_networkx",
    "to_pyg",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gatas' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))
