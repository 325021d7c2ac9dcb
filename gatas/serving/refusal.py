"""`Refusal`: why a request gets no answer, with a code for machines."""

from collections.abc import Mapping

from pydantic import BaseModel

from gatas.errors import GatasError


class Refusal(GatasError):  # noqa: N818
    """A status of HTTP, a code that programs can rely on, and what came, what was expected, what to do."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    @property
    def content(self) -> bytes:
        return Problem(code=self.code, message=self.message).model_dump_json().encode()


class Problem(BaseModel):
    """What went wrong."""

    code: str
    message: str


def unusable(code: str, message: str) -> Refusal:
    """A request that is well formed, but asks for what cannot be."""
    return Refusal(422, code, message)


def come_back(status: int, code: str, message: str, seconds: int = 1) -> Refusal:
    """Not now."""
    return Refusal(status, code, message, {"retry-after": str(seconds)})


def loading() -> Refusal:
    return come_back(503, "not_ready", "the model is not loaded yet. Come back when /v2/health/ready says so.", 5)
