"""Sparse features, from a file or from lists of indices, stay sparse on their whole way through a run."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from scipy import sparse

import gatas
from gatas.datasets import Dataset, open_dataset, read_dataset
from gatas.errors import GatasWarning, GraphError
from gatas.training import Config, load_config

RATIOS = {"train": 1, "valid": 0, "test": 0}
WORDS = [[0, 4], [], [4, 4, 1], [2]]
DENSE = [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 2], [0, 0, 1, 0, 0]]


def dense(dataset):
    """The features of a data set that has them sparse, filled up."""
    assert isinstance(dataset.features, sparse.csr_array)
    return dataset.features.toarray().tolist()


@pytest.fixture
def files(tmp_path):
    """Write four nodes in a ring, with more columns, and a sparse matrix with one column that is empty."""

    def write(**columns):
        edges, nodes = tmp_path / "edges.parquet", tmp_path / "nodes.parquet"
        pq.write_table(pa.table({"source": list("abcd"), "target": list("bcda")}), edges)
        pq.write_table(pa.table({"id": list("abcd"), "label": [0, 1, 0, 1], **columns}), nodes)
        sparse.save_npz(tmp_path / "words.npz", sparse.csr_array(np.array(DENSE, np.float64)))
        return edges, nodes

    return write


def test_lists_of_different_lengths_are_indices(files):
    dataset = read_dataset(*files(words=WORDS), ratios=RATIOS)
    assert dense(dataset) == DENSE


def test_lists_of_one_length_are_numbers_unless_settings_say_so(files):
    lists = [[0, 1], [1, 2], [2, 3], [0, 3]]
    assert np.asarray(read_dataset(*files(words=lists), ratios=RATIOS).features).tolist() == lists
    dataset = read_dataset(*files(words=lists), ratios=RATIOS, indices="words")
    assert dense(dataset) == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]


def test_another_column_has_the_values_of_indices_and_is_no_feature_itself(files):
    values = [[0.5, 2.0], [], [1.0, 2.0, 3.0], [4.0]]
    dataset = read_dataset(*files(words=WORDS, share=values), ratios=RATIOS, indices={"words": "share"})
    assert dense(dataset) == [[0.5, 0, 0, 0, 2], [0] * 5, [0, 3, 0, 0, 3], [0, 0, 4, 0, 0]]


def test_a_file_stands_beside_columns(files, tmp_path):
    edges, nodes = files(age=[1.0, 2.0, 3.0, 4.0])
    dataset = read_dataset(edges, nodes, features=[str(tmp_path / "words.npz"), "age"], standardise=False, ratios=RATIOS)
    expected = np.concatenate([DENSE, [[1], [2], [3], [4]]], axis=1)
    assert dense(dataset) == expected.tolist()
    assert dataset.encoding is not None and dataset.encoding.names == ["words", "words_values", "age"]


def test_a_file_is_found_beside_the_yaml_file_or_in_data_dir(files, tmp_path, monkeypatch):
    files()
    data = {"edges": "edges.parquet", "nodes": "nodes.parquet", "features": "words.npz", "ratios": RATIOS}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"data": data}))
    monkeypatch.chdir("/")
    config = load_config(tmp_path / "mine.yaml").data
    assert dense(open_dataset(config)) == DENSE
    (tmp_path / "moved").mkdir()
    (tmp_path / "words.npz").rename(tmp_path / "moved/words.npz")
    assert dense(open_dataset(config, tmp_path / "moved")) == DENSE


def test_a_saved_data_set_keeps_sparse_features(files, tmp_path):
    read_dataset(*files(words=WORDS), ratios=RATIOS).save(tmp_path / "store")
    opened = Dataset.open(tmp_path / "store")
    assert dense(opened) == DENSE and opened.encoding is not None


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({"words": [[0], [-1, 2], [1], [1]]}, {}, "row 2, column 'words': an index is -1; expected whole numbers from 0 on"),
        ({"words": [[0], [None, 2], [1], [1]]}, {}, "row 2, column 'words': an index is None"),
        ({"words": [[], [], [], []]}, {"indices": "words"}, "column 'words' has no indices"),
        ({"words": [1, 2, 3, 4]}, {"indices": "words"}, "column 'words' holds int64; expected lists of whole numbers"),
        ({"words": WORDS}, {"indices": "word"}, "has no column 'word', which data.features names. Did you mean 'words'"),
        ({"words": WORDS}, {"indices": {"words": "x"}}, "has no column 'x', which data.indices names"),
        ({"words": WORDS, "x": [[1.0]] * 4}, {"indices": {"words": "x"}}, "row 1, column 'x': 1 values, but 'words' has 2"),
        ({"words": [*WORDS[:3], None]}, {}, "1 of 4 nodes has no value, the first in row 4"),
    ],
)
def test_lists_that_are_no_indices_are_refused(files, columns, settings, message):
    with pytest.raises(GraphError, match=message):
        read_dataset(*files(**columns), ratios=RATIOS, **settings)


def test_files_that_are_no_sparse_matrix_of_the_nodes_are_refused(files, tmp_path):
    edges, nodes = files(words=WORDS)
    path = tmp_path / "words.npz"
    with pytest.raises(GraphError, match=r"has a column 'words', and words.npz is taken for one of that name"):
        read_dataset(edges, nodes, features=str(path))
    edges, nodes = files()
    sparse.save_npz(path, sparse.csr_array((3, 5)))
    with pytest.raises(GraphError, match=r"words.npz has 3 rows; expected one for each of the 4 rows of .*nodes.parquet"):
        read_dataset(edges, nodes, features=str(path))
    np.savez(path, x=np.eye(4))
    with pytest.raises(GraphError, match=r"words.npz could not be read as a sparse matrix.*scipy.sparse.save_npz"):
        read_dataset(edges, nodes, features=str(path))
    path.unlink()
    with pytest.raises(GraphError, match=r"words.npz does not exist"):
        read_dataset(edges, nodes, features=str(path))


@pytest.fixture
def run(files, tmp_path, monkeypatch):
    monkeypatch.setattr("gatas.tasks.model.DENSE_BYTES", 0)  # else four nodes are made dense
    dataset = read_dataset(*files(), features=str(tmp_path / "words.npz"), ratios=RATIOS, missing="fill")
    trained = gatas.fit(gatas.NodeClassifier(dataset, layer_norm=True), dataset, epochs=2)
    trained.save(tmp_path / "run")
    return tmp_path / "run"


def test_new_nodes_bring_words_as_lists_as_a_matrix_or_in_a_file(run, tmp_path):
    predictor = gatas.load(run)
    edges = (["e", "f"], ["a", "b"])
    found = predictor.embed_new([{"words": [0, 4]}, {"words": [1], "words_values": [2.0]}], edges, ids=["e", "f"])
    of_json = [{"words": [0.0, 4.0]}, {"words": [1.0, 1.0]}]  # the server's numbers are decimals
    np.testing.assert_array_equal(predictor.embed_new(of_json, edges, ids=["e", "f"]), found)
    with pytest.raises(GraphError, match="expected lists of whole numbers"):
        predictor.embed_new([{"words": [0.5]}, {"words": [1.0]}], edges, ids=["e", "f"])
    matrix = sparse.csr_array(np.array([[1, 0, 0, 0, 1], [0, 2, 0, 0, 0]], np.float32))
    np.testing.assert_array_equal(predictor.embed_new(matrix, edges, ids=["e", "f"]), found)
    np.testing.assert_array_equal(predictor.embed_new(matrix.toarray(), edges, ids=["e", "f"]), found)
    pq.write_table(pa.table({"id": ["e", "f"]}), tmp_path / "new.parquet")
    pq.write_table(pa.table({"source": ["e", "f"], "target": ["a", "b"]}), tmp_path / "new-edges.parquet")
    sparse.save_npz(tmp_path / "new.npz", matrix)
    from gatas.inference.columns import read_new_nodes

    given = read_new_nodes(predictor.dataset, tmp_path / "new.parquet", tmp_path / "new-edges.parquet", tmp_path / "new.npz")
    np.testing.assert_array_equal(predictor.embed_new(**given), found)
    with pytest.warns(GatasWarning, match="1 indices that training did not have, such as index 77, were left out"):
        again = predictor.embed_new([{"words": [0, 4, 77]}, {"words": [1, 1]}], edges, ids=["e", "f"])
    np.testing.assert_array_equal(again, found)


def test_sparse_and_dense_models_answer_alike(files, tmp_path, monkeypatch):
    found = []
    for limit in (0, 1 << 20):
        monkeypatch.setattr("gatas.tasks.model.DENSE_BYTES", limit)
        edges, nodes = files()
        data = {"edges": edges, "nodes": nodes, "features": str(tmp_path / "words.npz"), "ratios": RATIOS}
        config = Config(data=data, model={"layer_norm": True}, training={"epochs": 3})
        found.append([run.predictor.embed(list("abcd")) for run in gatas.fit_many(config, [0, 1])])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4)


MEMORY = """
import sys
import gatas
folder = sys.argv[1]
status = lambda: dict(line.split(":") for line in open("/proc/self/status"))
resident = lambda: int(status()["VmHWM"].split()[0]) << 10  # not ru_maxrss, which begins with that of the parent
import gatas.inference, gatas.training  # what takes memory by itself
gatas.fit  # noqa
dataset = gatas.read_dataset(f"{folder}/edges.parquet", f"{folder}/nodes.parquet", features=f"{folder}/words.npz")
settings = {"sample_size": 5, "num_steps": 1, "node_embedding_size": 0, "input_noise": 0.0}
model = gatas.NodeClassifier(dataset, **settings)
before = resident()
run = gatas.fit(model, dataset, epochs=1, batch_size=200)
run.save(f"{folder}/run")
predictor = gatas.load(f"{folder}/run")
predictor.embed(list(range(2000)))
predictor.embed_new([{"words": [1, 8399]}], ([34000], [5]), ids=[34000])
print(resident() - before, resident())
"""


@pytest.mark.slow
def test_many_words_of_many_nodes_take_a_small_part_of_the_memory_of_a_dense_matrix(tmp_path):
    num_nodes, num_words, generator = 34_000, 8_400, np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(num_nodes), 30), generator.integers(0, num_words, 30 * num_nodes)
    matrix = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(num_nodes, num_words))
    sparse.save_npz(tmp_path / "words.npz", matrix)
    nodes = np.arange(num_nodes)
    pq.write_table(pa.table({"source": nodes, "target": np.roll(nodes, 1)}), tmp_path / "edges.parquet")
    split = np.where(nodes < 400, "train", np.where(nodes < 800, "valid", ""))
    pq.write_table(pa.table({"id": nodes, "label": nodes % 3, "split": split}), tmp_path / "nodes.parquet")
    done = subprocess.run([sys.executable, "-c", MEMORY, tmp_path], capture_output=True, text=True, check=True)
    grown, total = map(int, done.stdout.split())
    dense = 4 * num_nodes * num_words
    assert grown < dense / 4 and total < dense, (grown, total, dense)
