"""A hub of a million edges: priced before anything is done, refused as a table, and affordable row by row."""

import numpy as np
import pytest

from gatas.errors import TooLargeError
from gatas.graph import Graph
from gatas.transitions import OnDemand, Transitions, estimate_cost

DEGREE = 1_000_000


@pytest.fixture(scope="module")
def star():
    return Graph.from_edges(np.zeros(DEGREE, np.int64), np.arange(1, DEGREE + 1), undirected=True)


def test_a_table_of_all_pairs_of_leaves_is_priced_and_refused(star):
    assert estimate_cost(star, 2).num_entries == pytest.approx(DEGREE**2, rel=1e-5)
    assert estimate_cost(star, 2, max_candidates=256).num_bytes < 4e9
    with pytest.raises(TooLargeError, match=r"max_candidates.*OnDemand"):
        Transitions.build(star, 2)


def test_rows_beside_a_hub_are_capped_at_every_step_and_say_what_they_dropped(star):
    rows = OnDemand(star, 2, max_candidates=256).rows([0, 1])
    counts = np.diff(rows.indptr).reshape(2, 3)
    assert counts.tolist() == [[1, 256, 0], [1, 1, 256]]
    kept = np.add.reduceat(rows.probability.astype(np.float64), rows.indptr[:-1][counts.ravel() > 0])
    dropped = rows.dropped_mass[counts > 0]
    assert kept + dropped == pytest.approx(1, abs=1e-5)
    assert rows.dropped_mass[1, 2] == pytest.approx(1 - 256 / (DEGREE - 1), abs=1e-5)
