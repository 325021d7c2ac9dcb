"""`Batcher`: requests wait in a queue, and one thread answers those that wait together."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gatas.serving.errors import retry_later
from gatas.serving.handlers import LONG_REQUESTS, HandlerOutcome
from gatas.serving.requests import ModelRequest

BATCH_IDS = 1024
"""Ids that are answered together, about; a request is never divided."""


@dataclass(eq=False)
class QueuedRequest:
    """A request, and the future that waits for its response."""

    request: ModelRequest
    size: int
    loop: asyncio.AbstractEventLoop
    response: asyncio.Future[bytes]
    cancelled: bool = False

    def is_wanted(self) -> bool:
        """Whether a client still waits for the response."""
        return not self.cancelled

    def settle(self, outcome: HandlerOutcome) -> None:
        """Pass the outcome on; called in the loop's own thread."""
        if self.response.done():
            return
        if isinstance(outcome, Exception):
            self.response.set_exception(outcome)
        else:
            self.response.set_result(outcome)


class Batcher:
    """A queue of at most `max_waiting` requests, and the thread that answers them.

    A request leaves the queue when its client disconnects or its time is up.
    """

    def __init__(self, handle: Callable[[list[QueuedRequest]], list[HandlerOutcome]], max_waiting: int) -> None:
        self.handle, self.max_waiting = handle, max_waiting
        self.queue: deque[QueuedRequest] = deque()
        self.changed, self.stopping = threading.Condition(), False
        self.thread = threading.Thread(target=self._work, name="gatas-batcher", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self, seconds: float) -> None:
        """Answer the requests that wait, then end the thread."""
        with self.changed:
            self.stopping = True
            self.changed.notify()
        self.thread.join(seconds)

    async def submit(self, request: ModelRequest, size: int) -> bytes:
        """Queue a request, and return its response once it is there."""
        loop = asyncio.get_running_loop()
        queued = QueuedRequest(request, size, loop, loop.create_future())
        with self.changed:
            if len(self.queue) >= self.max_waiting:
                raise retry_later(429, "busy", f"{self.max_waiting} requests are waiting already. Retry in a moment.")
            self.queue.append(queued)
            self.changed.notify()
        try:
            return await queued.response
        except asyncio.CancelledError:
            queued.cancelled = True
            with self.changed, suppress(ValueError):
                self.queue.remove(queued)
            raise

    def answer_meanwhile(self) -> None:
        """Answer the requests that wait and take little time; called in the batcher's thread, amid one that takes long."""
        with self.changed:
            batch, size = list[QueuedRequest](), 0
            for queued in list(self.queue):
                if not isinstance(queued.request, LONG_REQUESTS) and (not batch or size + queued.size <= BATCH_IDS):
                    batch.append(queued)
                    size += queued.size
                    self.queue.remove(queued)
        if batch:
            self._answer(batch)

    def _work(self) -> None:
        while batch := self._next_batch():
            self._answer(batch)

    def _answer(self, batch: list[QueuedRequest]) -> None:
        outcomes = self.handle(batch)
        for queued, outcome in zip(batch, outcomes, strict=True):
            with suppress(RuntimeError):  # the loop may be closed: then nobody waits
                queued.loop.call_soon_threadsafe(queued.settle, outcome)

    def _next_batch(self) -> list[QueuedRequest]:
        """Wait for requests; return those with about `BATCH_IDS` ids together, or none once the batcher is stopped."""
        with self.changed:
            self.changed.wait_for(lambda: self.queue or self.stopping)
            batch = [self.queue.popleft()] if self.queue else []
            while self.queue and sum(queued.size for queued in batch) + self.queue[0].size <= BATCH_IDS:
                batch.append(self.queue.popleft())
        return batch
