"""`ReadAhead`: rows of the next targets, made by a thread in the background while the present ones are at work."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.transitions.build import Rows
from gatas.transitions.table import Row, Setting, TransitionSource

KEPT = 2
"""Targets whose rows are at hand: those that are asked for now, and those that come next."""


class ReadAhead:
    """A source of rows that can be announced ahead of time. Announced or not, the rows are the same.

    A GPU that makes rows itself needs no announcement, and makes them from what `source` is.

    `touch` is given the nodes of rows that were made ahead, to have what is known of these read too.
    """

    def __init__(self, source: TransitionSource, touch: Callable[[NDArray[Any]], None] = lambda nodes: None) -> None:
        self.source, self.touch = source, touch
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._waiting: dict[bytes, Future[Rows]] = {}

    @property
    def setting(self) -> Setting:
        return self.source.setting

    def ahead(self, targets: Any) -> None:
        """Make the rows of these targets, each once and in ascending order, in the background, unless they are at hand."""
        wanted = np.unique(np.asarray(targets))
        known = self._waiting.get(wanted.tobytes())
        if known is None or (known.done() and known.exception() is not None):
            self._keep(wanted.tobytes(), self._pool.submit(self._made, wanted))

    def row(self, target: int) -> Row:
        """Return the candidates of one node."""
        return self.source.row(target)

    def rows(self, targets: Any) -> Rows:
        """Return the candidates of several nodes, in the order asked for."""
        waiting = self._waiting.get(np.asarray(targets).tobytes())
        if waiting is None:  # by the same thread: two at once would take twice the memory
            waiting = self._pool.submit(self.source.rows, targets)
        return waiting.result()

    def _made(self, wanted: NDArray[Any]) -> Rows:
        rows = self.source.rows(wanted)
        self.touch(rows.node)
        return rows

    def _keep(self, key: bytes, rows: "Future[Rows]") -> None:
        self._waiting[key] = rows
        while len(self._waiting) > KEPT:
            del self._waiting[next(iter(self._waiting))]
