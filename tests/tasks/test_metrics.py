"""Metrics beside scikit-learn's, and both protocols for links on cases small enough to count."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from sklearn.metrics import accuracy_score, f1_score

from gatas.tasks.metrics import classification_metrics, gatne_protocol, macro_roc_auc, micro_metric, paper_protocol


@settings(max_examples=25)
@given(num_nodes=st.integers(2, 30), num_classes=st.integers(2, 5), seed=st.integers(0, 99))
def test_metrics_are_scikit_learns(num_nodes, num_classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(num_nodes, num_classes, generator=generator)
    labels = torch.randint(num_classes, (num_nodes,), generator=generator)
    predicted = logits.argmax(-1)
    assert classification_metrics(logits, labels) == approx(
        {
            "accuracy": accuracy_score(labels, predicted),
            "micro_f1": f1_score(labels, predicted, average="micro"),
            "macro_f1": f1_score(labels, predicted, average="macro"),
        }
    )
    assert micro_metric(logits[None], labels).tolist() == approx([accuracy_score(labels, predicted)])


@settings(max_examples=25)
@given(num_nodes=st.integers(2, 30), num_classes=st.integers(2, 5), seed=st.integers(0, 99))
def test_multi_label_metrics_are_scikit_learns(num_nodes, num_classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, num_nodes, num_classes, generator=generator)
    labels = torch.rand(num_nodes, num_classes, generator=generator).round()
    predicted = (logits[0] > 0).int()
    assert classification_metrics(logits[0], labels) == approx(
        {
            "accuracy": (predicted == labels).float().mean().item(),
            "micro_f1": f1_score(labels, predicted, average="micro", zero_division=0),
            "macro_f1": f1_score(labels, predicted, average="macro", zero_division=0),
        }
    )
    each = [f1_score(labels, (own > 0).int(), average="micro", zero_division=0) for own in logits]
    assert micro_metric(logits, labels).tolist() == approx(each)


@settings(max_examples=50)
@given(
    num_nodes=st.integers(1, 20),
    num_classes=st.integers(1, 6),
    kind=st.sampled_from(["few", "zero", "all"]),
    seed=st.integers(0, 99),
)
def test_monitored_metrics_are_the_reported_ones_where_classes_are_absent(num_nodes, num_classes, kind, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, num_nodes, num_classes, generator=generator) - 1.5  # often nothing is predicted
    classes = torch.randint(max(1, num_classes // 2), (num_nodes,), generator=generator)
    share = {"few": 0.1, "zero": 0.0, "all": 1.0}[kind]
    for labels, metric in [
        (classes, "accuracy"),
        ((torch.rand(num_nodes, num_classes, generator=generator) < share).float(), "micro_f1"),
    ]:
        reported = [classification_metrics(own, labels)[metric] for own in logits]
        assert micro_metric(logits, labels).tolist() == approx(reported, abs=1e-6)
        assert torch.vmap(lambda own, labels=labels: micro_metric(own, labels))(logits).tolist() == approx(reported, abs=1e-6)


def test_macro_f1_leaves_out_classes_that_never_occur_but_counts_labels_that_never_do():
    one = torch.tensor([[2.0, 1, 0], [2, 1, 0], [1, 2, 0]])  # 0, 0, 1: F1 of class 0 is 2/3, of class 1 is 2/3
    assert classification_metrics(one, torch.tensor([0, 1, 1]))["macro_f1"] == approx(2 / 3)
    many = torch.tensor([[1.0, -1], [1, -1]])
    assert classification_metrics(many, torch.tensor([[1, 0], [1, 0]])) == {"accuracy": 1, "micro_f1": 1, "macro_f1": 0.5}


def test_all_zero_labels_have_an_f1_of_zero():
    found = classification_metrics(torch.full((3, 2), -1.0), torch.zeros(3, 2))
    assert found == {"accuracy": 1, "micro_f1": 0, "macro_f1": 0}


def test_a_single_label_is_measured_as_a_label_and_not_as_two_classes():
    found = classification_metrics(torch.tensor([[1.0], [-1], [1]]), torch.tensor([[1], [0], [0]]))
    assert found == approx({"accuracy": 2 / 3, "micro_f1": 2 / 3, "macro_f1": 2 / 3})


#   logits   3    1   -1  │  2    1   -2  │  4
#   links    ✓    ✗    ✓  │  ✗    ✓    ✗  │  ✓        type 2 has no negatives, type 3 no pairs at all
SCORES = np.array([3.0, 1, -1, 2, 1, -2, 4])
TRUTH = np.array([1, 0, 1, 0, 1, 0, 1], np.int8)
TYPES = np.array([0, 0, 0, 1, 1, 1, 2])


def test_the_papers_protocol_is_the_mean_over_types_that_can_be_measured():
    found = paper_protocol(SCORES, TRUTH, TYPES, ("a", "b", "c", "d"))
    assert found["by_type"]["a"] == {"positives": 2, "negatives": 1, "roc_auc": approx(1 / 2), "f1": approx(1 / 2)}
    assert found["by_type"]["b"] == {"positives": 1, "negatives": 2, "roc_auc": approx(1 / 2), "f1": approx(2 / 3)}
    assert found["by_type"]["c"] == {"positives": 1, "negatives": 0}
    assert found["by_type"]["d"] == {"positives": 0, "negatives": 0}
    assert (found["roc_auc"], found["f1"]) == (approx(1 / 2), approx((1 / 2 + 2 / 3) / 2))


@settings(max_examples=25)
@given(num_pairs=st.integers(1, 60), num_types=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_monitored_roc_auc_is_the_reported_one(num_pairs, num_types, seed):
    generator = np.random.default_rng(seed)
    truth, types = generator.integers(2, size=num_pairs), generator.integers(num_types, size=num_pairs)
    given = (generator.standard_normal(num_pairs).round(1), truth, types)
    reported = paper_protocol(*given, tuple("abcd"[:num_types]))["roc_auc"]
    np.testing.assert_array_equal(macro_roc_auc(*given, num_types), reported)


def test_gatnes_protocol_accepts_as_many_pairs_as_there_are_links():
    # type a: two are accepted, 3 and 1, of which one is a link; precision 1 up to recall 1/2, then 2/3 at 1, by way of 1/2
    alone = gatne_protocol(SCORES, TRUTH, TYPES, [0])
    assert alone == approx({"roc_auc": 1 / 2, "f1": 1 / 2, "pr_auc": 1 / 2 + 1 / 2 * (1 / 2 + 2 / 3) / 2})
    # type b: one is accepted, 2, which is none
    both = gatne_protocol(SCORES, TRUTH, TYPES, [0, 1, 2, 3])
    assert both["roc_auc"] == approx(1 / 2) and both["f1"] == approx((1 / 2 + 0) / 2)


def test_where_nothing_can_be_measured_metrics_are_not_numbers():
    only = (SCORES[6:], TRUTH[6:], TYPES[6:])
    assert np.isnan([paper_protocol(*only, ("a", "b", "c"))["roc_auc"], *gatne_protocol(*only, [2]).values()]).all()


@pytest.mark.parametrize("scale", [1, 1000])
def test_only_the_order_of_scores_matters_to_gatnes_protocol(scale):
    assert gatne_protocol(SCORES * scale - 5, TRUTH, TYPES, [0, 1]) == gatne_protocol(SCORES, TRUTH, TYPES, [0, 1])
