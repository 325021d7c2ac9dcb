"""Explanations of links by parts: terms that add up to the log-odds exactly, and answers without each."""

import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch

from gatas.errors import GatasError
from gatas.inference import Explanation, LinkExplanation, Predictor
from gatas.inference.attention import evaluating, linear
from gatas.inference.picture import draw_explanation
from gatas.nn.link_head import PathRows
from gatas.tasks.link_paths import log_degrees
from gatas.transitions.paths import path_name, path_of
from tests.tasks.toys import likes, predictor

PARTS = ("vectors", "neighbourhood", "paths")
SUBSETS = [parts for count in (1, 2, 3) for parts in combinations(PARTS, count)]
LINKS = [(source, kind, target) for source, kind, target in product((0, 3, 7), (0, 1), range(12)) if source != target]


def by_parts(parts=PARTS, dataset=None, **settings):
    """Return a predictor whose weights are all unlike, so that none hides behind another."""
    dataset = dataset or likes()
    model = predictor(dataset, link_score=parts, vector_size=6, **{"revisits": True, **settings}).eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for tensor in (*model.head.parameters(), model.head.part_weights, model.head.type_bias):
            tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return Predictor(model, dataset, mode="all")


def in_float64(trained, link, rows=None):
    """Return the log-odds of a link by the model's own head, in float64."""
    model, nodes = trained.model, np.array([link[0], link[2]])
    head, kind = model.link_head, torch.tensor([link[1]])
    ends = torch.tensor([link[0]]), torch.tensor([link[2]])
    encoded = trained.exact.represent(nodes, "all") if "neighbourhood" in head.parts else None
    rows = model.path_rows(ends[0]) if rows is None and "paths" in head.parts else rows
    before = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    try:
        with torch.no_grad(), evaluating(model):
            head.double()
            known = head.node_vectors(torch.from_numpy(nodes), encoded)
            sides = ({name: tensor[[side]] for name, tensor in known.items()} for side in (0, 1))
            return float(head.together(head.pair_scores(*ends, kind, *sides, rows), kind))
    finally:
        head.float()
        head.load_state_dict(before)


@pytest.mark.parametrize("decoder", ["complex", "distmult", "bilinear"])
@pytest.mark.parametrize("parts", SUBSETS, ids="+".join)
def test_contributions_add_up_to_the_log_odds(parts, decoder):
    trained = by_parts(parts, decoder=decoder)
    for link in LINKS if decoder == "complex" else LINKS[::7]:
        found = trained.explain_link(link[0], trained.names[link[1]], link[2])
        log_odds = in_float64(trained, link)
        assert sum(one.value for one in found.contributions) == pytest.approx(log_odds, rel=1e-9, abs=1e-12)
        assert found.answer.log_odds == pytest.approx(log_odds, rel=1e-9, abs=1e-12)
        assert found.answer.probability == pytest.approx(1 / (1 + np.exp(-log_odds)), rel=1e-9)
        bias = found.terms[0]
        assert bias.kind == "type" and bias.value + sum(part.value for part in found.parts) == pytest.approx(log_odds, rel=1e-9)
        assert [part.name for part in found.parts] == list(parts)
        assert all(part.score * part.weight == pytest.approx(part.value) for part in found.parts)
        for path in found.paths:
            assert path.constant + path.forth + path.back == pytest.approx(path.value, rel=1e-9, abs=1e-12)


def test_more_steps_and_factors_add_up_too():
    trained = by_parts(num_steps=3, path_factors=4, max_degree=5)
    for link in LINKS[::5]:
        found = trained.explain_link(link[0], trained.names[link[1]], link[2])
        assert sum(one.value for one in found.contributions) == pytest.approx(in_float64(trained, link), rel=1e-9)


def rows_without(trained, source, target, path):
    """Return the paths from a node, less one that leads to the target."""
    row = trained.model.transitions.row(source)
    kept = ~((row.node == target) & (row.path == path))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row.step[kept], minlength=3))])
    node, paths, probability = (torch.from_numpy(column[kept]) for column in (row.node, row.path, row.probability))
    columns = (torch.from_numpy(indptr), node, paths, probability)
    return PathRows(torch.tensor([0]), *columns, len(indptr) - 1, trained.model.log_degree)


def test_without_a_path_the_answer_is_that_of_the_graph_without_it():
    trained, num_alone = by_parts(("vectors", "paths")), 0
    names = trained.graph.relation_names
    for source, kind, target in LINKS:
        found = trained.explain_link(source, trained.names[kind], target)
        for path in found.paths:
            number = path_of([names.index(relation) for relation in path.relations], len(names))
            log_odds = in_float64(trained, (source, kind, target), rows_without(trained, source, target, number))
            assert path.probability_without == pytest.approx(1 / (1 + np.exp(-log_odds)), rel=1e-9)
            num_alone += len(found.paths) == 1
        for term in found.terms:
            log_odds = found.answer.log_odds - term.value
            assert term.probability_without == pytest.approx(1 / (1 + np.exp(-log_odds)), rel=1e-9)
    assert num_alone > 3


def test_the_path_that_is_the_link_is_no_evidence_and_that_the_link_is_known_is_said():
    trained = by_parts(("paths",))
    found = trained.explain_link(0, "likes", 1)
    assert found.known and ("likes",) not in [path.relations for path in found.paths]
    assert ("likes",) in [path.relations for path in trained.explain_link(0, "knows", 1).paths]
    assert not trained.explain_link(0, "likes", 2).known


def test_where_no_path_leads_that_is_said():
    trained = by_parts(("paths",), num_steps=1)
    found = trained.explain_link(0, "likes", 4)
    assert [(term.kind, term.name) for term in found.terms[1:]] == [("no path", "no path within 1 step")] and not found.paths
    weight = trained.model.link_head.part_weights[0] * trained.model.link_head.paths.unreached[0]
    assert found.terms[1].value == pytest.approx(weight.item())


def test_paths_have_their_walks_and_the_nodes_between():
    #   0 ─ likes → 1 ─ likes → 3; 0 likes nobody else, as its link to 2 is held out
    found = by_parts(("paths",)).explain_link(0, "knows", 3)
    (path,) = [path for path in found.paths if path.relations == ("likes", "likes")]
    assert [walk.nodes for walk in path.walks] == [(0, 1, 3)] and path.num_walks == 1 and path.num_between == 1
    assert [(one.node, one.step, one.share) for one in path.between] == [(1, 1, 1.0)]
    assert 1 in found.shared_neighbours and set(found.shared_neighbours).isdisjoint({0, 3})
    values = [abs(path.value) for path in found.paths]
    assert values == sorted(values, reverse=True)


def test_neighbourhoods_are_explained_as_of_one_head():
    trained = by_parts()
    found = trained.explain_link(0, "likes", 5, mode="all")
    source, target = found.ends
    assert (source.target, target.target) == (0, 5) and source.mode == "all"
    for end in found.ends:
        assert end.answer.log_odds == pytest.approx(found.answer.log_odds, rel=1e-9)
        assert end.attention.sum() == pytest.approx(1)
    names, first = trained.graph.relation_names, (source.neighbour[0], source.path[0])  # left out, by the model's own encoder
    neighbourhood = trained.sampler(torch.tensor([0]), mode="all", draw=-1)
    rows = zip(neighbourhood.node[0].tolist(), neighbourhood.path[0].tolist(), strict=True)
    other_rows = torch.tensor([[(node, path_name(path, names)) != first for node, path in rows]])
    with torch.no_grad():
        left = replace(neighbourhood, mask=neighbourhood.mask & other_rows)
        encoded = trained.exact.encode(torch.tensor([0]), left), trained.exact.represent(np.array([5]), "all")
        head = trained.model.link_head
        ends = [linear(head.projection, end) for end in encoded]
        score = head.part_weights[1] * head.neighbourhood_decoder(*ends, torch.tensor([0]))
    log_odds = found.answer.log_odds - found.parts[1].value + score.item()
    assert source.answer.log_odds - source.effect[0] == pytest.approx(log_odds, rel=1e-6)


def test_a_known_link_is_no_evidence_for_itself_unless_neighbourhoods_are_a_part():
    with_them, without = by_parts(), by_parts(("vectors", "paths"))
    assert without.explain_link(0, "likes", 1).known_in_words.endswith("that it is there is no evidence here.")
    assert "may be evidence for itself here" in with_them.explain_link(0, "likes", 1).known_in_words
    assert {one.explain_link(0, "likes", 5).known_in_words for one in (with_them, without)} == {"It is not a known link."}


def test_without_neighbourhoods_there_are_none_to_explain_and_a_node_has_no_rows_but_a_note():
    trained = by_parts(("vectors", "paths"))
    assert trained.explain((0, "likes", 5)).neighbourhood is None and trained.explain((0, "likes", 5)).ends == ()
    found = trained.explain(0)
    assert found.note == "Links of this model are scored by vectors and paths: no neighbourhoods are looked at."
    assert len(found) == 0 and found.paths == found.depths == () and found.effect is None and len(found.attention) == 0
    assert repr(found) == f"Explanation(0: {found.note})" and found.note in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["note"] == found.note and found.to_dict()["rows"] == []
    with pytest.raises(GatasError, match=r"scored by vectors and paths.*draw a link"):
        draw_explanation(found)
    assert by_parts().explain(0).note is None


def test_links_are_explained_by_parts_only_where_there_are_any():
    assert isinstance(by_parts(("paths",)).explain((0, "likes", 5)), LinkExplanation)
    with_pair_head = Predictor(predictor(likes()), likes())
    assert isinstance(with_pair_head.explain_link(0, "likes", 5), Explanation)
    assert with_pair_head.explain_link(0, "likes", 5).to_dict() == with_pair_head.explain((0, "likes", 5)).to_dict()


def test_it_is_shown_as_text_html_and_json():
    found = by_parts().explain_link(0, "likes", 2)
    content = json.loads(json.dumps(found.to_dict()))
    assert content["source"] == 0 and content["type"] == "likes" and content["target"] == 2 and content["known"] is False
    values = [one["value"] for one in (*content["terms"], *content["paths"])]
    assert sum(values) == pytest.approx(content["answer"]["log_odds"], rel=1e-9)
    assert content["num_paths"] == len(found.paths) and content["neighbourhood"]["other"]["target"] == 2
    assert len(found.to_dict(top=1)["paths"]) == 1
    assert repr(found).startswith("LinkExplanation(0 – likes → 2: ") and "log-odds" in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("parts", SUBSETS, ids="+".join)
def test_a_new_node_is_explained_as_it_is_answered(parts):
    trained = by_parts(parts).with_new_nodes(None, ([12, 0], ["likes", "knows"], [0, 12]))
    found = [trained.explain_link(12, "likes", 1), trained.explain_link(5, "knows", 12)]
    chances = trained.predict_links([12, 5], ["likes", "knows"], [1, 12])
    assert [one.answer.probability for one in found] == pytest.approx(chances.tolist(), rel=1e-6)
    if "paths" in parts:
        (path,) = [path for path in found[0].paths if path.relations == ("likes", "likes")]
        assert [walk.nodes for walk in path.walks] == [(12, 0, 1)]
        degrees = log_degrees(trained.graph.joined())
        assert path.probability_back / path.probability == pytest.approx(float((degrees[12] - degrees[1]).exp()), rel=1e-6)


def test_probabilities_are_those_that_are_predicted():
    trained = by_parts()
    source, kind, target = (list(column) for column in zip(*LINKS, strict=True))
    chances = trained.predict_links(source, [trained.names[one] for one in kind], target)
    found = [trained.explain_link(one, trained.names[own], other).answer.probability for one, own, other in LINKS]
    assert found == pytest.approx(chances.tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [((0, "like", 5), "there is no type of link 'like'. Did you mean 'likes'"), ((0, "likes", 50), "id 50")],
)
def test_what_is_unknown_is_refused(asked, message):
    with pytest.raises(GatasError, match=message):
        by_parts(("paths",)).explain_link(*asked)
