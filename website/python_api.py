"""The reference of the Python interface: the public names, from their docstrings."""

GROUPS = {
    "Graphs and data": (
        "Graph", "read_graph", "from_pyg", "from_networkx", "to_networkx", "to_pyg", "Dataset", "read_dataset", "load_dataset",
        "NodeTable", "NodeTargets", "NumberTargets", "LinkTargets", "Pairs",
    ),
    "Models, training and tuning": (
        "NodeClassifier", "NodeRegressor", "LinkPredictor", "fit", "fit_many", "tune", "Config", "load_config", "Run",
        "GatasClassifier",
    ),
    "Predictions and explanations": ("load", "Predictor"),
    "Layers": ("Transitions", "OnDemand", "NeighbourSampler", "Neighbourhood", "Encoder"),
    "Errors": (
        "GatasError", "GraphError", "DatasetError", "TransitionError", "ConfigError", "TrainingError", "GatasWarning",
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
        parts += [f"## {title}", *(f"::: gatas.{name}\n    options:\n      heading_level: 3" for name in names)]
    return "\n\n".join(parts)
