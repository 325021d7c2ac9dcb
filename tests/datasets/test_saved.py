"""Saved data sets: graph, node table and targets come back as they were, and damage is refused."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from gatas.datasets import Dataset, Pairs
from gatas.datasets.negatives import Pools
from gatas.datasets.saved import data_fingerprint
from gatas.errors import StoreError
from gatas.graph import Graph
from gatas.graph.saved import graph_fingerprint
from tests.graph.damage import damaged_at_every_seventh_byte, flip, forge, is_mapped, set_at

FEATURES = np.array([[0, 1.5], [2, 0], [0, 0], [3, 4]], np.float32)


def people(**settings) -> Graph:
    return Graph.from_edges(
        [0, 0, 1, 2, 0],
        [1, 1, 0, 3, 0],
        [0, 0, 1, 0, 1],
        weight=[0.5, 1.5, 2.0, 4.0, 1.0],
        node_ids=["ann", "böb", "", "日本"],
        edge_type_names=["likes", "knows"],
        **settings,
    )


def classes(**changes: Any) -> Dataset:
    given: dict[str, Any] = {
        "labels": np.array([0, 1, -1, 1]),
        "splits": {"train": [0, 1], "test": [3]},
        "class_names": ("cat", "dog"),
        "features": FEATURES,
        "node_type": [0, 0, 1, 1],
        "node_type_names": ("person", "place"),
        "graph_id": [0, 0, 1, 1],
        "name": "mine",
        "note": "by hand",
    }
    return Dataset.for_nodes(people(), **(given | changes))


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def links(*, ends: bool) -> Dataset:
    splits = {"train": pairs((0, 0, 1, 1), (1, 1, 0, 1)), "test": pairs((0, 1, 3, 1), (1, 0, 3, 0))}
    pools = Pools.of([np.array([0, 1]), np.array([1])]), Pools.of([np.array([1, 3]), np.array([0, 2, 3])])
    return Dataset.for_links(people(inverse=True), splits, ["likes", "knows"], ends=pools if ends else None, name="social")


def saved(dataset, folder, *, verify=False):
    dataset.save(folder)
    opened = Dataset.open(folder, verify=verify)
    assert graph_fingerprint(opened.graph) == graph_fingerprint(dataset.graph)
    assert data_fingerprint(opened) == data_fingerprint(dataset)
    assert (opened.name, opened.note, opened.task, opened.names) == (dataset.name, dataset.note, dataset.task, dataset.names)
    assert (opened.store, opened.mapped, dataset.mapped) == (folder, True, False)
    assert list(opened.splits) == list(dataset.splits)
    return opened


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("sparse_features", [False, True])
def test_classes_of_nodes_come_back_as_they_were_saved(tmp_path, sparse_features, verify):
    dataset = classes(features=sparse.csr_array(FEATURES) if sparse_features else FEATURES)
    opened = saved(dataset, tmp_path / "data", verify=verify)
    assert (opened.names, opened.note, opened.task) == (("cat", "dog"), "by hand", "node classification")
    assert opened.node_targets.labels.tolist() == [0, 1, -1, 1]
    assert {name: split.tolist() for name, split in opened.splits.items()} == {"train": [0, 1], "test": [3]}
    features = opened.features
    assert isinstance(features, sparse.csr_array) == sparse_features
    assert (features if isinstance(features, np.ndarray) else features.toarray()).tolist() == FEATURES.tolist()
    assert opened.nodes.node_type is not None and opened.nodes.node_type.tolist() == [0, 0, 1, 1]
    assert opened.nodes.node_type_names == ("person", "place")
    assert opened.nodes.graph_id is not None and opened.nodes.graph_id.tolist() == [0, 0, 1, 1]
    assert opened.graph.id_of(3) == "日本" and opened.graph.num_repeated == 1


def test_several_labels_a_node_come_back(tmp_path):
    labels = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 0], [1, 1, 0]])
    opened = saved(classes(labels=labels, class_names=("a", "b", "c")), tmp_path / "data", verify=True)
    assert opened.task == "multi-label node classification"
    assert opened.node_targets.labels.tolist() == labels.tolist()


def test_nodes_of_which_nothing_is_known_come_back(tmp_path):
    dataset = classes(features=None, node_type=None, node_type_names=(), graph_id=None, class_names=())
    opened = saved(dataset, tmp_path / "data", verify=True)
    assert (opened.features, opened.nodes.node_type, opened.nodes.graph_id) == (None, None, None)
    assert (opened.nodes.num_nodes, opened.names) == (4, ("0", "1"))


@pytest.mark.parametrize("ends", [False, True])
def test_links_come_back_as_they_were_saved(tmp_path, ends):
    dataset = links(ends=ends)
    opened = saved(dataset, tmp_path / "data", verify=True)
    assert opened.graph.inverse_of == (2, 3, 0, 1)
    for name, asked in dataset.splits.items():
        for column in ("source", "edge_type", "target", "label"):
            assert getattr(opened.splits[name], column).tolist() == getattr(asked, column).tolist()
    expected, found = dataset.link_targets.ends, opened.link_targets.ends
    assert (found is None) == (not ends)
    for one, other in zip(expected or (), found or (), strict=True):
        assert [getattr(one, column).tolist() for column in ("nodes", "starts", "sizes")] == [
            getattr(other, column).tolist() for column in ("nodes", "starts", "sizes")
        ]


@pytest.mark.parametrize("sparse_features", [False, True])
def test_opened_arrays_are_read_only_maps_and_not_copies(tmp_path, sparse_features):
    classes(features=sparse.csr_array(FEATURES) if sparse_features else FEATURES).save(tmp_path / "data")
    dataset = Dataset.open(tmp_path / "data")
    features = dataset.features
    assert features is not None
    parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
    arrays = [dataset.graph.indptr, dataset.graph.weight, dataset.nodes.graph_id, dataset.nodes.node_type]
    for array in (*arrays, *parts, dataset.node_targets.labels, dataset.splits["train"]):
        assert isinstance(array, np.ndarray) and is_mapped(array) and not array.flags.writeable


def test_the_pairs_of_an_opened_data_set_are_maps(tmp_path):
    links(ends=True).save(tmp_path / "data")
    train = Dataset.open(tmp_path / "data").splits["train"]
    assert all(is_mapped(column) for column in (train.source, train.edge_type, train.target, train.label))


def test_a_graph_is_opened_from_a_data_set_but_no_data_set_from_a_graph(tmp_path):
    classes().save(tmp_path / "data")
    assert graph_fingerprint(Graph.open(tmp_path / "data", verify=True)) == graph_fingerprint(people())
    people().save(tmp_path / "graph")
    with pytest.raises(StoreError, match="graph holds a graph without labels or links, so nothing can be learned"):
        Dataset.open(tmp_path / "graph")


def test_an_existing_folder_is_refused_unless_it_is_to_be_overwritten(tmp_path):
    dataset = classes()
    dataset.save(tmp_path / "data")
    with pytest.raises(StoreError, match=r"exists already. Choose another folder, or overwrite it"):
        dataset.save(tmp_path / "data")
    links(ends=False).save(tmp_path / "data", overwrite=True)
    assert Dataset.open(tmp_path / "data", verify=True).task == "link prediction"


def test_a_data_set_can_be_saved_over_the_folder_it_is_mapped_from(tmp_path):
    classes().save(tmp_path / "data")
    opened = Dataset.open(tmp_path / "data")
    before = data_fingerprint(opened)
    opened.save(tmp_path / "data", overwrite=True)
    assert data_fingerprint(Dataset.open(tmp_path / "data", verify=True)) == before == data_fingerprint(opened)


def test_equal_data_has_equal_fingerprints_whatever_it_is_called_and_other_data_has_not():
    assert data_fingerprint(classes()) == data_fingerprint(classes(name="other", note=""))
    assert data_fingerprint(classes()) != data_fingerprint(classes(labels=np.array([1, 0, -1, 1])))
    assert data_fingerprint(classes()) != data_fingerprint(classes(class_names=("dog", "cat")))
    assert data_fingerprint(links(ends=True)) != data_fingerprint(links(ends=False))


@pytest.fixture
def folder(tmp_path):
    classes().save(tmp_path / "data")
    return tmp_path / "data"


def data_files():
    return sorted(f"{name}.npy" for name in ("graph_id", "labels", "node_type", "features", "split-0", "split-1"))


def test_every_file_of_a_data_set_is_damaged_below_or_is_the_graphs(folder, tmp_path):
    people().save(tmp_path / "graph")
    of_graph = {path.name for path in (tmp_path / "graph").glob("*.npy")}
    assert data_files() == sorted({path.name for path in folder.glob("*.npy")} - of_graph)


@pytest.mark.parametrize("name", data_files())
def test_a_file_truncated_anywhere_is_refused(folder, name):
    content = (folder / name).read_bytes()
    for sixteenth in range(16):
        (folder / name).write_bytes(content[: len(content) * sixteenth // 16])
        with pytest.raises(StoreError, match=name):
            Dataset.open(folder)


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize("name", data_files())
def test_a_flipped_byte_is_refused_when_verified_and_never_crashes_when_not(folder, name):
    for _ in damaged_at_every_seventh_byte(folder / name):
        with pytest.raises(StoreError, match=rf"{name} does not have the sha256"):
            Dataset.open(folder, verify=True)
        try:
            opened = Dataset.open(folder)
        except StoreError:
            pass  # most are noticed without reading every byte
        else:
            data_fingerprint(opened)
    assert Dataset.open(folder, verify=True)


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
@pytest.mark.parametrize("part", ["indptr", "column", "value"])
def test_damaged_sparse_features_never_crash(tmp_path, part):
    classes(features=sparse.csr_array(FEATURES)).save(tmp_path / "data")
    path = tmp_path / "data" / f"features_{part}.npy"
    for at in range(path.stat().st_size):
        flip(path, at, 0x80)
        try:
            features = Dataset.open(tmp_path / "data").features
        except StoreError:
            pass
        else:
            assert isinstance(features, sparse.csr_array) and features.toarray().shape == (4, 2)
        flip(path, at, 0x80)


@pytest.mark.filterwarnings("ignore::gatas.errors.GatasWarning")
def test_damaged_links_and_ends_never_crash(tmp_path):
    folder = tmp_path / "data"
    links(ends=True).save(folder)
    for path in sorted([*folder.glob("split-*.npy"), *folder.glob("negative_*.npy")]):
        for _ in damaged_at_every_seventh_byte(path):
            with pytest.raises(StoreError, match=rf"{path.name} does not have the sha256"):
                Dataset.open(folder, verify=True)
            try:
                opened = Dataset.open(folder)
            except StoreError:
                continue
            data_fingerprint(opened)
            for pools in opened.link_targets.ends or ():
                pools.draw(np.flatnonzero(pools.sizes), np.random.default_rng(0))


@pytest.mark.parametrize("name", data_files())
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(StoreError, match=rf"{name} is missing. Restore it"):
        Dataset.open(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("kind", value="transitions"), "holds 'transitions', not 'dataset' or 'graph'"),
        (lambda manifest: manifest["files"].pop("split-0.npy"), "lists no split-0.npy"),
        (lambda manifest: manifest["files"].pop("labels.npy"), "lists no labels.npy"),
        (lambda manifest: manifest["parameters"].pop("names"), "lacks the parameter 'names'"),
        (lambda manifest: manifest["parameters"].pop("node_type_names"), "lacks the parameter 'node_type_names'"),
        (set_at("parameters", "splits", value=None), "is damaged"),
        (set_at("parameters", "names", value=["cat"]), "is damaged"),
        (set_at("parameters", "task", value="link prediction"), "lists no split-0-source.npy"),
        (set_at("parameters", "encoding", value={"what": 1}), "the encoding of columns in .* has format None"),
        (set_at("parameters", "inverse_of", value=[1, 1]), "is damaged"),
    ],
)
def test_a_forged_manifest_is_refused(folder, change, message):
    forge(folder, change)
    with pytest.raises(StoreError, match=message):
        Dataset.open(folder)


def test_a_store_of_gatas_0_1_is_refused_in_one_line(folder):
    forge(folder, set_at("format", value=1))
    with pytest.raises(StoreError, match=r"has format 1, .*written by gatas 0.1: write it again, with `gatas ingest`") as error:
        Dataset.open(folder)
    assert "\n" not in str(error.value)
