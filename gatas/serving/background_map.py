"""`BackgroundMap`: a map of the nodes' representations, made once, in a thread of its own, when it is first asked for."""

import logging
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

from pydantic_core import to_json
from threadpoolctl import threadpool_limits

from gatas.errors import GatasError
from gatas.inference.embedding_map import EmbeddingMap
from gatas.serving.logs import log

THREAD = "gatas-map"


def making_maps() -> bool:
    """Return whether a map is being made, be it of a model that another has replaced."""
    return any(thread.name == THREAD for thread in threading.enumerate())


class BackgroundMap:
    """Makes a map while requests go on being answered, and keeps the response.

    Args:
        fingerprint: Of the model that the map is of.
        make: Makes the map. It runs beside the model's own thread, so that it must not ask the model.
    """

    def __init__(self, fingerprint: str, make: Callable[[], EmbeddingMap]) -> None:
        self.fingerprint, self.make = fingerprint, make
        self.lock = threading.Lock()
        self.found: bytes | None = None
        self.thread: threading.Thread | None = None

    def response(self) -> tuple[bool, bytes]:
        """Return whether the map is there, or known never to be, and what to answer; the first call begins to make it."""
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._work, name=THREAD, daemon=True)
                self.thread.start()
        found = self.found
        return (False, self._body("computing")) if found is None else (True, found)

    def _work(self) -> None:
        started = perf_counter()
        try:
            with threadpool_limits(1, "openmp"):  # of this thread: the other cores go on answering
                body = self._body("ready", **_columns(self.make()))
        except GatasError as error:
            body = self._body("unavailable", reason=str(error))
        except Exception as error:
            log("map failed", level=logging.ERROR, error=error, model=self.fingerprint)
            body = self._body("unavailable", reason="the map could not be made; the server's log says why.")
        log("map made", model=self.fingerprint, seconds=round(perf_counter() - started, 3))
        self.found = body

    def _body(self, status: str, **found: Any) -> bytes:
        blank: dict[str, Any] = {
            "reason": None,
            "method": None,
            "known_as": None,
            "num_nodes": 0,
            "ids": [],
            "x": [],
            "y": [],
            "values": [],
        }
        return to_json({"model": self.fingerprint, "status": status, **blank, **found})


def _columns(found: EmbeddingMap) -> dict[str, Any]:
    x, y = ([round(value, 3) for value in axis] for axis in found.coordinates.T.tolist())
    return {
        "method": found.method,
        "known_as": found.known_as,
        "num_nodes": found.num_nodes,
        "ids": found.ids.to_pylist(),
        "x": x,
        "y": y,
        "values": found.values,
    }
