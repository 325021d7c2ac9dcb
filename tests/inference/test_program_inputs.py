"""What programs take: neighbourhoods as the predictor sees them, or a reason why there are none."""

import numpy as np
import pytest

from gatas.errors import GatasError
from tests.inference.programs import close, run_onnx, toy, written

__all__ = ["written"]


def test_other_nodes_and_fewer_than_a_batch_are_answered_as_by_the_predictor(written):
    predictor, path = toy("classes"), written("classes")
    for ids in (["a7", "a2", "a29"], ["a4"], [f"a{node}" for node in range(5)]):
        found = run_onnx(path, predictor.program_inputs(ids, batch_size=5))
        assert close(found["probabilities"][: len(ids)], predictor.predict(ids).probabilities)
        assert close(found["representations"][: len(ids)], predictor.embed(ids))


def test_other_links_are_answered_as_by_the_predictor(written):
    predictor, path = toy("three parts"), written("three parts")
    sources, types, targets = [1, 4, 9], ["knows", "likes", "knows"], [2, 11, 9]
    found = run_onnx(path, predictor.link_program_inputs(sources, types, targets, batch_size=5))
    assert close(found["probabilities"][:3], predictor.predict_links(sources, types, targets))


def test_new_nodes_are_answered_by_a_program_that_was_exported_before(written):
    predictor, path = toy("labels"), written("labels")
    larger = predictor.with_new_nodes(np.full((1, 4), 0.5, np.float32), ([20, 20], [3, 5]), ids=[20])
    found = run_onnx(path, larger.program_inputs([20, 3], batch_size=5))
    assert close(found["probabilities"][:2], larger.predict([20, 3]).probabilities)


def test_new_nodes_are_refused_where_embeddings_are_inside(tmp_path):
    larger = toy("classes").with_new_nodes(np.zeros((1, 5), np.float32), (["z"], ["a3"]), ids=["z"])
    with pytest.raises(GatasError, match="node 'z' is new, and the program has learned embeddings of the 30 nodes"):
        larger.program_inputs(["z"])


def test_neighbourhoods_that_do_not_fit_are_refused_with_the_size_that_does(tmp_path):
    with pytest.raises(
        GatasError, match=r"has 16 neighbours, but the program takes 3. Export it with a sample_size of 16 or more"
    ):
        toy("pairs").export(tmp_path / "toy.onnx", sample_size=3)


def test_more_nodes_than_a_batch_takes_are_refused():
    with pytest.raises(GatasError, match="7 nodes were given, but the program takes 5 at a time"):
        toy("classes").program_inputs([f"a{node}" for node in range(7)], batch_size=5)


def test_sizes_below_one_are_refused():
    with pytest.raises(GatasError, match="batch_size is 0; expected a whole number from 1 on"):
        toy("classes").program_inputs(["a1"], batch_size=0)
