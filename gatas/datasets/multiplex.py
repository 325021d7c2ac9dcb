"""The multiplex link prediction sets of GATNE: lines `type source target`, in valid.txt and test.txt with a label."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.dataset import Dataset
from gatas.datasets.targets import Pairs
from gatas.errors import DatasetError
from gatas.graph import Graph, NodeIds

HOW_TO_GET = (
    "Copy train.txt, valid.txt and test.txt of data/twitter from the GATNE repository (THUDM/GATNE) into a folder named "
    "twitter there."
)
HOW_TO_GET_YOUTUBE = (
    "Its train.txt is in data/youtube of the GATNE repository (THUDM/GATNE); youtube-lite is a smaller stand-in made of "
    "valid.txt and test.txt alone."
)
HOW_TO_GET_LITE = "Expected youtube/lite with train.txt, valid.txt and test.txt."
LITE_NOTE = "a stand-in about seven times sparser than YouTube: not to be set beside published YouTube results"


def read(name: str, folder: Path) -> Dataset:
    """Read the lines of all splits: those of training are the graph, each type with an inverse of its own."""
    lines = {split: _read_lines(folder / f"{split}.txt", 3 if split == "train" else 4) for split in ("train", "valid", "test")}
    ids = np.unique(np.concatenate([part[:, 1:3].ravel() for part in lines.values()]))
    types = np.unique(np.concatenate([part[:, 0] for part in lines.values()]))
    type_names = tuple(str(number) for number in types)
    splits = {split: _pairs(part, ids, types) for split, part in lines.items()}
    graph = Graph.from_edges(
        splits["train"].source,
        splits["train"].target,
        splits["train"].edge_type,
        num_nodes=len(ids),
        inverse=True,
        node_ids=NodeIds(ids),
        edge_type_names=type_names,
    )
    note = LITE_NOTE if name == "youtube-lite" else ""
    return Dataset.for_links(graph, splits, type_names, name=name, note=note)


def _read_lines(path: Path, num_columns: int) -> NDArray[np.int64]:
    expected = f"{num_columns} whole numbers a line: type, source, target{', label' if num_columns == 4 else ''}"
    try:
        if not path.stat().st_size:
            raise ValueError("it is empty")
        lines: NDArray[np.int64] = np.loadtxt(path, dtype=np.int64, ndmin=2)
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} could not be read ({error}); expected {expected}.") from error
    if lines.shape[1] != num_columns:
        raise DatasetError(f"{path} has {lines.shape[1]} columns; expected {expected}.")
    if num_columns == 4 and not np.isin(lines[:, 3], (0, 1)).all():
        row = int(np.argmin(np.isin(lines[:, 3], (0, 1))))
        raise DatasetError(f"{path}, row {row + 1}: label is {lines[row, 3]}; expected 1 for a link, 0 for a negative.")
    return lines


def _pairs(lines: NDArray[np.int64], ids: NDArray[Any], types: NDArray[Any]) -> Pairs:
    label = lines[:, 3] if lines.shape[1] == 4 else np.ones(len(lines))
    return Pairs(
        np.searchsorted(ids, lines[:, 1]), np.searchsorted(types, lines[:, 0]), np.searchsorted(ids, lines[:, 2]),
        label.astype(np.int8),
    )  # fmt: skip
