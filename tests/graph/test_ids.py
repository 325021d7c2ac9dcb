"""NodeIds: ids in, ids out."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas.errors import GraphError
from gatas.graph import NodeIds

text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(text, unique=True) | st.lists(st.integers(-(2**63), 2**63 - 1), unique=True))
def test_ids_come_back_out_as_they_went_in(ids):
    node_ids = NodeIds.of(ids)
    assert node_ids.tolist() == ids and len(node_ids) == len(ids)
    assert [node_ids[index] for index in range(len(ids))] == ids == node_ids.take(np.arange(len(ids)))
    assert node_ids.indices(ids).tolist() == list(range(len(ids))) == [node_ids.get(one) for one in ids]


@pytest.mark.parametrize(
    "ids",
    [np.array(["b", "a"]), np.array(["b", "a"], object), pa.array(["b", "a"]), pa.array(["x", "b", "a"])[1:], iter(["b", "a"])],
    ids=["numpy text", "numpy objects", "arrow", "arrow slice", "iterator"],
)
def test_text_is_taken_from_any_container(ids):
    assert NodeIds.of(ids).tolist() == ["b", "a"]


@pytest.mark.parametrize("ids", [np.array([7, 5], np.uint8), np.array([7, 5], np.uint64), pa.array([1, 7, 5])[1:]])
def test_integers_are_taken_from_any_width(ids):
    assert NodeIds.of(ids).tolist() == [7, 5]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], "duplicate id 'a': ids must be distinct"),
        ([1, 2, 1], "duplicate id 1: ids must be distinct"),
        (["a", None], "the id of node 1 is missing"),
        ([1, "a"], "ids must all be integers below 2\\^63 or all be text"),
        ([1.5, 2.5], "ids are of type double \\(first value 1.5\\)"),
        ([True, False], "ids are of type bool"),
        ([2**70], "ids must all be integers below 2\\^63"),
        (np.array([2**63], np.uint64), "ids must all be integers below 2\\^63"),
        (["\ud800"], "ids must all be"),
        ([(1, 2)], "ids are of type list"),
    ],
)
def test_ids_that_would_lose_information_are_refused(ids, message):
    with pytest.raises(GraphError, match=message):
        NodeIds.of(ids)


@pytest.mark.parametrize("count", [1, 50])
def test_integers_written_as_text_and_text_written_as_integers_are_found(count):
    integers, texts = NodeIds.of(range(10, 110)), NodeIds.of([str(k) for k in range(10, 110)])
    wanted = list(range(20, 20 + count))
    for ids in (integers, texts):
        assert ids.indices(wanted).tolist() == ids.indices([str(k) for k in wanted]).tolist() == list(range(10, 10 + count))


@pytest.mark.parametrize("node_id", ["007", "+7", "7.0", 7.0, True, None, "²", 2**70, "9" * 30, ""])
def test_what_only_resembles_an_integer_id_is_not_found(node_id):
    with pytest.raises(GraphError, match="no node has the id"):
        NodeIds.of([1, 7]).indices([node_id])
    assert NodeIds.of([1, 7]).get(node_id) == -1


@pytest.mark.parametrize("node_id", [7.0, True, None, "\ud800", "A"])
def test_what_only_resembles_a_text_id_is_not_found(node_id):
    with pytest.raises(GraphError, match="no node has the id"):
        NodeIds.of(["7.0", "True", "None", "a"]).indices([node_id])
    assert NodeIds.of(["7.0", "True", "None", "a"]).get(node_id) == -1


@pytest.mark.parametrize("position", [0, 30])
def test_a_near_miss_is_answered_with_the_nearest_ids(position):
    ids = NodeIds.of(["alice", "alicia", "bob", *(f"p{k}" for k in range(40))])
    wanted = [f"p{k}" for k in range(40)]
    wanted[position] = "alise"
    with pytest.raises(GraphError, match=r"no node has the id 'alise'. Nearest known: alice"):
        ids.indices(wanted[: position + 1])


@pytest.mark.parametrize("index", [-1, 2])
def test_a_node_outside_has_no_id(index):
    with pytest.raises(GraphError, match="nodes have indices 0 to 1"):
        NodeIds.of(["a", "b"])[index]


@pytest.mark.parametrize(
    ("values", "content"),
    [
        ([0, 5], b"ab"),
        ([0, 2, 1], b"ab"),
        ([-1, 2], b"ab"),
        ([0, 1], b"\xff"),
        ([], b""),
    ],
)
def test_offsets_and_bytes_that_are_no_text_are_refused(values, content):
    with pytest.raises(GraphError, match="the stored ids are damaged"):
        NodeIds(np.array(values, np.int64), np.frombuffer(content, np.uint8))


def test_offsets_of_another_type_are_refused():
    with pytest.raises(GraphError, match="ids have type int32"):
        NodeIds(np.array([0, 1], np.int32), np.frombuffer(b"a", np.uint8))


@pytest.mark.parametrize(("ids", "are_integers"), [([3, 1], True), (["3", "1"], False)])
def test_ids_are_all_integers_or_all_text(ids, are_integers):
    assert NodeIds.of(ids).are_integers is are_integers
