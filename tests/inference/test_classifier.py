"""`GatasClassifier` is an estimator as scikit-learn knows them."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gatas import ConfigError, GatasClassifier, GraphError
from gatas.graph import Graph
from tests.tasks.toys import camps


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # checks warn of what they skip: pandas and the array API are not there
@parametrize_with_checks([GatasClassifier()])  # no check is expected to fail
def test_estimator(estimator, check):
    check(estimator)


def test_it_learns_what_is_not_linear_and_keeps_class_names():
    X, y = make_moons(150, noise=0.1, random_state=1)
    names = np.array(["upper", "lower"])[y]
    fitted = GatasClassifier(random_state=0).fit(X[:100], names[:100])
    assert fitted.score(X[100:], names[100:]) > 0.95 and list(fitted.classes_) == ["lower", "upper"]
    np.testing.assert_allclose(fitted.predict_proba(X[100:]).sum(1), 1, atol=1e-6)


def test_a_row_is_predicted_alike_alone_and_among_others():
    X, y = load_iris(return_X_y=True)
    fitted = GatasClassifier(training={"epochs": 3}, random_state=0).fit(X, y)
    together = fitted.predict_proba(X[::10])
    alone = np.concatenate([fitted.predict_proba(row[None]) for row in X[::10]])
    np.testing.assert_array_equal(alone, together)


def test_a_graph_can_be_given_with_some_labels_missing():
    dataset = camps(60)
    X, y = np.asarray(dataset.features), np.where(np.arange(60) < 20, dataset.node_targets.labels, -1)
    fitted = GatasClassifier(graph=dataset.graph, random_state=0).fit(X, y)
    assert list(fitted.classes_) == [0, 1]
    assert (fitted.predict(X) == dataset.node_targets.labels)[20:].mean() > 0.9
    with pytest.raises(ValueError, match="predictions are of its nodes"):
        fitted.predict(X[:5])
    with pytest.raises(ValueError, match="X has 30 rows, but the graph has 60 nodes"):
        GatasClassifier(graph=dataset.graph).fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="no label, only -1"):
        GatasClassifier(graph=dataset.graph).fit(X, np.full(60, -1))


def test_the_random_state_makes_it_repeatable_and_pickling_keeps_it():
    X, y = load_iris(return_X_y=True)
    first, again, other = (
        GatasClassifier(training={"epochs": 2}, random_state=seed).fit(X, y).predict_proba(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    fitted = GatasClassifier(training={"epochs": 2}, random_state=1).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), first)


def test_it_works_in_pipelines_and_cross_validation():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), GatasClassifier(training={"epochs": 15}, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.85


def test_settings_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match="Did you mean 'epochs'"):
        GatasClassifier(training={"epoch": 2}).fit(np.eye(4), [0, 1, 0, 1])  # type: ignore[arg-type]


def test_a_pickled_graph_is_the_same(tmp_path):
    graph = camps().graph
    again = pickle.loads(pickle.dumps(graph))
    assert isinstance(again, Graph) and np.array_equal(again.neighbour, graph.neighbour)
    with pytest.raises(GraphError):
        again.index_of("nobody")
