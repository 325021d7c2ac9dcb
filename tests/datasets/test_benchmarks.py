"""The paper's data sets hold what Table 4 says. Run with GATAS_DATA set to the folder that holds them."""

import os
from pathlib import Path

import numpy as np
import pytest

from gatas.datasets import load_dataset
from gatas.errors import DatasetError
from gatas.graph import summarise


@pytest.fixture(scope="module")
def load():
    """Load a set from $GATAS_DATA once; skip where it is not there, and see that nothing is written there."""
    root, loaded = os.environ.get("GATAS_DATA"), {}
    if not root:
        pytest.skip("GATAS_DATA is not set; set it to the folder that holds the benchmark data")

    def loading(name):
        folder = Path(root) / name.split("-")[0]
        if not folder.is_dir():
            pytest.skip(f"{folder} is not there")
        if name not in loaded:
            before = sorted(folder.rglob("*"))
            loaded[name] = load_dataset(name, root=root)
            assert sorted(folder.rglob("*")) == before
        return loaded[name]

    return loading


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "train"),
    [
        ("cora", 2708, 5278, 1433, 7, 140),  # 5,429 published, counting repeats and self-loops
        ("citeseer", 3327, 4552, 3703, 6, 120),
        ("pubmed", 19717, 44324, 500, 3, 60),
    ],
)
def test_citation_networks_have_the_published_sizes(load, name, nodes, edges, features, classes, train):
    dataset = load(name)
    graph = dataset.graph
    source, target = graph.source, graph.neighbour
    assert graph.num_nodes == nodes and dataset.task == "node classification" and len(dataset.names) == classes
    assert int((source < target).sum()) == edges == int((source > target).sum())
    assert dataset.features is not None and dataset.features.shape == (nodes, features)
    assert {split: len(chosen) for split, chosen in dataset.splits.items()} == {"train": train, "valid": 500, "test": 1000}
    assert np.bincount(dataset.node_targets.labels[dataset.splits["train"]]).tolist() == [20] * classes
    assert graph.num_edge_types == 1 and dataset.nodes.graph_id is None


def test_citeseer_has_nodes_without_edges_or_features(load):
    dataset = load("citeseer")
    empty = np.flatnonzero(~np.asarray(dataset.features).any(axis=1))
    assert len(empty) == 15 and summarise(dataset.graph).num_isolated == 48


def test_protein_networks_have_the_published_sizes(load):
    dataset = load("ppi")
    graph = dataset.graph
    assert (graph.num_nodes, dataset.nodes.num_graphs, dataset.features.shape, dataset.node_targets.labels.shape) == (
        56_944,
        24,
        (56_944, 50),
        (56_944, 121),
    )
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 44_906, "valid": 6_514, "test": 5_524}
    edges = {name: int(np.diff(graph.indptr)[split].sum()) for name, split in dataset.splits.items()}
    assert edges == {"train": 1_246_382, "valid": 201_647, "test": 164_319}
    assert summarise(graph).num_self_edges == 25_084
    assert "rebuilt labels" in dataset.note


def test_protein_features_are_standardised_over_training_nodes(load):
    features = load("ppi").features[load("ppi").splits["train"]].astype(np.float64)
    assert np.allclose(features.mean(axis=0), 0, atol=1e-4)
    deviation = features.std(axis=0)
    assert np.allclose(deviation[deviation > 0], 1, atol=1e-3) and (deviation == 0).sum() == 1  # one column is constant there


def test_no_protein_graph_is_in_two_splits(load):
    dataset = load("ppi")
    graphs = [set(dataset.nodes.graph_id[split].tolist()) for split in dataset.splits.values()]
    assert [len(part) for part in graphs] == [20, 2, 2] and len(set.union(*graphs)) == 24


@pytest.mark.parametrize(
    ("name", "nodes", "types", "train", "valid", "test"),
    [("twitter", 9_990, 4, 282_115, 16_463, 32_919), ("youtube-lite", 2_000, 5, 167_043, 9_826, 19_650)],
)
def test_multiplex_networks_have_the_published_sizes(load, name, nodes, types, train, valid, test):
    dataset = load(name)
    graph = dataset.graph
    assert (graph.num_nodes, len(dataset.names), graph.num_edge_types) == (nodes, types, 2 * types)
    assert graph.num_edges == 2 * train and graph.num_repeated == 0
    assert len(dataset.splits["train"]) == train and dataset.splits["train"].label.all()
    for split, positives in (("valid", valid), ("test", test)):
        label = dataset.splits[split].label
        assert (int((label == 1).sum()), int((label == 0).sum())) == (positives, positives)


def test_the_smaller_youtube_says_that_it_is_no_benchmark(load):
    assert "not to be set beside published YouTube results" in load("youtube-lite").note


def test_youtube_without_its_training_file_says_what_is_missing(load, monkeypatch, tmp_path):
    load("youtube-lite")
    root = Path(os.environ["GATAS_DATA"])
    if (root / "youtube" / "train.txt").exists():
        pytest.skip("the released training file is there")
    with pytest.raises(DatasetError, match=r"Its train.txt is in data/youtube"):
        load_dataset("youtube", root=root)
