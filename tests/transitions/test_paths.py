import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas.errors import TransitionError
from gatas.transitions.paths import (
    extend_path,
    last_relation,
    num_paths,
    parent_path,
    path_length,
    path_name,
    path_of,
    path_relations,
    relation_table,
)

A, B = 0, 1


def test_the_papers_example_is_in_level_order():
    # §3.1: R̃ = {A, B} and C = 2 give {(A), (B), (A, A), (A, B), (B, A), (B, B)}
    assert num_paths(2, 2) == 6
    assert [path_relations(m, 2) for m in range(6)] == [(A,), (B,), (A, A), (A, B), (B, A), (B, B)]


def test_phi_and_delta_split_the_papers_path_a_b_c():
    path = path_of((0, 1, 2), 3)
    assert last_relation(path, 3) == 2
    assert path_relations(parent_path(path, 3), 3) == (0, 1)


@given(path=st.integers(-1, 10_000), num_relations=st.integers(1, 9), data=st.data())
def test_a_path_extended_then_split_is_unchanged(path, num_relations, data):
    relation = data.draw(st.integers(0, num_relations - 1))
    longer = extend_path(path, relation, num_relations)
    assert (parent_path(longer, num_relations), last_relation(longer, num_relations)) == (path, relation)


@given(relations=st.lists(st.integers(0, 4), max_size=6))
def test_relations_come_back_from_a_path_id(relations):
    path = path_of(relations, 5)
    assert path_relations(path, 5) == tuple(relations)
    assert path_length(path, 5) == len(relations)


@given(paths=st.lists(st.integers(-1, 400), min_size=1), num_relations=st.integers(1, 6))
def test_arrays_give_what_numbers_give(paths, num_relations):
    array = np.array(paths)
    for function in (last_relation, parent_path, path_length):
        assert function(array, num_relations).tolist() == [function(path, num_relations) for path in paths]
    table = relation_table(array, num_relations, max(path_length(path, num_relations) for path in paths))
    assert [tuple(r for r in row if r >= 0) for row in table.tolist()] == [path_relations(p, num_relations) for p in paths]


def test_longer_paths_have_larger_ids():
    lengths = path_length(np.arange(num_paths(4, 3)), 4)
    assert (np.diff(lengths) >= 0).all() and np.bincount(lengths).tolist() == [0, 4, 16, 64]


def test_ids_that_would_overflow_are_refused_with_the_number():
    assert num_paths(1_290, 3) > 2**31  # fits into int64
    with pytest.raises(TransitionError, match=r"100001 relations over 4 steps make 10\^20\.0 paths"):
        num_paths(100_001, 4)
    with pytest.raises(TransitionError, match="400 steps"):
        num_paths(10, 400)


def test_a_relation_out_of_range_is_refused():
    with pytest.raises(TransitionError, match="relation 3 is outside 0 to 2"):
        path_of((0, 3), 3)


def test_a_path_is_read_by_its_names():
    assert path_name(path_of((2, 1), 3), ("self", "parent", "spouse")) == "spouse → parent"
