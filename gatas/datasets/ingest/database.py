"""DuckDB, within a given memory: joins and sorts that spill to disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatas.errors import GraphError, MissingExtraError

if TYPE_CHECKING:
    import duckdb

OUTSIDE = 220 << 20
"""Bytes for the interpreter, libraries and arrays in hand, which DuckDB does not count."""

LEAST = 300 << 20
"""Bytes that an ingest needs at least."""

NODE_BYTES = 60
"""What is held of each node of a table, about: label, split, type, and copies in hand."""


def database_memory(memory: int) -> int:
    """Return what DuckDB may take of all the memory that the process may."""
    if memory < LEAST:
        raise GraphError(
            f"--memory is {memory:,} bytes; expected {LEAST >> 20} MB at least, of which the interpreter takes most."
        )
    return int(0.9 * (memory - OUTSIDE))


@contextmanager
def connected(memory: int, threads: int, spill: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a database in memory that keeps to its limits; its errors become ours."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("gatas ingest needs DuckDB", "ingest") from None
    settings: Any = {
        "memory_limit": f"{database_memory(memory)}B",
        "temp_directory": str(spill),
        "threads": threads,
        "preserve_insertion_order": False,
    }
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = false")
    try:
        yield connection
    except (duckdb.InterruptException, RuntimeError) as error:  # which of them a Ctrl-C becomes, depends on when it comes
        if isinstance(error, RuntimeError) and "interrupted" not in str(error):
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        reason = " ".join(str(error).split())
        raise GraphError(
            f"the database could not go on ({reason[:300]}). What was done so far is kept: make room on the disk, or give more "
            "--memory, and run the same command again."
        ) from None
    finally:
        connection.close()


def leave_room(connection: "duckdb.DuckDBPyConnection", memory: int, num_nodes: int) -> None:
    """Leave room for nodes, which are in memory beside the database from here on."""
    connection.execute(f"SET memory_limit = '{database_memory(max(LEAST, memory - NODE_BYTES * num_nodes))}B'")


def parquet(*paths: Path) -> str:
    """Return files as a table of SQL."""
    listed = ", ".join(quoted(str(path)) for path in paths)
    return f"read_parquet([{listed}])"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
