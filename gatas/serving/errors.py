"""`ApiError`: an error response, with a code for programs and a message for people."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from gatas.errors import GatasError

CODES = {404: "not_found", 405: "method_not_allowed", 400: "not_json", 415: "not_json"}
MESSAGES = {
    404: "this path does not exist. /openapi.json lists those that do.",
    405: "this path does not take this method. /openapi.json lists those that it takes.",
    400: "the body could not be read as JSON. Send a JSON object.",
}
FIELD_ERRORS = 4
"""Wrong fields that one message names."""


class ErrorResponse(BaseModel):
    """Why a request was not answered."""

    code: str = Field(description="A word that programs can rely on, such as `unknown_id`")
    message: str = Field(description="What came, what was expected and what to do, for people")


class ApiError(GatasError):
    """An HTTP status with a code and a message; a handler that raises it answers with both as JSON."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    @property
    def content(self) -> bytes:
        """The body of the response."""
        return ErrorResponse(code=self.code, message=self.message).model_dump_json().encode()


def unprocessable(code: str, message: str) -> ApiError:
    """Return the error for a request that is well formed, but cannot be answered."""
    return ApiError(422, code, message)


def retry_later(status: int, code: str, message: str, seconds: int = 1) -> ApiError:
    """Return an error that says by `Retry-After` when to send the request again."""
    return ApiError(status, code, message, {"retry-after": str(seconds)})


def model_not_ready() -> ApiError:
    return retry_later(503, "not_ready", "the model is still loading. Retry when /v2/health/ready returns 200.", 5)


def add_error_handlers(app: FastAPI) -> None:
    """Make every error a JSON body with `code` and `message`."""
    app.add_exception_handler(GatasError, _respond)
    app.add_exception_handler(HTTPException, _respond_to_http_exception)
    app.add_exception_handler(RequestValidationError, _respond_to_invalid_request)


async def _respond(_: Request, error: Exception) -> Response:
    found = error if isinstance(error, ApiError) else unprocessable("unusable", str(error))
    return Response(found.content, found.status, found.headers, "application/json")


async def _respond_to_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    code, message = CODES.get(status, "refused"), MESSAGES.get(status, "the request cannot be answered.")
    return await _respond(request, ApiError(status, code, message, error.headers))


async def _respond_to_invalid_request(request: Request, error: Exception) -> Response:
    """Say which fields are wrong and what was expected; what came may be long, or no JSON at all, and is not repeated."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        return await _respond_to_http_exception(request, HTTPException(400))
    texts = dict.fromkeys(f"{_field(problem)}: {problem['msg']}" for problem in problems[:FIELD_ERRORS])
    return await _respond(request, unprocessable("invalid", "; ".join(texts) + "."))


def _field(problem: Any) -> str:
    """Return a field's name, such as `ids.3`; a name that is not known is not repeated."""
    parts = problem["loc"][1:-1] if problem["type"] == "extra_forbidden" else problem["loc"][1:]
    return ".".join(str(part) for part in parts if not str(part).startswith("constrained-")) or "body"
