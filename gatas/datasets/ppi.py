"""Protein interactions in 24 tissues, inductive: 20 graphs to train on, 2 to validate, 2 to test."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.dataset import Dataset
from gatas.datasets.targets import SPLITS
from gatas.errors import DatasetError
from gatas.graph import Graph
from gatas.graph.inputs import Floats

SPLIT_OF_TISSUE = np.repeat([0, 1, 2], [20, 2, 2])
REBUILT = "rebuilt labels: graph and features are the released ones, about 1 % of the label cells may differ"


def read_arrays(name: str, folder: Path) -> Dataset:
    """Read `ppi_graph_feats.npz` and `ppi_labels_rebuilt.npz`: exact graph, standardised features, rebuilt labels."""
    return _read(name, folder, _standardised)


def read_unscaled(name: str, folder: Path) -> Dataset:
    """Read the same files, with features as they were released."""
    return _read(name, folder, lambda features, _: features.astype(np.float32))


def _read(name: str, folder: Path, scaled: Callable[[NDArray[Any], NDArray[np.bool_]], Floats]) -> Dataset:
    labels_file = folder / "ppi_labels_rebuilt.npz"
    if not labels_file.is_file():
        raise DatasetError(f"{labels_file} is missing beside ppi_graph_feats.npz.")
    with _loaded(folder / "ppi_graph_feats.npz") as arrays, _loaded(labels_file) as labelled:
        _expect(arrays, ("edges", "feats", "graph", "gene_row"), folder / "ppi_graph_feats.npz")
        _expect(labelled, ("labels", "go_term"), labels_file)
        tissue, edges = arrays["graph"].astype(np.int64), arrays["edges"]
        return Dataset.for_nodes(
            Graph.from_edges(edges[:, 0], edges[:, 1], num_nodes=len(tissue), undirected=True),
            labelled["labels"][arrays["gene_row"]],
            {split: SPLIT_OF_TISSUE[tissue] == number for number, split in enumerate(SPLITS)},
            class_names=tuple(str(term) for term in labelled["go_term"]),
            features=scaled(arrays["feats"], SPLIT_OF_TISSUE[tissue] == 0),
            graph_id=tissue,
            name=name,
            note=REBUILT,
        )


def read_released(name: str, folder: Path) -> Dataset:
    """Read the files of `ppi.zip` by PyG. It writes what it made of them: not beside them, unless it did so before."""
    import torch

    from gatas.datasets.pyg import MASKS, dataset_from_pyg
    from gatas.graph.pyg import import_pyg

    pyg = import_pyg("datasets")
    with TemporaryDirectory() as scratch:
        (Path(scratch) / "raw").symlink_to((folder / "raw").absolute())
        root = folder if (folder / "processed").is_dir() else scratch
        try:
            parts = [list(pyg.PPI(str(root), split=split)) for split in ("train", "val", "test")]
        except (OSError, ValueError, KeyError, IndexError, RuntimeError) as error:
            raise DatasetError(f"{folder} does not hold the files of ppi.zip: {error}. Restore them.") from error
    for attribute, part in zip(MASKS.values(), parts, strict=True):
        for data in (data for some in parts for data in some):
            data[attribute] = torch.full((data.num_nodes,), any(data is own for own in part))
    return dataset_from_pyg([data for part in parts for data in part], direction="undirected", name=name)


def download(name: str, cache: Path) -> None:
    """Download the files through PyG's own loader."""
    from gatas.graph.pyg import import_pyg

    import_pyg("datasets").PPI(str(cache / name))


def _standardised(features: NDArray[Any], training: NDArray[np.bool_]) -> Floats:
    """Give features mean 0 and deviation 1 over the training nodes, as the common form of this data has it."""
    mean, deviation = features[training].mean(axis=0), features[training].std(axis=0)
    scaled: Floats = ((features - mean) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)
    return scaled


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{path} could not be read: {error}. Restore it from a copy.") from error


def _expect(arrays: Mapping[str, Any], names: tuple[str, ...], path: Path) -> None:
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DatasetError(f"{path} lacks the arrays {', '.join(missing)}.")
