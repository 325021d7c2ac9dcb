"""Classes of nodes: as the run was measured, by id, as files."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import gatas
from gatas.inference import Predictor


@pytest.mark.parametrize("split", ["valid", "test"])
def test_predictions_have_the_accuracy_that_was_measured(camp_run, split):
    dataset = camp_run.dataset
    nodes = dataset.splits[split]
    found = camp_run.predictor.predict([f"a{node}" for node in nodes])
    wanted = [dataset.names[label] for label in dataset.node_targets.labels[nodes]]
    accuracy = np.mean([label == truth for label, truth in zip(found.labels, wanted, strict=True)])
    assert accuracy == pytest.approx(camp_run.metrics[split]["accuracy"], abs=1e-6)
    np.testing.assert_allclose(found.probabilities.sum(1), 1, atol=1e-6)
    assert found.ids.to_pylist() == [f"a{node}" for node in nodes] and len(found) == len(nodes)


def test_several_labels_are_those_likelier_than_not(ring_run):
    nodes = ring_run.dataset.splits["valid"]
    found = ring_run.predictor.predict(nodes)
    truth = ring_run.dataset.node_targets.labels[nodes].astype(bool)
    taken = np.array([[name in row for name in found.names] for row in found.labels])
    both = 2 * (taken & truth).sum() / (taken.sum() + truth.sum())
    assert both == pytest.approx(ring_run.metrics["valid"]["micro_f1"], abs=1e-6)
    np.testing.assert_array_equal(taken, found.probabilities > 0.5)


def test_probabilities_are_the_same_alone_and_together(camp_run):
    names = [f"a{node}" for node in range(30)]
    together = camp_run.predictor.predict(names).probabilities
    alone = np.concatenate([camp_run.predictor.predict(name).probabilities for name in names])
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(camp_run.predictor.predict(names, batch_size=4).probabilities, together)


def test_draws_are_averaged_as_probabilities(camp_run):
    mean = Predictor(camp_run.model, camp_run.dataset, draws=2).predict("a0").probabilities
    assert not np.array_equal(mean, camp_run.predictor.predict("a0").probabilities)


def test_a_spread_is_the_deviation_over_draws(camp_run):
    predictor = Predictor(camp_run.model, camp_run.dataset)
    found = predictor.predict(["a0", "a1"], draws=6)
    logits = [predictor.exact.apply_head(predictor.exact.represent(np.array([0, 1]), "sample", -1 - draw)) for draw in range(6)]
    each = np.stack([(own / predictor.temperature).softmax(-1).numpy() for own in logits])
    np.testing.assert_allclose(found.deviations, each.std(0, ddof=1), rtol=1e-5)
    mean = Predictor(camp_run.model, camp_run.dataset, draws=6).predict(["a0", "a1"]).probabilities
    np.testing.assert_array_equal(found.probabilities, mean)
    assert found.table().column_names == ["id", "class", "p(even)", "p(odd)", "sd(even)", "sd(odd)"]
    assert predictor.predict("a0").deviations is None


def test_a_spread_needs_draws(camp_run):
    with pytest.raises(gatas.GatasError, match="draws is 1; a spread needs 2 or more"):
        camp_run.predictor.predict("a0", draws=1)
    with pytest.raises(gatas.GatasError, match="looks at all neighbours, which are always the same"):
        Predictor(camp_run.model, camp_run.dataset, mode="all").predict("a0", draws=3)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
@pytest.mark.parametrize("run", ["camp_run", "ring_run"])
def test_files_hold_ids_classes_and_probabilities(run, suffix, request, tmp_path):
    run = request.getfixturevalue(run)
    path = tmp_path / f"predicted.{suffix}"
    assert run.predictor.write_predictions(path) == run.dataset.graph.num_nodes
    read = {"parquet": pq.read_table, "csv": pyarrow.csv.read_csv, "json": lambda path: json.loads(path.read_text())}[suffix]
    content = read(path)
    rows = content if suffix == "json" else content.to_pylist()
    names = [run.dataset.graph.id_of(node) for node in range(len(rows))]
    found = run.predictor.predict(names)
    assert [row["id"] for row in rows] == names
    key = "classes" if found.multi_label else "class"
    labels = [";".join(label) for label in found.labels] if suffix == "csv" and found.multi_label else found.labels
    assert [row[key] for row in rows] == labels
    for place, name in enumerate(found.names):
        np.testing.assert_allclose([row[f"p({name})"] for row in rows], found.probabilities[:, place], rtol=1e-6)


def test_no_nodes_make_an_empty_file(camp_run, tmp_path):
    assert camp_run.predictor.write_predictions(tmp_path / "none.json", []) == 0
    assert json.loads((tmp_path / "none.json").read_text()) == []
    camp_run.predictor.write_predictions(tmp_path / "none.parquet", [])
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_a_model_of_links_has_no_classes(like_run):
    with pytest.raises(gatas.GatasError, match="predicts links, not classes"):
        like_run.predictor.predict([0])
