"""Types of links that training edges have, and no held-out pair: they are learned, calibrated and asked for like all others."""

import numpy as np
import pytest

import gatas
from gatas.errors import GatasWarning
from gatas.inference.run_report import write_report
from tests.tasks.test_link_lists import LISTS, PARTS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Friends of friends, and two pairs that are of a type of their own, the first by its name."""
    folder, generator = tmp_path_factory.mktemp("rare"), np.random.default_rng(0)
    pairs = sorted({tuple(sorted(generator.choice(30, 2, replace=False))) for _ in range(120)})
    rows = [f"n{a},n{b},likes" for a, b in pairs]
    head = "source,target,type"
    (folder / "train.csv").write_text("\n".join([head, *rows[:-20], "n1,n2,a rare one", "n3,n4,a rare one"]))
    (folder / "valid.csv").write_text("\n".join([head, *rows[-20:-10]]))
    (folder / "test.csv").write_text("\n".join([head, *rows[-10:]]))
    files = {split: folder / f"{split}.csv" for split in ("valid", "test")}
    dataset = gatas.read_dataset(folder / "train.csv", task="link prediction", pairs=files)
    model = gatas.LinkPredictor(dataset, num_steps=2, **PARTS)
    with pytest.warns(GatasWarning, match="1 of 2 types of link has no validation links .the first is 'a rare one'"):
        return gatas.fit(model, dataset, seed=0, device="cpu", **LISTS)


def test_a_rare_type_is_asked_for(run):
    assert run.dataset.names == ("a rare one", "likes")
    assert len(run.predictor.rank_links("n1", "a rare one", top=3).probabilities) == 3


def test_its_bias_is_the_mean_type_s(run):
    bias = run.model.link_head.type_bias
    assert bias[0] == pytest.approx(bias[1], abs=2) and bias[0] != 0


def test_it_counts_in_no_mean_over_types(run):
    measured = run.metrics["test"]
    assert measured["by_type"]["a rare one"] == {"positives": 0, "negatives": 0}
    assert measured["roc_auc"] == measured["by_type"]["likes"]["roc_auc"]
    assert measured["ranking"]["macro"]["mrr"] == measured["ranking"]["mrr"]


def test_a_report_has_the_metrics_of_types_that_have_some(run, tmp_path):
    run.save(tmp_path / "run")
    text = write_report(tmp_path / "run", device="cpu").read_text(encoding="utf-8")
    assert "ROC-AUC" in text.partition("By type of link")[2].partition("</table>")[0]


@pytest.mark.parametrize("negative_types", ["as links", "all alike"])
def test_negatives_of_any_type_are_drawn_for_single_pairs(run, negative_types):
    settings = {"loss": "binary", "negative_types": negative_types, "hidden_folds": 2, "epochs": 1, "batch_size": 8}
    model = gatas.LinkPredictor(run.dataset, num_steps=2, **PARTS)
    assert np.isfinite(gatas.fit(model, run.dataset, seed=0, device="cpu", **settings).history[0]["loss"])
