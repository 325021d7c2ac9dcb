"""`ServerSettings`: where a server listens, who may use it, and its limits."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from gatas.errors import ConfigError

SHORTEST_TOKEN = 16


class ServerSettings(BaseModel, frozen=True, extra="forbid"):
    """Where a server listens, who may use it, and its limits."""

    host: str = Field("127.0.0.1", description="Address to listen on; any but a loopback address needs a token")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one")
    token: SecretStr | None = Field(None, description="Token that clients must send as `Authorization: Bearer …`")
    neighbours: Literal["exact", "hnsw", "off"] = Field("exact", description="How nearest nodes are found")
    metrics: bool = Field(True, description="Whether /metrics exists")
    reload: bool = Field(True, description="Whether /v1/models/reload exists; SIGHUP works anyway")
    max_body_bytes: int = Field(4 * 2**20, ge=1, description="Bytes in the body of a request")
    max_ids: int = Field(1000, ge=1, description="Ids, links or new nodes in a request")
    max_edges: int = Field(10_000, ge=1, description="New edges in a request")
    max_rows: int = Field(1000, ge=1, description="Rows of an explanation, nodes or ranked links in a response")
    max_waiting: int = Field(128, ge=1, description="Requests that wait for the model; further ones get 429")
    max_requests: int = Field(256, ge=1, description="Requests in progress, including those that are still being received")
    seconds: float = Field(30.0, gt=0, description="Seconds for a request, from its first byte to its response")
    notice_seconds: float = Field(
        0.0, ge=0, description="Seconds after SIGTERM in which the server still listens but is not ready, for load balancers"
    )
    grace_seconds: float = Field(30.0, gt=0, description="Seconds for requests in progress when the server shuts down")


def check_token(settings: ServerSettings) -> None:
    """Refuse to serve other machines without a token."""
    if settings.token is None and not is_loopback(settings.host):
        raise ConfigError(
            f"host is {settings.host!r}, which other machines can reach, and there is no token. "
            "Give one by --token-file FILE or in GATAS_TOKEN, or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_token(file: Path | None, environment: str | None) -> SecretStr | None:
    """Return the token from a file or from the environment; None if there is neither."""
    if file is not None and environment is not None:
        raise ConfigError("a token was given both in a file and in GATAS_TOKEN. Give one of them.")
    if file is None and environment is None:
        return None
    try:
        token = (environment if file is None else file.read_text(encoding="ascii")) or ""
    except (OSError, UnicodeError):
        raise ConfigError(f"{file} could not be read as a token. Give a text file that holds nothing but the token.") from None
    token = token.strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or any(mark.isspace() for mark in token):
        raise ConfigError(f"the token is unsuitable; expected {SHORTEST_TOKEN} characters or more, without spaces or accents.")
    return SecretStr(token)
