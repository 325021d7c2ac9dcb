"""Features back as the columns that they were made of."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatas.datasets import read_dataset
from gatas.datasets.decoding import decoded_columns

EDGES = "source,target\n" + "".join(f"n{k},n{(k + 1) % 6}\n" for k in range(6))
NUMBERS, TOWNS = [3.5, -120.0, 7.25, 0.0, 18000.0, 42.0], ["rome", "oslo", "rome", "bern", "oslo", "rome"]


def read(folder, nodes, **settings):
    (folder / "edges.csv").write_text(EDGES)
    columns = {"id": [f"n{k}" for k in range(6)], "label": list("xyxyxy"), "split": ["train"] * 4 + ["valid", "test"]}
    pq.write_table(pa.table(columns | nodes), folder / "nodes.parquet")
    return read_dataset(folder / "edges.csv", folder / "nodes.parquet", features=list(nodes)[:1], **settings)


def decoded(dataset, name):
    features = dataset.features.toarray() if hasattr(dataset.features, "toarray") else np.asarray(dataset.features)
    return [decoded_columns(dataset.encoding, row, 0)[name] for row in features]


@pytest.mark.parametrize("settings", [{}, {"standardise": False}])
def test_numbers_come_back_as_they_were(tmp_path, settings):
    assert decoded(read(tmp_path, {"size": NUMBERS}, **settings), "size") == NUMBERS


def test_logarithms_come_back_as_numbers(tmp_path):
    found = decoded(read(tmp_path, {"size": NUMBERS}, encode={"size": "log"}), "size")
    assert found == pytest.approx(NUMBERS, rel=1e-5) and found[3] == 0


@pytest.mark.parametrize("settings", [{}, {"standardise": False}, {"encode": {"flag": "log"}}])
def test_true_and_false_come_back_as_such_and_a_filled_gap_as_the_mean(tmp_path, settings):
    flags = [True, False, False, True, False, True]
    found = decoded(read(tmp_path, {"flag": flags}, **settings), "flag")
    assert found == flags and all(isinstance(flag, bool) for flag in found)
    found = decoded(read(tmp_path, {"flag": [None, *flags[1:]]}, missing="fill", **settings), "flag")
    assert found[1:] == flags[1:] and found[0] == pytest.approx(1 / 3, abs=0.1) and not isinstance(found[0], bool)


def test_ranks_come_back_within_what_training_had(tmp_path):
    found = decoded(read(tmp_path, {"size": NUMBERS}, encode={"size": "quantile"}), "size")
    assert found[:4] == pytest.approx(NUMBERS[:4], rel=1e-3, abs=1e-2)
    assert found[4] == pytest.approx(7.25, rel=1e-3)  # more than any node of training


def test_categories_come_back_by_name(tmp_path):
    assert decoded(read(tmp_path, {"town": TOWNS}), "town") == TOWNS
    frequent = decoded(read(tmp_path, {"town": TOWNS}, encode={"town": "frequent 1"}), "town")
    assert frequent == ["rome", "other", "rome", "other", "other", "rome"]
    hashed = decoded(read(tmp_path, {"town": TOWNS}, encode={"town": "hashed 8"}), "town")
    assert all(text.startswith("hash ") for text in hashed) and hashed[0] == hashed[2]


def test_lists_come_back_whole(tmp_path):
    lists = [[float(k), 0.5] for k in range(6)]
    assert decoded(read(tmp_path, {"vector": lists}), "vector") == lists


def test_indices_come_back_as_a_list(tmp_path):
    words = [[1, 4], [0], [2, 3], [4], [1], []]
    dataset = read(tmp_path, {"words": words}, indices=["words"], missing="fill")
    assert decoded(dataset, "words") == words
    assert json.dumps(decoded(dataset, "words"))
