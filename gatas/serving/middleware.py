"""Middleware around the application: who may ask, how much and for how long, and what is counted and logged.

An inner middleware refuses a request by raising `ApiError`, which the outermost turns into a response.
"""

import asyncio
import logging
from secrets import compare_digest
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatas.serving.errors import ApiError, retry_later
from gatas.serving.logs import log
from gatas.serving.metrics import ServerMetrics
from gatas.serving.settings import ServerSettings, is_loopback

NO_TIME_LIMIT = "/v1/models/reload"
"""Takes as long as a model takes to load."""
CLIENT_DISCONNECTED = 499
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The explorer needs its own files and this server, and may not be shown in a frame."""
COMMON_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", PAGE_POLICY),
    (b"referrer-policy", b"no-referrer"),
]


def add_middleware(app: FastAPI, settings: ServerSettings, metrics: ServerMetrics) -> None:
    """Put all middleware around an application; the last one is the outermost."""
    app.add_middleware(LimitsMiddleware, settings=settings)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes)
    app.add_middleware(AccessMiddleware, settings=settings)
    app.add_middleware(RequestLogMiddleware, metrics=metrics)


class ClientDisconnected(Exception):  # noqa: N818
    """The client closed the connection before it was answered."""


class Exchange:
    """One request and its response, as they pass by."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self.id, self.started, self.status, self.received, self.sent = uuid4().hex, perf_counter(), 0, 0, 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [(b"x-request-id", self.id.encode()), *COMMON_HEADERS]
            given = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *((name, value) for name, value in own if name not in given)]
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def send_error(self, error: ApiError) -> None:
        """Send an error, unless a response has begun already."""
        if self.status:
            return
        headers = {"content-type": "application/json", "content-length": str(len(error.content)), **error.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": error.status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": error.content})

    @property
    def route(self) -> str:
        """The path as the API defines it, so that metrics have few labels."""
        return getattr(self.scope.get("route"), "path", None) or "other"

    @property
    def method(self) -> str:
        return self.scope["method"] if self.scope["method"] in METHODS else "OTHER"


class RequestLogMiddleware:
    """Gives each request an id, each response its headers and each error a JSON body; counts and logs them."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        self.metrics.in_progress.inc()
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except ApiError as error:
            await exchange.send_error(error)
        except (ClientDisconnected, asyncio.CancelledError) as end:
            exchange.status = exchange.status or CLIENT_DISCONNECTED
            if isinstance(end, asyncio.CancelledError):
                raise
        except Exception as error:
            log("internal error", level=logging.ERROR, error=error, id=exchange.id)
            text = f"an internal error occurred. Look for the id {exchange.id} in the server's log."
            await exchange.send_error(ApiError(500, "internal", text))
        finally:
            self.metrics.in_progress.dec()
            self._record(exchange)

    def _record(self, exchange: Exchange) -> None:
        seconds = perf_counter() - exchange.started
        self.metrics.requests.labels(exchange.method, exchange.route, str(exchange.status)).inc()
        self.metrics.seconds.labels(exchange.route).observe(seconds)
        log(
            "request",
            id=exchange.id,
            method=exchange.method,
            route=exchange.route,
            status=exchange.status,
            seconds=round(seconds, 6),
            received=exchange.received,
            sent=exchange.sent,
        )


class AccessMiddleware:
    """Checks the token. Without one, only this machine may ask, and no page of another site in its browser.

    Starlette's TrustedHostMiddleware answers 400 in plain text, and compares hosts with a list: 127.0.0.0/8 has no pattern.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.token = None if settings.token is None else settings.token.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers, path = Headers(scope=scope), scope["path"]
            if self.token is None:
                _check_local(headers.get("host", ""), headers.get("origin"))
            elif path.startswith("/v1/") or path == "/metrics":
                _check_token(headers.get("authorization", ""), self.token)
        await self.app(scope, receive, send)


def _check_local(host: str, origin: str | None) -> None:
    if not is_loopback(_hostname(host)):
        text = "a server without a token answers to the host names localhost and 127.0.0.1 only. Use one of them."
        raise ApiError(403, "wrong_host", text)
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        text = "a server without a token does not answer pages of other sites. Use this server's own page, or a program."
        raise ApiError(403, "wrong_origin", text)


def _hostname(host: str) -> str:
    """Return the name in a `Host` header, without its port; empty if it cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _check_token(authorization: str, token: bytes) -> None:
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "bearer" or not compare_digest(given.strip().encode("latin-1"), token):
        text = "the token is missing or wrong. Send the server's token as `Authorization: Bearer TOKEN`."
        raise ApiError(401, "unauthorised", text, {"www-authenticate": "Bearer"})


class LimitsMiddleware:
    """Limits requests in progress and their seconds, and ends the work for a client that has disconnected.

    Uvicorn's `limit_concurrency` counts connections, idle ones too, and answers 503 in plain text.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings, self.in_progress = app, settings, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.in_progress += 1
        try:
            await self._limited(scope, receive, send)
        finally:
            self.in_progress -= 1

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        most, seconds = self.settings.max_requests, self.settings.seconds
        if self.in_progress > most:
            raise retry_later(429, "busy", f"{most} requests are in progress already. Retry in a moment.")
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                body = await self._read_body(receive)
        except TimeoutError:
            text = f"the request did not arrive within {seconds:g} seconds. Send it faster, or send less."
            raise ApiError(408, "too_slow", text, {"connection": "close"}) from None
        await self._respond(scope, body, receive, send, None if scope["path"] == NO_TIME_LIMIT else deadline)

    async def _read_body(self, receive: Receive) -> bytes:
        """Return the whole body. Starlette's body limit, which is outside, ends one that is too large."""
        parts, more = list[bytes](), True
        while more:
            try:
                message = await receive()
            except HTTPException:
                text = f"the body has more than {self.settings.max_body_bytes:,} bytes. Send several smaller requests."
                raise ApiError(413, "too_large", text) from None
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _respond(self, scope: Scope, body: bytes, receive: Receive, send: Send, deadline: float | None) -> None:
        """Run the application until it has answered, the time is up, or the client has disconnected."""
        work = asyncio.create_task(_run(self.app, scope, body, send))
        disconnected = asyncio.create_task(_wait_for_disconnect(receive))
        left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            done, _ = await asyncio.wait({work, disconnected}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                work.result()
            elif disconnected in done:
                raise ClientDisconnected
            else:
                text = f"there was no response within {self.settings.seconds:g} seconds. Ask for less, or retry later."
                raise retry_later(504, "timeout", text)
        finally:
            for task in (work, disconnected):
                task.cancel()
            await asyncio.gather(work, disconnected, return_exceptions=True)


async def _run(app: ASGIApp, scope: Scope, body: bytes, send: Send) -> None:
    """Run the application with a body that has been read already."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not pending:
            await asyncio.Future[Any]()  # until it is cancelled
        return pending.pop()

    await app(scope, receive, send)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
