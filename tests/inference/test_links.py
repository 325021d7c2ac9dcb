"""Links: as the run was measured; the likeliest that are not known."""

from dataclasses import replace

import numpy as np
import pytest

import gatas
from gatas.tasks.metrics import paper_protocol
from gatas.transitions import Nearby


def test_probabilities_have_the_roc_auc_that_was_measured(like_run):
    dataset = like_run.dataset
    pairs = dataset.splits["test"]
    types = [dataset.names[kind] for kind in pairs.edge_type]
    chances = like_run.predictor.predict_links(pairs.source, types, pairs.target)
    logits = np.log(chances) - np.log1p(-chances)
    measured = paper_protocol(logits, pairs.label, pairs.edge_type, dataset.names)
    assert measured["roc_auc"] == pytest.approx(like_run.metrics["test"]["roc_auc"])
    assert measured["f1"] == pytest.approx(like_run.metrics["test"]["f1"])


def test_one_type_may_be_given_for_all(like_run):
    predictor = like_run.predictor
    each = predictor.predict_links([0, 1, 2], ["likes"] * 3, [5, 5, 5])
    np.testing.assert_array_equal(predictor.predict_links([0, 1, 2], "likes", [5, 5, 5]), each)
    np.testing.assert_array_equal(predictor.predict_links(1, "likes", 5), each[1:2])
    assert not np.array_equal(predictor.predict_links([0, 1, 2], "knows", [5, 5, 5]), each)
    assert predictor.predict_links([], "likes", []).shape == (0,)


def test_the_likeliest_are_what_scoring_all_would_find(like_run):
    predictor, dataset = like_run.predictor, like_run.dataset
    train = dataset.splits["train"]
    for source in (0, 7):
        found = predictor.rank_links(source, "likes", top=4)
        known = set(train.target[(train.source == source) & (train.edge_type == 0)].tolist()) | {source}
        others = [node for node in range(12) if node not in known]
        chances = predictor.predict_links([source] * len(others), "likes", others)
        order = np.argsort(-chances, kind="stable")[:4]
        assert found.targets.to_pylist() == [others[place] for place in order]
        np.testing.assert_array_equal(found.probabilities, chances[order])


def test_edges_of_the_graph_are_known_too():
    from tests.inference.conftest import trained
    from tests.tasks.toys import likes, pairs, predictor

    dataset = likes()
    splits = {**dataset.splits, "train": pairs((0, 0, 1, 1), (0, 0, 5, 0))}
    few = replace(dataset, targets=gatas.LinkTargets(dataset.names, splits))
    found = trained(predictor(few), few).predictor.rank_links(1, "likes", top=50).targets.to_pylist()
    assert sorted(found) == [node for node in range(12) if node not in (1, 2, 3)]  # it likes 2 and 3, and is 1 itself


def test_several_sources_come_one_after_another(like_run):
    both = like_run.predictor.rank_links([4, 2], "knows", top=3)
    assert both.table().column_names == ["source", "type", "target", "probability"]
    assert both.sources.to_pylist() == [4, 4, 4, 2, 2, 2] and set(both.edge_types) == {"knows"}
    alone = like_run.predictor.rank_links([2], "knows", top=3)
    assert alone.targets.to_pylist() == both.targets.to_pylist()[3:]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (([0], "like", [1]), "there is no type of link 'like'. Did you mean 'likes'"),
        (([0], "likes⁻¹", [1]), "there is no type of link 'likes⁻¹'. Did you mean 'likes'? The model knows 'likes', 'knows'"),
        (([0], "likes", [12]), "no node has the id 12; ids are 0 to 11"),
        (([0, 1], "likes", [1]), "2 sources and 1 targets"),
        (([0, 1, 2], ["likes", "knows"], [1, 2, 3]), "2 types were given for 3 links"),
    ],
)
def test_what_cannot_be_asked_is_refused(like_run, asked, message):
    with pytest.raises(gatas.GatasError) as error:
        like_run.predictor.predict_links(*asked)
    assert message in str(error.value)


def test_a_classifier_has_no_links(camp_run):
    with pytest.raises(gatas.GatasError, match="predicts classes of nodes, not links"):
        camp_run.predictor.score_links(["a0"], "0", ["a1"])


def test_a_link_computes_rows_for_its_two_ends_only(kinship_folder, monkeypatch):
    asked, make = set[int](), Nearby._made

    def counted(self, wanted):
        asked.update(wanted.tolist())
        return make(self, wanted)

    monkeypatch.setattr(Nearby, "_made", counted)
    predictor = gatas.load(kinship_folder)
    ids = [predictor.graph.id_of(node) for node in (3, 8)]
    predictor.score_links(ids[0], "cousin", ids[1])
    predictor.explain((ids[0], "cousin", ids[1]))
    assert asked == {3, 8}
