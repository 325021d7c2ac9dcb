"""`serve`: runs the application with uvicorn, with signals that shut it down in good order or load a new model.

This is the only module that touches uvicorn. What it overrides is not all documented: `tests/serving/test_uvicorn.py` says
what it relies on.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from gatas.errors import ConfigError
from gatas.serving.app import make_app
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.logs import log
from gatas.serving.service import ModelService
from gatas.serving.settings import ServerSettings, check_token

HEADER_SECONDS = 10.0
"""Seconds for the first line and the headers of a request; a slower connection is closed."""


class HeaderTimeoutProtocol(H11Protocol):
    """Closes connections whose headers do not arrive: uvicorn's own `timeout_keep_alive` ends with the first byte."""

    header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            self._stop_timer()
        elif self.header_timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self.header_timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self.header_timer is not None:
            self.header_timer.cancel()
            self.header_timer = None


class Server(uvicorn.Server):
    """Uvicorn, with signals of its own.

    SIGTERM and Ctrl-C shut it down: first it is no longer ready, then it stops listening, then requests in progress are
    answered. SIGHUP loads the run folder again.
    """

    def __init__(self, service: ModelService, listening: Callable[[str], None] = lambda address: None) -> None:
        self.service, self.listening = service, listening
        settings = service.settings
        super().__init__(
            uvicorn.Config(
                make_app(service),
                host=settings.host,
                port=settings.port,
                http=HeaderTimeoutProtocol,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=settings.grace_seconds,  # type: ignore[arg-type]
            )
        )

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        log("listening", address=self.address)
        self.listening(self.address)

    @property
    def address(self) -> str:
        """The URL that it listens on."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def on_tick(self, counter: int) -> bool:
        return self.service.failure is not None or await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.shut_down, signal.SIGINT: self.shut_down, signal.SIGHUP: self.reload}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def shut_down(self) -> None:
        """Shut down in good order; called a second time, at once."""
        if self.service.shutting_down:
            self.force_exit = self.should_exit = True
            return
        log("shutting down")
        self.service.shutting_down = True
        self.loop.call_later(self.service.settings.notice_seconds, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

    def reload(self) -> None:
        """Load the run folder again in the background; the log says how it went."""
        self.service.reload_in_background(wait=True)  # nobody would hear that another reload is going on


def serve(
    settings: ServerSettings, load: Callable[[], LoadedModel], listening: Callable[[str], None] = lambda address: None
) -> None:
    """Serve until a signal comes.

    Args:
        settings: Where to listen, and the limits.
        load: Loads the model, at the start and for every reload. If the first model cannot be loaded, its error is raised.
        listening: Called with the URL once the server listens.
    """
    check_token(settings)
    service = ModelService(settings, load)
    try:
        Server(service, listening).run()
    except SystemExit:  # uvicorn's way to say that it cannot listen
        raise ConfigError(f"cannot listen on {settings.host} port {settings.port}. Choose another port with --port.") from None
    if service.failure is not None:
        raise service.failure
    log("stopped")
    if service.busy:  # a thread that loads a model cannot be stopped, and must not see the interpreter go
        os._exit(0)
