"""`gatas serve`: a trained model over HTTP."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Literal

import typer

from gatas.cli.output import stdout
from gatas.cli.runs import DeviceOption, RunArgument
from gatas.cli.verify import VerifyOption, verified
from gatas.errors import GatasError


def serve(
    run: Path = RunArgument,
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen at; any but this machine's own needs a token."),
    port: int = typer.Option(8000, "--port", help="0 takes one that is free."),
    token_file: Path | None = typer.Option(None, "--token-file", metavar="FILE", help="Clients' token; or set GATAS_TOKEN."),
    neighbours: Literal["exact", "hnsw", "off"] = typer.Option("exact", "--neighbours", help="How nearest nodes are found."),
    metrics: bool = typer.Option(True, "--metrics/--no-metrics", help="Whether there is a /metrics."),
    reload: bool = typer.Option(True, "--reload/--no-reload", help="Whether there is a /v1/models/reload."),
    max_body_bytes: int = typer.Option(4 * 2**20, "--max-body-bytes", help="Of one request."),
    max_ids: int = typer.Option(1000, "--max-ids", help="Ids or links in one request."),
    max_waiting: int = typer.Option(128, "--max-waiting", help="Requests that wait; more are told to come back."),
    seconds: float = typer.Option(30.0, "--seconds", help="For one request."),
    notice_seconds: float = typer.Option(0.0, "--notice-seconds", help="From SIGTERM on still listening, but not ready."),
    grace_seconds: float = typer.Option(30.0, "--grace-seconds", help="For requests in progress at the end."),
    device: str = DeviceOption,
    verify: bool = VerifyOption,
) -> None:
    """Answer over HTTP: embeddings, classes, links, explanations, nearest nodes. Logs go to standard error, as JSON lines."""
    _check_extra()
    from gatas.serving.logs import log_to
    from gatas.serving.served import load_served
    from gatas.serving.server import serve
    from gatas.serving.settings import Settings, check_guarded, read_token
    from gatas.tasks.config import checked
    from gatas.training.folder import read_run

    given = {
        "host": host, "port": port, "neighbours": neighbours, "metrics": metrics, "reload": reload,
        "max_body_bytes": max_body_bytes, "max_ids": max_ids, "max_waiting": max_waiting, "seconds": seconds,
        "notice_seconds": notice_seconds, "grace_seconds": grace_seconds,
        "token": read_token(token_file, os.environ.get("GATAS_TOKEN")),
    }  # fmt: skip
    settings = checked(Settings, given)
    check_guarded(settings)
    if verify:
        verified(run)
    read_run(run)  # what is no run is said before anything listens
    log_to(sys.stderr)
    serve(settings, partial(load_served, run, device, neighbours), _say)


def _say(address: str) -> None:
    stdout.print(f"Serving at {address}; Ctrl-C ends it.", soft_wrap=True)


def _check_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise GatasError("serving needs packages that are not installed: pip install 'gatas[serve]'") from None
