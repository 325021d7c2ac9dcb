"""Cora, Citeseer and Pubmed with the public split, read by PyG."""

import pickle
from pathlib import Path

from gatas.datasets.dataset import Dataset
from gatas.errors import DatasetError

FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
CLASSES = {
    "cora": (
        "Theory",
        "Reinforcement Learning",
        "Genetic Algorithms",
        "Neural Networks",
        "Probabilistic Methods",
        "Case Based",
        "Rule Learning",
    ),
    "citeseer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
    "pubmed": ("experimental diabetes", "diabetes type 1", "diabetes type 2"),
}


def read(name: str, folder: Path) -> Dataset:
    """Read the raw files; nothing is written beside them."""
    from gatas.datasets.pyg import dataset_from_pyg
    from gatas.graph.pyg import import_pyg

    pyg = import_pyg("io")
    try:
        data = pyg.read_planetoid_data(str(folder), name)
    except (OSError, EOFError, ValueError, IndexError, pickle.UnpicklingError) as error:
        raise DatasetError(f"{folder} does not hold the files ind.{name}.* as published: {error}. Restore them.") from error
    return dataset_from_pyg(data, direction="undirected", class_names=CLASSES[name], name=name)


def download(name: str, cache: Path) -> None:
    """Download the files through PyG's own loader."""
    from gatas.graph.pyg import import_pyg

    import_pyg("datasets").Planetoid(str(cache / name), FOLDERS[name])
