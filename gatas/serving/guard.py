"""`Guard`: what every request passes: who asks, how much, how long; and what is counted and logged of it."""

import asyncio
import logging
from secrets import compare_digest
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatas.serving.desk import Desk
from gatas.serving.logs import log
from gatas.serving.refusal import Refusal, come_back
from gatas.serving.settings import is_loopback

UNLIMITED = "/v1/models/reload"
"""Takes as long as a model takes to load."""
DISCARDED = 64 * 2**20
"""Bytes of a body that is too large which are still read, so that its sender hears why."""
CLIENT_GONE = 499
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The explorer needs no more than its own files and this server, and stands in nobody's frame."""
COMMON_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", PAGE_POLICY),
    (b"referrer-policy", b"no-referrer"),
]


class Gone(Exception):  # noqa: N818
    """The client has hung up."""


class Exchange:
    """One request and what is sent back."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self._send = scope, send
        self.id, self.started, self.status, self.received, self.sent = uuid4().hex, perf_counter(), 0, 0, 0
        self.headers = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [(b"x-request-id", self.id.encode()), *COMMON_HEADERS]
            given = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *((name, value) for name, value in own if name not in given)]
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:
            return
        headers = {"content-type": "application/json", "content-length": str(len(refusal.content)), **refusal.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": refusal.content})

    @property
    def route(self) -> str:
        """As it is written in the API, so that there are few."""
        return getattr(self.scope.get("route"), "path", None) or "other"


class Guard:
    """Around the application."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self.app, self.desk, self.settings = app, desk, desk.settings
        self.token = None if desk.settings.token is None else desk.settings.token.get_secret_value().encode()
        self.in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, send)
        self.in_progress += 1
        self.desk.metrics.in_progress.set(self.in_progress)
        try:
            await self._let_in(exchange, receive)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except (Gone, asyncio.CancelledError) as end:
            exchange.status = exchange.status or CLIENT_GONE
            if isinstance(end, asyncio.CancelledError):
                raise
        except Exception as error:
            log("failure", level=logging.ERROR, error=error, id=exchange.id)
            await exchange.refuse(Refusal(500, "internal", f"something went wrong here. The log has it under {exchange.id}."))
        finally:
            self.in_progress -= 1
            self.desk.metrics.in_progress.set(self.in_progress)
            self._count(exchange)

    async def _let_in(self, exchange: Exchange, receive: Receive) -> None:
        self._check_sender(exchange)
        if self.in_progress > self.settings.max_requests:
            raise come_back(429, "busy", f"{self.settings.max_requests} requests are in progress. Come back in a moment.")
        deadline = asyncio.get_running_loop().time() + self.settings.seconds
        try:
            async with asyncio.timeout_at(deadline):
                body = await self._body(exchange, receive)
        except TimeoutError:
            text = f"the request did not arrive within {self.settings.seconds:g} seconds. Send it faster, or less of it."
            raise Refusal(408, "too_slow", text, {"connection": "close"}) from None
        await self._answer(exchange, body, receive, None if exchange.scope["path"] == UNLIMITED else deadline)

    def _check_sender(self, exchange: Exchange) -> None:
        """A token, where there is one. Without, the server is for this machine, and for no page of others in its browser."""
        path, headers = exchange.scope["path"], exchange.headers
        if self.token is None:
            host = headers.get(b"host", "")
            if not is_loopback(urlsplit(f"//{host}").hostname or "") if _sound(host) else True:
                raise Refusal(403, "wrong_host", "without a token this server answers as localhost or 127.0.0.1 only.")
            if (origin := headers.get(b"origin")) is not None and origin not in (f"http://{host}", f"https://{host}"):
                raise Refusal(403, "wrong_origin", "without a token this server answers no pages from elsewhere.")
        elif path.startswith("/v1/") or path == "/metrics":
            kind, _, given = headers.get(b"authorization", "").partition(" ")
            if kind.lower() != "bearer" or not compare_digest(given.strip().encode("latin-1"), self.token):
                raise Refusal(
                    401,
                    "unauthorised",
                    "send the server's token as `Authorization: Bearer TOKEN`.",
                    {"www-authenticate": "Bearer"},
                )

    async def _body(self, exchange: Exchange, receive: Receive) -> bytes:
        """The whole of it; what is too large is not kept."""
        most, parts = self.settings.max_body_bytes, list[bytes]()
        length = exchange.headers.get(b"content-length", "0")
        announced = int(length) if length.isascii() and length.isdigit() else 0
        while announced <= max(most, DISCARDED) and exchange.received <= max(most, DISCARDED):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            exchange.received += len(message.get("body", b""))
            if exchange.received <= most:
                parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        if max(announced, exchange.received) > most:
            raise Refusal(
                413, "too_large", f"the body has more than {most:,} bytes. Send less at a time.", {"connection": "close"}
            )
        return b"".join(parts)

    async def _answer(self, exchange: Exchange, body: bytes, receive: Receive, deadline: float | None) -> None:
        """Until the answer is sent, the time is up, or the client is gone: then the work is dropped."""
        work = asyncio.create_task(_run(self.app, exchange, body))
        gone = asyncio.create_task(_gone(receive))
        left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            done, _ = await asyncio.wait({work, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                work.result()
            elif gone in done:
                raise Gone
            else:
                text = f"there was no answer within {self.settings.seconds:g} seconds. Ask for less, or come back later."
                raise come_back(504, "timeout", text)
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    def _count(self, exchange: Exchange) -> None:
        seconds, metrics = perf_counter() - exchange.started, self.desk.metrics
        method = exchange.scope["method"] if exchange.scope["method"] in METHODS else "OTHER"
        metrics.requests.labels(method, exchange.route, str(exchange.status)).inc()
        metrics.seconds.labels(exchange.route).observe(seconds)
        log(
            "request",
            id=exchange.id,
            method=method,
            route=exchange.route,
            status=exchange.status,
            seconds=round(seconds, 6),
            received=exchange.received,
            sent=exchange.sent,
        )


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def _sound(host: str) -> bool:
    """Whether it can be read as a host, and perhaps a port."""
    try:
        return bool(urlsplit(f"//{host}").hostname)
    except ValueError:
        return False


async def _run(app: ASGIApp, exchange: Exchange, body: bytes) -> None:
    """The application, given a body that is here already."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not pending:
            await asyncio.Future[Any]()  # until it is cancelled
        return pending.pop()

    await app(exchange.scope, receive, exchange.send)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
