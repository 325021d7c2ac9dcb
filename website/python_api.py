"""The reference of the Python interface: the public names, from their docstrings."""

from dataclasses import is_dataclass

import gatas

GROUPS = {
    "Graphs and data": (
        "Graph", "read_graph", "from_pyg", "from_networkx", "to_networkx", "to_pyg", "Dataset", "read_dataset", "load_dataset",
        "NodeTable", "NodeTargets", "NumberTargets", "LinkTargets", "Pairs",
    ),
    "Models, training and tuning": (
        "NodeClassifier", "NodeRegressor", "LinkPredictor", "fit", "fit_many", "tune", "Config", "load_config", "Limit", "Run",
        "Runs", "GatasClassifier",
    ),
    "Predictions and explanations": (
        "load", "Predictor", "Prediction", "NumberPrediction", "LinkPrediction", "Explanation", "LinkExplanation",
    ),
    "Layers": ("Transitions", "OnDemand", "NeighbourSampler", "Neighbourhood", "Encoder"),
    "Errors": (
        "GatasError", "GraphError", "DatasetError", "TransitionError", "ConfigError", "TrainingError", "MissingExtraError",
        "GatasWarning",
    ),
}  # fmt: skip
"""All names of `gatas.__all__`, in the order in which a reader meets them."""
INTRODUCTION = """# Python

The public names, all of them in `gatas`. They are loaded when first used, so `import gatas` costs nothing.
"""


def page() -> str:
    """Name every public object; mkdocstrings reads its docstrings."""
    parts = [INTRODUCTION]
    for title, names in GROUPS.items():
        parts += [f"## {title}", *map(_named, names)]
    return "\n\n".join(parts)


def _named(name: str) -> str:
    """Name an object; of a dataclass all fields are listed, also those that say all by their names."""
    fields = "\n      show_if_no_docstring: true" if is_dataclass(getattr(gatas, name)) else ""
    return f"::: gatas.{name}\n    options:\n      heading_level: 3{fields}"
