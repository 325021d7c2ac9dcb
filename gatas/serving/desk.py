"""`Desk`: the model that answers, the line before it, and the counters beside it."""

import logging
import threading
from collections.abc import Callable
from time import perf_counter

from gatas.errors import GatasError
from gatas.serving.batching import Batcher, Job
from gatas.serving.logs import log
from gatas.serving.metrics import Metrics
from gatas.serving.questions import Question
from gatas.serving.refusal import Refusal, loading
from gatas.serving.replies import Outcome, answer_all
from gatas.serving.served import Served
from gatas.serving.settings import Settings


class Desk:
    """A batch is answered by one model from beginning to end, whichever takes its place meanwhile."""

    def __init__(self, settings: Settings, load: Callable[[], Served]) -> None:
        self.settings, self.load, self.metrics = settings, load, Metrics()
        self.served: Served | None = None
        self.failure: Exception | None = None  # of the first load, after which there is nothing to serve
        self.leaving = False
        self.renewing = threading.Lock()
        self.batcher = Batcher(self._answer, settings.max_waiting)
        self.metrics.waiting.set_function(lambda: len(self.batcher.waiting))

    @property
    def ready(self) -> bool:
        return self.served is not None and not self.leaving

    @property
    def busy(self) -> bool:
        """Whether a thread is at work still."""
        return self.renewing.locked() or self.batcher.thread.is_alive()

    def open(self) -> None:
        """Begin to load; requests can come already, and are told so."""
        self.batcher.start()
        self.renew_beside(self._first_loaded)

    def close(self) -> None:
        self.batcher.stop(self.settings.grace_seconds)

    def current(self) -> Served:
        if self.served is None:
            raise loading()
        return self.served

    async def ask(self, question: Question, size: int = 1) -> bytes:
        """The answer as JSON."""
        self.current()
        return await self.batcher.ask(question, size)

    def renew(self, *, wait: bool = False) -> Served:
        """Load the run folder again. What cannot be loaded is refused, and the model that there is goes on answering.

        While one is being loaded, another is refused unless it may `wait`.
        """
        if not self.renewing.acquire(blocking=wait):
            raise Refusal(409, "reloading", "a model is being loaded already. Wait until it is.")
        try:
            return self._loaded()
        except Exception as error:
            self.metrics.reloads.labels("refused").inc()
            reason = str(error) if isinstance(error, GatasError) else None
            log("model refused", level=logging.ERROR, error=error, reason=reason, serving=self._fingerprint())
            raise
        finally:
            self.renewing.release()

    def _loaded(self) -> Served:
        started = perf_counter()
        served = self.load()
        self.served = served
        self.metrics.model.info({"fingerprint": served.fingerprint, "task": served.predictor.task})
        self.metrics.reloads.labels("loaded").inc()
        log("model loaded", model=served.fingerprint, seconds=round(perf_counter() - started, 3))
        return served

    def renew_beside(self, done: Callable[[Exception | None], None] = lambda error: None, *, wait: bool = False) -> None:
        """The same in a thread of its own, which says how it went."""

        def work() -> None:
            try:
                self.renew(wait=wait)
            except Exception as error:
                done(error)
            else:
                done(None)

        threading.Thread(target=work, name="gatas-load", daemon=True).start()

    def _first_loaded(self, error: Exception | None) -> None:
        self.failure = error

    def _fingerprint(self) -> str | None:
        return None if self.served is None else self.served.fingerprint

    def _answer(self, jobs: list[Job]) -> list[Outcome]:
        """What the batcher's thread does."""
        started = perf_counter()
        try:
            return answer_all(self.current(), [job.question for job in jobs], [job.alive for job in jobs])
        except Exception as error:
            return [error] * len(jobs)
        finally:
            self.metrics.batch.observe(len(jobs))
            self.metrics.batch_seconds.observe(perf_counter() - started)
