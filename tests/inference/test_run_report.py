"""The page about a run: one file, nothing from elsewhere, text that stays text, and floors that are what they say."""

import json
import re

import numpy as np
import pytest
import torch

import gatas
from gatas.datasets import Dataset
from gatas.errors import GatasError
from gatas.graph import Graph
from gatas.inference.floors import SharedNeighbourScores, neighbours_mean, neighbours_vote
from gatas.inference.report_answers import answers_of
from gatas.inference.report_plots import Scored, calibration_plot
from gatas.inference.run_report import write_report
from tests.inference.conftest import trained, with_ids
from tests.tasks.toys import camps, classifier, heights, labelled_graphs, likes, predictor, regressor

HOSTILE = "<script>window.harmed=1</script>"


def page_of(model, dataset, folder, **settings):
    gatas.fit(model, dataset, seed=3, device="cpu", epochs=2, batch_size=8, folder=folder, **settings)
    return write_report(folder, device="cpu").read_text()


def headings(page):
    return re.findall("<h2>(.*?)</h2>", page)


def test_a_report_of_classes_has_every_part(tmp_path):
    dataset = with_ids(camps(name=HOSTILE), f"{HOSTILE} ")
    page = page_of(classifier(dataset), dataset, tmp_path)
    assert headings(page)[:5] == [
        "Data and model",
        "Metrics",
        "By class, test data",
        "Baselines without training",
        "Training and answers",
    ]
    assert {"ROC and PR curves", "Map of the nodes"} <= set(headings(page))
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert f"<td>{metrics['test']['accuracy']:.4f}</td>" in page
    assert page.count("data:image/png;base64,") == 6 and "<script" not in page
    assert not re.findall(r"(?:src|href)=.(?!data:)", page) and "http" not in page.replace("data:image", "")


def test_classes_of_a_report_begin_with_the_most_frequent(tmp_path):
    dataset = camps()
    page_of(classifier(dataset), dataset, tmp_path)
    path = tmp_path / "metrics.json"
    metrics = json.loads(path.read_text())
    by_class = metrics["test"]["by_class"]
    metrics["test"]["by_class"] = {"rare": {**by_class["even"], "support": 1}, **by_class}
    path.write_text(json.dumps(metrics))
    table = (
        write_report(tmp_path, device="cpu").read_text().partition("<h2>By class, test data</h2>")[2].partition("</table>")[0]
    )
    assert re.findall(r"<tr><td>(\w+)</td>", table) == ["even", "odd", "rare"]


def test_reports_of_links_have_ranks_and_what_links_rest_on(tmp_path):
    dataset = likes()
    page = page_of(predictor(dataset), dataset, tmp_path / "pair", evaluation_mode="all")
    assert {"By type of link, test data", "ROC and PR curves", "Ranks of true links", "Map of the nodes"} <= set(headings(page))
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert "Calibration" in headings(page) and not set(captions) & set(headings(page))
    assert "Adamic–Adar" in page and re.search(r"– likes → \d+ is (a|no) link; the model says", page)
    parts = predictor(dataset, link_score=("vectors", "paths"), vector_size=6, revisits=True)
    page = page_of(parts, dataset, tmp_path / "parts", loss="list", hidden_folds=3, n3=0.01, l2=0)
    assert " as a source" in page


def test_a_run_writes_its_report_where_it_is_asked_to(tmp_path):
    dataset = camps()
    run = gatas.fit(classifier(dataset), dataset, device="cpu", epochs=1, batch_size=8)
    run.save(tmp_path / "without")
    run.save(tmp_path / "with", report=True)
    assert not (tmp_path / "without/report.html").exists() and "Baselines" in (tmp_path / "with/report.html").read_text()


def test_bins_of_a_calibration_curve_have_the_share_of_true_links():
    chances, truth = np.array([0.05, 0.15, 0.12, 0.95, 0.9, 1.0]), np.array([False, False, True, True, True, False])
    (axes,) = calibration_plot(Scored("all links", chances, truth)).axes
    points = next(line for line in axes.lines if line.get_label() == "model").get_xydata()
    assert points == pytest.approx(np.array([[0.05, 0], [0.135, 0.5], [0.95, 2 / 3]]))


@pytest.mark.parametrize(("make", "dataset"), [(regressor, heights()), (classifier, labelled_graphs())])
def test_reports_of_numbers_and_of_several_labels(make, dataset, tmp_path):
    page = page_of(make(dataset), dataset, tmp_path)
    assert ("MAE of metres" in page) == (make is regressor) and ("micro-F1" in page) == (make is classifier)


def test_the_worst_error_is_the_one_of_which_the_model_was_surest():
    dataset = camps(60)
    found = trained(classifier(dataset), dataset).predictor
    nodes = dataset.splits["test"]
    chances, labels = found.predict_classes(nodes).probabilities, dataset.node_targets.labels[nodes]
    wrong = chances[np.arange(len(nodes)), 1 - labels]
    answers = answers_of(found, "test")
    assert len(answers.errors) == min(5, int((wrong > 0.5).sum())) > 0
    assert answers.errors[0].words.startswith(f"{nodes[wrong.argmax()]} is ") and answers.errors[0].reasons
    assert answers.floors[0].model == pytest.approx((chances.argmax(1) == labels).mean())


def test_neighbours_vote_by_their_training_labels():
    #   0 (a) ─ 3 ─ 1 (b), 2 (b)      4 alone
    graph = Graph.from_edges([0, 1, 2], [3, 3, 3], num_nodes=5, undirected=True)
    labels, splits = np.array([0, 1, 1, 0, 1]), {"train": [0, 1, 2], "test": [3, 4]}
    dataset = Dataset.for_nodes(graph, labels, splits, class_names=("a", "b"))
    assert neighbours_vote(dataset, np.array([3, 4])) == pytest.approx(np.array([[1 / 3, 2 / 3], [1 / 3, 2 / 3]]))
    numbers = Dataset.for_numbers(graph, np.array([1.0, 2, 6, 0, 0]), splits)
    assert neighbours_mean(numbers, np.array([3, 4])).tolist() == [[3.0], [3.0]]


def test_shared_neighbours_with_few_neighbours_count_more():
    #   0 and 1 share 2 (two neighbours) and 3 (three); 4 is a neighbour of 3 alone
    graph = Graph.from_edges([0, 1, 0, 1, 4], [2, 2, 3, 3, 3], num_nodes=5)
    shared = SharedNeighbourScores(graph)
    expected = 1 / np.log(2) + 1 / np.log(3)
    assert shared.score(np.array([0, 0]), np.array([1, 4])) == pytest.approx([expected, 1 / np.log(3)])
    assert shared.score_targets(torch.tensor([0]), torch.tensor([0]))[0, 1].item() == pytest.approx(expected)


def test_a_folder_without_metrics_is_refused(tmp_path):
    dataset = camps()
    gatas.fit(classifier(dataset), dataset, device="cpu", epochs=1, folder=tmp_path)
    (tmp_path / "metrics.json").unlink()
    with pytest.raises(GatasError, match=r"no metrics\.json that can be read"):
        write_report(tmp_path, device="cpu")
