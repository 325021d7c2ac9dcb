"""The table over several graphs: ranks, and differences that are paired by split."""

import math

import numpy as np
import pytest

from gatas.errors import ConfigError, GatasWarning
from gatas.experiments.compare import compare
from gatas.experiments.compare_ranks import Measured, behind_best, over_graphs, paired, ranks
from gatas.experiments.comparison_data import loaded
from gatas.experiments.paired import clear_best

SPLITS = {
    ("one", "one-a"): {"gatas": 90.0, "gcn": 91.0, "mlp": 80.0},
    ("one", "one-b"): {"gatas": 92.0, "gcn": 91.0, "mlp": 82.0},
    ("two", "two"): {"gatas": 60.0, "gcn": 63.0, "hgt": 70.0},
}


def test_equal_means_share_a_rank_and_models_are_ranked_where_they_have_results():
    #   one: gatas 91, gcn 91, mlp 81; two: hgt 70, gcn 63, gatas 60
    assert ranks(Measured(SPLITS)) == {"gatas": [1.5, 3.0], "gcn": [1.5, 2.0], "mlp": [3.0], "hgt": [1.0]}


def test_a_graph_that_lacks_a_split_of_a_model_has_no_mean_of_it():
    lacking = {**SPLITS, ("one", "one-b"): {"gatas": 92.0}}
    assert ranks(Measured(lacking)) == {"gatas": [1.0, 3.0], "gcn": [2.0], "mlp": [], "hgt": [1.0]}


def test_the_gap_to_the_best_is_the_largest_of_all_graphs():
    measured = Measured(SPLITS)
    assert [behind_best(measured, model) for model in ("gatas", "gcn", "mlp", "hgt")] == [10, 7, 10, 0]


def test_differences_are_paired_by_split():
    #   +1, −1, +3: mean 1, deviation 2, t(0.975, 2) = 4.3027, so 1 ± 4.3027 · 2 / √3
    half = 4.302653 * 2 / math.sqrt(3)
    assert paired(Measured(SPLITS), "gcn") == f"+1.00 ({1 - half:+.2f} to {1 + half:+.2f})"
    assert paired(Measured(SPLITS), "gatas") == "–" and paired(Measured(SPLITS), "hgt") == "–"


def test_the_table_is_in_the_order_of_ranks():
    lines = over_graphs(Measured(SPLITS)).splitlines()
    assert lines[2] == "| model | mean rank | behind the best | against gatas (95 %) | one | two |"
    assert [line.split(" | ")[0] for line in lines[4:8]] == ["| hgt", "| gcn", "| gatas", "| mlp"]
    assert lines[4] == "| hgt | 1.00 (1) | 0.00 | – | – | 70.00 ± 0.00 |"
    assert lines[6] == "| gatas | 2.25 | 10.00 | – | 91.00 ± 1.41 | 60.00 ± 0.00 |"


def test_the_best_of_a_graph_is_bold_where_it_is_clearly_ahead_of_the_next():
    #   gcn − mlp: 9, 9.5, 10 on all splits; gatas has none of the third
    splits = {**SPLITS, ("one", "one-a"): {"gcn": 91.0, "mlp": 82.0}, ("one", "one-b"): {"gcn": 91.5, "mlp": 82.0}}
    text = over_graphs(Measured({**splits, ("one", "one-c"): {"gcn": 92.0, "mlp": 82.0}}))
    assert text.count("**") == 2 and "| **91.50 ± 0.50** |" in text


def test_nobody_is_clearly_best_by_one_pair_or_by_an_interval_that_holds_zero():
    assert clear_best({"a": {0: 2.0}, "b": {0: 1.0}}) is None and clear_best({"a": {0: 1.0, 1: 2.0}}) is None
    #   the mean of 1, 2, 3 is 2 ± 2.48, of 3, 3.5, 4 it is 3.5 ± 1.24
    low = {0: 1.0, 1: 1.0, 2: 1.0}
    assert clear_best({"low": low, "high": {0: 2.0, 1: 3.0, 2: 4.0}}) is None
    assert clear_best({"low": low, "high": {0: 4.0, 1: 4.5, 2: 5.0}}) == "high"
    assert clear_best({"low": low, "high": {0: 4.0, 1: 4.5, 2: 5.0}}, cut={"low"}) is None
    assert clear_best({"low": low, "high": {0: 4.0, 1: 4.5, 2: 5.0}}, cut={"high"}) is None
    #   it is the next that counts, not the last
    assert clear_best({"low": low, "near": {0: 4.0, 1: 4.4, 2: 5.2}, "high": {0: 4.0, 1: 4.5, 2: 5.2}}) is None


@pytest.fixture
def tables(tmp_path):
    """A ring of twelve in tables, with two columns of splits."""
    edges = "source,target\n" + "".join(f"{n},{(n + 1) % 12}\n" for n in range(12))
    parts = ["train", "valid", "test"]
    rows = [f"{n},{n % 2},{n % 2 + n / 100},{parts[n % 3]},{parts[(n + 1) % 3]}\n" for n in range(12)]
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "nodes.csv").write_text("id,label,x,part0,part1\n" + "".join(rows))
    path = tmp_path / "ring.yaml"
    path.write_text("data: {edges: edges.csv, nodes: nodes.csv, features: [x]}\n")
    return path


def test_a_file_is_loaded_once_for_each_of_its_splits(tables):
    found = loaded(str(tables), None, ["part*"])
    assert [(one.graph, one.dataset.name) for one in found] == [("ring", "ring-part0"), ("ring", "ring-part1")]
    trains = [np.sort(np.asarray(one.dataset.splits["train"])).tolist() for one in found]
    assert trains == [[0, 3, 6, 9], [2, 5, 8, 11]]
    with pytest.warns(GatasWarning, match="2 columns were not used"):
        assert [one.dataset.name for one in loaded(str(tables), None)] == ["ring"]


def test_splits_that_there_are_not_are_refused(tables):
    with pytest.raises(ConfigError, match=r"nodes\.csv has no column fold\*; it has id, label, x, part0, part1"):
        loaded(str(tables), None, ["fold*"])


def test_splits_have_a_result_each_and_a_table_together(tables, tmp_path):
    table = compare([str(tables)], ["mlp", "label-propagation"], tmp_path, seeds=1, splits=["part0", "part1"], device="cpu")
    names = {f"ring-{part}-{model}.json" for part in ("part0", "part1") for model in ("mlp", "label-propagation")}
    assert {path.name for path in (tmp_path / "peers").iterdir()} == names
    assert "### ring-part0\n" in table and "### ring-part1\n" in table
    together = table.partition("### All graphs")[2]
    assert "| model | mean rank | behind the best | against gatas (95 %) | ring |" in together and "| mlp | " in together
