"""`serve`: uvicorn, with signals that end it in good order or bring in a new model."""

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
from gatas.serving.desk import Desk
from gatas.serving.logs import log
from gatas.serving.served import Served
from gatas.serving.settings import Settings, check_guarded

HEADER_SECONDS = 10.0
"""For the first line and the headers of a request; a connection that is slower is closed."""


class Patient(H11Protocol):
    """Waits for a request, but not for ever: uvicorn itself limits the time between requests only."""

    patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.patience = self.loop.call_later(HEADER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy and self.patience is not None:
            self.patience.cancel()
            self.patience = None
        elif not busy and self.patience is None:
            self.patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.patience is not None:
            self.patience.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """SIGTERM and Ctrl-C: no longer ready, then no longer listening, then answers that are under way, then the end.

    SIGHUP: the run folder is loaded again.
    """

    def __init__(self, desk: Desk, listening: Callable[[str], None] = lambda address: None) -> None:
        self.desk, self.listening = desk, listening
        settings = desk.settings
        super().__init__(
            uvicorn.Config(
                make_app(desk),
                host=settings.host,
                port=settings.port,
                http=Patient,
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
        """Where it listens, as a URL."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def on_tick(self, counter: int) -> bool:
        return self.desk.failure is not None or await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.leave, signal.SIGINT: self.leave, signal.SIGHUP: self.renew}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def leave(self) -> None:
        """End in good order; asked a second time, at once."""
        if self.desk.leaving:
            self.force_exit = self.should_exit = True
            return
        log("ending")
        self.desk.leaving = True
        self.loop.call_later(self.desk.settings.notice_seconds, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

    def renew(self) -> None:
        """Load the run folder again, beside what goes on; the log says how it went."""
        self.desk.renew_beside(wait=True)  # a signal has nobody to be refused to


def serve(settings: Settings, load: Callable[[], Served], listening: Callable[[str], None] = lambda address: None) -> None:
    """Serve until a signal comes. A first model that cannot be loaded ends it."""
    check_guarded(settings)
    desk = Desk(settings, load)
    try:
        Server(desk, listening).run()
    except SystemExit:  # uvicorn's way to say that it cannot listen
        raise ConfigError(f"{settings.host} port {settings.port} cannot be listened at. Choose another by --port.") from None
    if desk.failure is not None:
        raise desk.failure
    log("ended")
    if desk.busy:  # a thread that loads a model cannot be stopped, and must not see the interpreter go
        os._exit(0)
