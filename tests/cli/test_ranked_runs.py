"""Links that are ranked, with validation links as edges in the final test: what commands print, and what pages show."""

import json

import numpy as np
import pytest

from gatas.serving.run_results import read_results

CONFIG = """
data: {edges: edges.csv, task: link prediction, direction: inverse, validation_edges: true, seed: 1}
model: {link_score: [vectors, paths], num_steps: 2, vector_size: 4}
training: {loss: list, hidden_folds: 2, epochs: 1}
"""
SAID = "In this test the links of validation are edges of the graph (data.validation_edges)."


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder, generator = tmp_path_factory.mktemp("ranked"), np.random.default_rng(0)
    rows = {f"n{a},n{b},t{a % 2}" for a, b in generator.integers(20, size=(90, 2)) if a != b}
    (folder / "edges.csv").write_text("\n".join(["source,target,type", *sorted(rows)]) + "\n")
    (folder / "kg.yaml").write_text(CONFIG)
    return folder / "kg.yaml"


def test_training_and_evaluation_print_ranks_and_say_what_the_graph_was(gatas, config, tmp_path):
    code, out, _ = gatas("train", config, "--out", tmp_path / "run", "--device", "cpu")
    own = json.loads(tmp_path.joinpath("run/metrics.json").read_text())["test"]
    assert code == 0 and out.count(SAID) == 1
    assert "test data, filtered ranking" in out and f"{own['ranking']['mrr']:.4f}" in out and "Hits@10" in out
    code, out, _ = gatas("evaluate", tmp_path / "run", "--device", "cpu")
    assert code == 0 and f"{own['roc_auc']:.4f}" in out and out.count(SAID) == 1
    code, out, _ = gatas("evaluate", tmp_path / "run", "--device", "cpu", "--protocol", "ranking")
    assert code == 0 and f"{own['ranking']['mrr']:.4f}" in out and out.count(SAID) == 1
    assert SAID not in gatas("evaluate", tmp_path / "run", "--device", "cpu", "--split", "valid")[1]
    results = read_results(tmp_path / "run")
    assert results is not None and results.metrics["test"]["mrr"] == own["ranking"]["mrr"]
    assert "validation_edges" not in results.metrics["test"] and "validation" in results.note
    page = tmp_path.joinpath("run/report.html").read_text()
    assert "<td>MRR</td>" in page and f"{own['ranking']['hits_at_10']:.4f}" in page and "Links of validation are edges" in page


def test_ranks_have_a_mean_over_seeds(gatas, config, tmp_path):
    code, out, _ = gatas("train", config, "--out", tmp_path / "run", "--device", "cpu", "--seeds", 2, "--no-report")
    metrics = json.loads(tmp_path.joinpath("run/metrics.json").read_text())
    each = [json.loads(tmp_path.joinpath(f"run/seed-{seed}/metrics.json").read_text()) for seed in (0, 1)]
    mean = np.mean([own["test"]["ranking"]["mrr"] for own in each])
    assert code == 0 and metrics["test"]["ranking"]["mrr"]["mean"] == pytest.approx(mean) and f"{mean:.4f} ± " in out


def test_a_search_prints_the_ranks_of_the_best(gatas, config, tmp_path):
    code, out, _ = gatas("tune", config, "--trials", 1, "--out", tmp_path / "run", "--device", "cpu")
    own = json.loads(tmp_path.joinpath("run/metrics.json").read_text())["test"]
    assert code == 0 and f"{own['ranking']['mrr']:.4f}" in out and out.count(SAID) == 1
