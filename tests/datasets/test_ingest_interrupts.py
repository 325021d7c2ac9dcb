"""DuckDB says in two ways that a Ctrl-C came while it worked; both are a Ctrl-C to us, and other errors are what they are."""

import duckdb
import pytest

from gatas.datasets.ingest.database import LEAST, connected
from gatas.errors import GraphError


def raising(error, folder):
    with connected(LEAST, 1, folder):
        raise error


@pytest.mark.parametrize(
    "error", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")]
)
def test_an_interrupted_query_is_a_ctrl_c(error, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        raising(error, tmp_path)


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(RuntimeError, match="something else"):
        raising(RuntimeError("something else"), tmp_path)
    with pytest.raises(GraphError, match="the database could not go on"):
        raising(duckdb.OutOfMemoryException("no memory"), tmp_path)
