"""What a notebook shows of runs and answers: short, and harmless whatever ids and names hold."""

from dataclasses import replace

import pytest

from gatas import Dataset, Graph, fit
from gatas.inference import Predictor
from tests.tasks.toys import camps, classifier, labelled_graphs, likes, predictor

NASTY = "<script>alert('x')</script>"


def nasty(dataset):
    """Give a data set ids, classes and types that are long and look like HTML."""
    graph, long = dataset.graph, f"{NASTY} & " + "m" * 400
    named = Graph.from_edges(
        graph.source,
        graph.neighbour,
        graph.edge_type,
        num_nodes=graph.num_nodes,
        node_ids=[f"{long}{node}" for node in range(graph.num_nodes)],
        edge_type_names=[f"{long}{name}" for name in graph.edge_type_names],
        inverse_of=graph.inverse_of,
    )
    names = tuple(f"{long}{name}" for name in dataset.names)
    if dataset.task == "link prediction":
        return Dataset.for_links(named, dataset.splits, names, name=NASTY)
    targets = replace(dataset.node_targets, class_names=names)
    return replace(dataset, graph=named, targets=targets, name=NASTY, note=NASTY)


def shown(make, dataset):
    """Give one of each kind of object that users look at."""
    run = fit(make(dataset), dataset, device="cpu", epochs=1)
    asked = run.predictor
    ids = [dataset.graph.id_of(node) for node in range(dataset.graph.num_nodes)]
    yield from (run, dataset, asked, Predictor(run.model, dataset, mode="all"))
    if dataset.task == "link prediction":
        yield asked.rank_links(ids[:2], dataset.names[0], top=8)
        yield asked.explain((ids[0], dataset.names[0], ids[3]))
        return
    yield asked.predict(ids)
    yield asked.predict([])
    yield asked.explain(ids[0])
    features = [[0.0] * dataset.nodes.num_features]
    edges = (["new"], dataset.graph.edge_type_names[0], [ids[1]])
    yield asked.with_new_nodes(features, edges, ids=["new"])


@pytest.mark.parametrize(("make", "toy"), [(classifier, camps), (classifier, labelled_graphs), (predictor, likes)])
def test_what_is_shown_is_short_and_escaped(make, toy):
    for one in shown(make, nasty(toy())):
        assert len(repr(one)) < 300 and "\n" not in repr(one), repr(one)
        html = one._repr_html_()
        assert html.startswith("<") and "<script" not in html
        assert "&lt;script&gt;" in html or len(getattr(one, "probabilities", "some")) == 0, html


def test_what_is_shown_says_what_it_is():
    run, dataset, asked, _, prediction, _, explanation, extended = shown(classifier, camps())
    assert repr(run).startswith("Run('camps', seed 0: accuracy 0.") and "best epoch 1 of 1" in repr(run)
    assert repr(dataset).startswith("Dataset('camps': 30 nodes, ")
    assert repr(asked).startswith("Predictor(node classification: even, odd; 30 nodes, ")
    assert repr(extended).startswith("Predictor(node classification: even, odd; 31 nodes, 1 of them new, ")
    assert repr(prediction).startswith("Prediction(30 nodes, 2 classes; 0: '") and repr(prediction).endswith(" …)")
    assert repr(explanation).startswith("Explanation(0: '") and "rows, most attended to: " in repr(explanation)
    assert "<table>" in run._repr_html_() and "10 of 30 rows" in prediction._repr_html_()
