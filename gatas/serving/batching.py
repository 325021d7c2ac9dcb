"""`Batcher`: requests wait in line, and one thread answers all that wait in one go."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from gatas.serving.questions import Question
from gatas.serving.refusal import come_back
from gatas.serving.replies import Outcome

BATCH_IDS = 1024
"""Ids that are answered in one go, about; a request is never divided."""


@dataclass(eq=False)
class Job:
    """A question, and who waits for its answer."""

    question: Question
    size: int
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[bytes]
    dropped: bool = False

    def alive(self) -> bool:
        return not self.dropped

    def settle(self, outcome: Outcome) -> None:
        """In the loop's own thread."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class Batcher:
    """A line of at most `max_waiting` requests; a request whose client has gone, or whose time is up, leaves it."""

    def __init__(self, answer: Callable[[list[Job]], list[Outcome]], max_waiting: int) -> None:
        self.answer, self.max_waiting = answer, max_waiting
        self.waiting: deque[Job] = deque()
        self.changed, self.ended = threading.Condition(), False
        self.thread = threading.Thread(target=self._work, name="gatas-answers", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self, seconds: float) -> None:
        """What waits is answered first."""
        with self.changed:
            self.ended = True
            self.changed.notify()
        self.thread.join(seconds)

    async def ask(self, question: Question, size: int) -> bytes:
        """The answer, as soon as it is this question's turn."""
        loop = asyncio.get_running_loop()
        job = Job(question, size, loop, loop.create_future())
        with self.changed:
            if len(self.waiting) >= self.max_waiting:
                raise come_back(429, "busy", f"{self.max_waiting} requests wait already. Come back in a moment.")
            self.waiting.append(job)
            self.changed.notify()
        try:
            return await job.answer
        except asyncio.CancelledError:
            job.dropped = True
            with self.changed, suppress(ValueError):
                self.waiting.remove(job)
            raise

    def _work(self) -> None:
        while jobs := self._next():
            outcomes = self.answer(jobs)
            for job, outcome in zip(jobs, outcomes, strict=True):
                with suppress(RuntimeError):  # the loop may be closed: then nobody waits
                    job.loop.call_soon_threadsafe(job.settle, outcome)

    def _next(self) -> list[Job]:
        """All that wait, up to some `BATCH_IDS`; none at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.waiting or self.ended)
            jobs = [self.waiting.popleft()] if self.waiting else []
            while self.waiting and sum(job.size for job in jobs) + self.waiting[0].size <= BATCH_IDS:
                jobs.append(self.waiting.popleft())
        return jobs
