"""load_dataset: where data sets are looked for, and what is said when they are not there."""

import json
from typing import Any

import numpy as np
import platformdirs
import pytest

from gatas.datasets import NAMES, load_dataset, open_dataset
from gatas.datasets.config import data_config
from gatas.errors import ConfigError, DatasetError

DOWNLOADED = {"cora": "Planetoid", "citeseer": "Planetoid", "pubmed": "Planetoid", "ppi": "PPI"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no $GATAS_DATA, no network."""

    def unreachable(*args, **kwargs):
        raise ConnectionError("no route to host\nand much more")

    monkeypatch.delenv("GATAS_DATA", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    for loader in set(DOWNLOADED.values()):
        monkeypatch.setattr(f"torch_geometric.datasets.{loader}", unreachable)
    return tmp_path / "cache" / "gatas" / "data"


def multiplex(folder, *, train="1 10 20\n2 20 30\n", valid="1 10 30 1\n1 10 20 0\n", test="2 10 30 1\n"):
    folder.mkdir(parents=True)
    for name, text in (("train", train), ("valid", valid), ("test", test)):
        if text is not None:
            (folder / f"{name}.txt").write_text(text)
    return folder.parent


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(DatasetError, match=r"there is no data set 'core'. Did you mean cora\?") as error:
        load_dataset("core")
    assert all(name in str(error.value) for name in NAMES)


@pytest.mark.parametrize("name", DOWNLOADED)
def test_a_set_that_cannot_be_downloaded_says_every_place_tried_and_what_to_do(name, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("GATAS_DATA", str(tmp_path / "env"))
    with pytest.raises(DatasetError) as error:
        load_dataset(name, root=tmp_path / "root")
    message = str(error.value)
    for place in (f"{tmp_path / 'root'} (root)", f"{tmp_path / 'env'} ($GATAS_DATA)", f"{cache} (the cache)"):
        assert place in message
    assert "could not be downloaded (no route to host)" in message and "much more" not in message
    assert "Put its files into" in message and "$GATAS_DATA" in message


@pytest.mark.parametrize("name", ["twitter", "youtube", "youtube-lite"])
def test_a_set_that_nobody_offers_for_download_says_where_it_comes_from(name, cache):
    with pytest.raises(DatasetError, match=rf"{name} was not found in {cache} \(the cache\). .*train.txt"):
        load_dataset(name)


def test_a_download_that_leaves_nothing_is_noticed(monkeypatch):
    monkeypatch.setattr("torch_geometric.datasets.PPI", lambda *args: None)
    with pytest.raises(DatasetError, match=r"was downloaded to .*, but its files are not there"):
        load_dataset("ppi")


def test_root_comes_before_the_environment_and_that_before_the_cache(tmp_path, cache, monkeypatch):
    roots = [multiplex(place / "twitter", train=f"1 0 {number}\n", valid="1 0 1 0\n", test="1 0 1 1\n")
             for number, place in enumerate((tmp_path / "root", tmp_path / "env", cache), 5)]  # fmt: skip
    assert load_dataset("twitter").graph.id_of(2) == 7
    monkeypatch.setenv("GATAS_DATA", str(roots[1]))
    assert load_dataset("twitter").graph.id_of(2) == 6
    assert load_dataset("twitter", root=roots[0]).graph.id_of(2) == 5


def test_multiplex_lines_become_typed_edges_with_inverses_and_pairs(tmp_path):
    dataset = load_dataset("twitter", root=multiplex(tmp_path / "twitter"))
    graph = dataset.graph
    assert [graph.id_of(node) for node in range(3)] == [10, 20, 30]
    assert graph.edge_type_names == ("1", "2", "1⁻¹", "2⁻¹") and dataset.names == ("1", "2")
    ends = zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True)
    assert list(ends) == [(0, 0, 1), (1, 1, 2), (1, 2, 0), (2, 3, 1)]
    valid = dataset.splits["valid"]
    assert (valid.source.tolist(), valid.target.tolist(), valid.label.tolist()) == ([0, 0], [2, 1], [1, 0])
    assert dataset.splits["train"].label.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train": "1 2\n"}, "train.txt has 2 columns; expected 3 whole numbers a line: type, source, target"),
        ({"test": "1 2 3\n"}, "test.txt has 3 columns; expected 4 whole numbers a line: type, source, target, label"),
        ({"train": "1 2 3\n1 2\n"}, "train.txt could not be read"),
        ({"train": "1 2 x\n"}, "train.txt could not be read"),
        ({"train": "1 2 3.5\n"}, "train.txt could not be read"),
        ({"valid": ""}, "valid.txt could not be read .it is empty"),
        ({"valid": None}, "valid.txt could not be read"),
        ({"test": "1 10 20 1\n1 10 30 257\n"}, "test.txt, row 2: label is 257"),
    ],
)
def test_multiplex_files_that_cannot_be_used_are_named(tmp_path, files, message):
    with pytest.raises(DatasetError, match=message):
        load_dataset("twitter", root=multiplex(tmp_path / "twitter", **files))


def test_a_planetoid_folder_with_files_missing_is_named(tmp_path):
    folder = tmp_path / "cora" / "Cora" / "raw"
    folder.mkdir(parents=True)
    (folder / "ind.cora.graph").write_bytes(b"")
    with pytest.raises(DatasetError, match=r"does not hold the files ind.cora.\* as published"):
        load_dataset("cora", root=tmp_path)


def test_ppi_has_features_as_they_were_released_if_asked(tmp_path):
    folder, features = tmp_path / "ppi", np.random.default_rng(0).integers(0, 9, (24, 2)).astype(np.float32)
    folder.mkdir()
    arrays: dict[str, Any] = {
        "edges": np.zeros((0, 2), np.int64),
        "feats": features,
        "graph": np.arange(24),
        "gene_row": np.arange(24),
    }
    np.savez(folder / "ppi_graph_feats.npz", **arrays)
    np.savez(folder / "ppi_labels_rebuilt.npz", labels=np.ones((24, 3), np.int8), go_term=np.arange(3))
    released: Any = open_dataset(data_config({"name": "ppi", "standardise": False}), tmp_path).features
    usual: Any = open_dataset(data_config({"name": "ppi"}), tmp_path).features
    assert np.array_equal(released, features) and abs(usual[:20].mean(axis=0)).max() < 1e-6
    with pytest.raises(ConfigError, match=r"standardise is for own files and for ppi, but name is cora"):
        data_config({"name": "cora", "standardise": False})


def test_a_ppi_folder_with_files_missing_or_damaged_is_named(tmp_path):
    folder = tmp_path / "ppi"
    folder.mkdir()
    (folder / "ppi_graph_feats.npz").write_bytes(b"PK nonsense")
    with pytest.raises(DatasetError, match=r"ppi_labels_rebuilt.npz is missing"):
        load_dataset("ppi", root=tmp_path)
    np.savez(folder / "ppi_labels_rebuilt.npz", labels=np.zeros((1, 1)))
    with pytest.raises(DatasetError, match=r"ppi_graph_feats.npz could not be read"):
        load_dataset("ppi", root=tmp_path)
    np.savez(folder / "ppi_graph_feats.npz", edges=np.zeros((0, 2)))
    with pytest.raises(DatasetError, match=r"ppi_graph_feats.npz lacks the arrays feats, graph, gene_row"):
        load_dataset("ppi", root=tmp_path)


def pyg_ppi(folder):
    """The files of ppi.zip in small: two graphs to train on, one to validate, one to test."""
    (folder / "raw").mkdir(parents=True)
    for split, sizes in (("train", (3, 2)), ("valid", (2,)), ("test", (2,))):
        nodes = [{"id": node} for node in range(sum(sizes))]
        links, start = [], 0
        for size in sizes:
            links += [{"source": start + node, "target": start + node + 1} for node in range(size - 1)]
            start += size
        graph = {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}
        (folder / "raw" / f"{split}_graph.json").write_text(json.dumps(graph))
        np.save(folder / "raw" / f"{split}_feats.npy", np.ones((len(nodes), 4)))
        np.save(folder / "raw" / f"{split}_labels.npy", np.tile([1.0, 0.0], (len(nodes), 1)))
        np.save(folder / "raw" / f"{split}_graph_id.npy", np.repeat(np.arange(1, len(sizes) + 1), sizes))


def test_ppi_is_read_from_the_files_of_pyg_and_nothing_is_written_beside_them(tmp_path, monkeypatch):
    monkeypatch.undo()
    pyg_ppi(tmp_path / "ppi")
    dataset = load_dataset("ppi", root=tmp_path)
    assert (dataset.graph.num_nodes, dataset.nodes.num_graphs, dataset.task) == (9, 4, "multi-label node classification")
    assert {name: split.tolist() for name, split in dataset.splits.items()} == {
        "train": [0, 1, 2, 3, 4],
        "valid": [5, 6],
        "test": [7, 8],
    }
    #   0 ─ 1 ─ 2   3 ─ 4   5 ─ 6   7 ─ 8
    assert list(zip(dataset.graph.source.tolist(), dataset.graph.neighbour.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3), (5, 6), (6, 5), (7, 8), (8, 7)]  # fmt: skip
    assert [path.name for path in (tmp_path / "ppi").iterdir()] == ["raw"]
