"""Encodings of single columns, as `data.encode` says: learned of training, kept as JSON, done again with other nodes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatas.datasets import read_dataset
from gatas.datasets.encoding import Encoding
from gatas.errors import ConfigError, GatasWarning, GraphError
from gatas.graph.tables import Table


@pytest.fixture
def learned(tmp_path):
    """The encoding of one column, through JSON and back, and the features it gave."""

    def read(values, **settings):
        rows = len(values)
        pq.write_table(pa.table({"source": np.arange(rows), "target": (np.arange(rows) + 1) % rows}), tmp_path / "e.parquet")
        columns = {"id": np.arange(rows), "label": ["a", "b"] * (rows // 2), "value": values}
        pq.write_table(pa.table({**columns, "split": ["train"] * rows}), tmp_path / "n.parquet")
        dataset = read_dataset(tmp_path / "e.parquet", tmp_path / "n.parquet", features=["value"], **settings)
        assert dataset.encoding is not None
        return Encoding(**json.loads(dataset.encoding.model_dump_json())), dataset.features

    return read


def later(encoding, values):
    table = Table(Path("later"), {}, {}, {"value": pa.chunked_array([pa.array(values)])}, len(values))
    return encoding.encoded(table, encoding.node_types(table))


def test_the_most_frequent_values_have_a_column_each_and_all_others_share_one(learned):
    encoding, features = learned(["x", "x", "y", "y", "z", "w"], encode={"value": "frequent 2"})
    expected = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert features.tolist() == expected
    assert later(encoding, ["y", "never seen"]).tolist() == [[0, 1, 0], [0, 0, 1]]


def test_fewer_values_than_asked_for_leave_the_column_of_others_to_nodes_that_come_later(learned):
    encoding, features = learned(["x", "y"] * 2, encode={"value": "frequent 5"})
    assert features.tolist() == [[1, 0, 0], [0, 1, 0]] * 2 and later(encoding, ["z"]).tolist() == [[0, 0, 1]]


def test_hashed_values_fall_into_buckets_known_or_not(learned):
    encoding, features = learned([f"v{k}" for k in range(40)], encode={"value": "hashed 8"})
    assert features.shape == (40, 8) and (features.sum(1) == 1).all() and (features.sum(0) > 0).sum() > 4
    np.testing.assert_array_equal(later(encoding, [f"v{k}" for k in range(40)]), features)
    assert later(encoding, ["never seen"]).sum() == 1


def test_numbers_can_be_hashed_and_counted_as_codes(learned):
    assert learned([7, 7, 9, 11], encode={"value": "frequent 1"})[1].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_the_logarithm_keeps_the_sign_and_is_standardised(learned):
    numbers = [0.0, 10.0, -10.0, 1e6]
    encoding, features = learned(numbers, encode={"value": "log"})
    logarithms = np.sign(numbers) * np.log1p(np.abs(numbers))
    expected = (logarithms - logarithms.mean()) / logarithms.std()
    np.testing.assert_allclose(features[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(later(encoding, numbers), features)
    assert learned(numbers, encode={"value": "log"}, standardise=False)[1][1, 0] == pytest.approx(np.log(11))


def test_quantiles_are_ranks_and_what_is_outside_is_clipped(learned):
    encoding, features = learned([1.0, 2.0, 2.0, 100.0], encode={"value": "quantile"}, standardise=False)
    assert features[:, 0].tolist() == [0.125, 0.5, 0.5, 0.875]  # equal numbers by halves
    assert later(encoding, [-5.0, 1e9, 51.0])[:, 0].tolist() == [0.125, 0.875, 0.6875]
    scaled = learned(np.arange(1000.0) ** 5, encode={"value": "quantile"})[1]
    assert abs(scaled.mean()) < 0.01 and scaled.std() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("how", ["quantile", "log"])
def test_gaps_are_filled_with_the_middle(learned, how):
    encoding, features = learned([1.0, None, 2.0, 3.0], encode={"value": how}, missing="fill")
    assert features[1, 0] == pytest.approx(0, abs=1e-6)
    assert later(encoding, pa.array([None], pa.float64()))[0, 0] == pytest.approx(0, abs=1e-6)


def test_numbers_can_stay_as_they_are(learned):
    assert learned([1.0, 5.0], encode={"value": "unscaled"})[1].tolist() == [[1.0], [5.0]]


def test_more_values_than_the_limit_become_the_most_frequent_with_a_warning(learned):
    values = [f"v{k % 1100}" for k in range(1100)] * 2 + ["often"] * 200
    with pytest.warns(GatasWarning, match="1,101 different values: the 200 most frequent, which 25% of the nodes have"):
        encoding, features = learned(values)
    assert features.shape == (2400, 201) and "often" in encoding.columns[0].values


def test_wide_categories_are_sparse(learned):
    _, features = learned([f"v{k % 1100}" for k in range(2400)], encode={"value": "one-hot"})
    assert features.shape == (2400, 1100) and features.nnz == 2400 and features.sum(axis=1).min() == 1


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        (["x", "y"], {"encode": {"value": "log"}}, "is text or categorical; data.encode says 'log', which is for numbers"),
        ([[1.0], [2.0]], {"encode": {"value": "log"}}, "holds lists, which are taken as they are"),
        ([1.0, 2.0], {"encode": {"vaule": "log"}}, "has no column 'vaule', which data.encode names. Did you mean 'value'"),
        ([1.0, 2.0], {"encode": {"label": "one-hot"}}, "data.encode names 'label', which is no feature"),
    ],
)
def test_encodings_that_do_not_fit_are_refused(learned, values, settings, message):
    with pytest.raises(GraphError, match=message):
        learned(values, **settings)


@pytest.mark.parametrize("how", ["frequent", "frequent 0", "frequent ten", "logarithm", "log 3", "hashed -1"])
def test_unknown_encodings_are_refused(learned, how):
    with pytest.raises(ConfigError, match=r"'value' is to be encoded as .*expected standard, unscaled, log, quantile"):
        learned([1.0, 2.0], encode={"value": how})
