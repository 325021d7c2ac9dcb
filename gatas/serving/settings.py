"""What a server allows, and to whom."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from gatas.errors import ConfigError

SHORTEST_TOKEN = 16


class Settings(BaseModel, frozen=True, extra="forbid"):
    """Where a server listens, and its limits."""

    host: str = Field("127.0.0.1", description="Address to listen at; any but this machine's own needs a token")
    port: int = Field(8000, ge=0, le=65535, description="0 takes one that is free")
    token: SecretStr | None = Field(None, description="What clients must bring as `Authorization: Bearer …`")
    neighbours: Literal["exact", "hnsw", "off"] = Field("exact", description="How nearest nodes are found")
    metrics: bool = Field(True, description="Whether there is a /metrics")
    reload: bool = Field(True, description="Whether there is a /v1/models/reload; SIGHUP does the same")
    max_body_bytes: int = Field(4 * 2**20, ge=1, description="Of one request")
    max_ids: int = Field(1000, ge=1, description="Ids or links in one request, and new nodes")
    max_edges: int = Field(10_000, ge=1, description="New edges in one request")
    max_rows: int = Field(1000, ge=1, description="Rows of an explanation, nearest or found nodes, likely links in one answer")
    max_waiting: int = Field(128, ge=1, description="Requests that wait for the model; more are told to come back")
    max_requests: int = Field(256, ge=1, description="Requests in progress, those that are still being received included")
    seconds: float = Field(30.0, gt=0, description="For one request, from its first byte to its answer")
    notice_seconds: float = Field(0.0, ge=0, description="From SIGTERM on still listening, but not ready: balancers look away")
    grace_seconds: float = Field(30.0, gt=0, description="For requests that are in progress when the server ends")


def check_guarded(settings: Settings) -> None:
    """A server that others can reach needs a token."""
    if settings.token is None and not is_loopback(settings.host):
        raise ConfigError(
            f"host is {settings.host!r}, which other machines can reach, and there is no token. "
            "Give one by --token-file FILE or in GATAS_TOKEN, or listen at 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_token(file: Path | None, environment: str | None) -> SecretStr | None:
    """From a file or from the environment; None where there is neither."""
    if file is not None and environment is not None:
        raise ConfigError("a token came in a file and in GATAS_TOKEN. Give one of them.")
    if file is None and environment is None:
        return None
    try:
        token = (environment if file is None else file.read_text(encoding="ascii")) or ""
    except (OSError, UnicodeError):
        raise ConfigError(f"{file} could not be read as a token. Give a text file with the token alone.") from None
    token = token.strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or any(mark.isspace() for mark in token):
        raise ConfigError(f"the token must have {SHORTEST_TOKEN} characters or more, without spaces or accents.")
    return SecretStr(token)
