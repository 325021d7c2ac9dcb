"""`ModelService`: the model that answers, the queue of requests before it, and the metrics beside it."""

import logging
import threading
from collections.abc import Callable
from time import perf_counter

from gatas.errors import GatasError
from gatas.serving.background_map import making_maps
from gatas.serving.batching import Batcher, QueuedRequest
from gatas.serving.errors import ApiError, model_not_ready
from gatas.serving.handlers import HandlerOutcome, handle_batch
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.logs import log
from gatas.serving.metrics import ServerMetrics
from gatas.serving.requests import ModelRequest
from gatas.serving.settings import ServerSettings


class ModelService:
    """Answers requests with a model that can be replaced at any time; every batch is answered by one model as a whole.

    Args:
        settings: Limits of the server.
        load: Loads the model, at the start and for every reload.
    """

    def __init__(self, settings: ServerSettings, load: Callable[[], LoadedModel]) -> None:
        self.settings, self.load, self.metrics = settings, load, ServerMetrics()
        self.model: LoadedModel | None = None
        self.failure: Exception | None = None  # why the first model could not be loaded, after which nothing is served
        self.shutting_down = False
        self.loading = threading.Lock()
        self.batcher = Batcher(self._handle, settings.max_waiting)
        self.metrics.waiting.set_function(lambda: len(self.batcher.queue))

    @property
    def ready(self) -> bool:
        return self.model is not None and not self.shutting_down

    @property
    def busy(self) -> bool:
        """Whether a thread is still at work."""
        return self.loading.locked() or self.batcher.thread.is_alive() or making_maps()

    def start(self) -> None:
        """Begin to load the model; requests that come before it is loaded are told to retry."""
        self.batcher.start()
        self.reload_in_background(self._first_loaded)

    def stop(self) -> None:
        self.batcher.stop(self.settings.grace_seconds)

    def current_model(self) -> LoadedModel:
        if self.model is None:
            raise model_not_ready()
        return self.model

    async def submit(self, request: ModelRequest, size: int = 1) -> bytes:
        """Return the response to a request as JSON; `size` is the number of ids that it asks for."""
        self.current_model()
        return await self.batcher.submit(request, size)

    def reload(self, *, wait: bool = False) -> LoadedModel:
        """Load the run folder again. A model that cannot be loaded is rejected, and the present one goes on answering.

        Args:
            wait: Whether to wait while another reload is going on; otherwise that is an error.
        """
        if not self.loading.acquire(blocking=wait):
            raise ApiError(409, "reloading", "a model is being loaded already. Retry when it is loaded.")
        try:
            return self._replace_model()
        except Exception as error:
            self.metrics.reloads.labels("refused").inc()
            reason = str(error) if isinstance(error, GatasError) else None
            serving = None if self.model is None else self.model.fingerprint
            log("model rejected", level=logging.ERROR, error=error, reason=reason, serving=serving)
            raise
        finally:
            self.loading.release()

    def _replace_model(self) -> LoadedModel:
        started = perf_counter()
        model = self.load()
        self.model = model
        self.metrics.model.info({"fingerprint": model.fingerprint, "task": model.predictor.task})
        self.metrics.reloads.labels("loaded").inc()
        log("model loaded", model=model.fingerprint, seconds=round(perf_counter() - started, 3))
        return model

    def reload_in_background(
        self, done: Callable[[Exception | None], None] = lambda error: None, *, wait: bool = False
    ) -> None:
        """Reload in a thread of its own, and call `done` with the error, or with None."""

        def work() -> None:
            try:
                self.reload(wait=wait)
            except Exception as error:
                done(error)
            else:
                done(None)

        threading.Thread(target=work, name="gatas-load", daemon=True).start()

    def _first_loaded(self, error: Exception | None) -> None:
        self.failure = error

    def _handle(self, batch: list[QueuedRequest]) -> list[HandlerOutcome]:
        """Answer a batch; called in the batcher's thread."""
        started = perf_counter()
        try:
            requests, wanted = [queued.request for queued in batch], [queued.is_wanted for queued in batch]
            return handle_batch(self.current_model(), requests, wanted, self.batcher.answer_meanwhile)
        except Exception as error:
            return [error] * len(batch)
        finally:
            self.metrics.batch.observe(len(batch))
            self.metrics.batch_seconds.observe(perf_counter() - started)
