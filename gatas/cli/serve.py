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
from gatas.errors import MissingExtraError


def serve(
    run: Path = RunArgument,
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen on; any but a loopback address needs a token."),
    port: int = typer.Option(8000, "--port", help="Port to listen on; 0 takes a free one."),
    token_file: Path | None = typer.Option(
        None, "--token-file", metavar="FILE", help="File with the token that clients must send; or set GATAS_TOKEN."
    ),
    neighbours: Literal["exact", "hnsw", "off"] = typer.Option("exact", "--neighbours", help="How nearest nodes are found."),
    metrics: bool = typer.Option(True, "--metrics/--no-metrics", help="Whether /metrics exists."),
    reload: bool = typer.Option(True, "--reload/--no-reload", help="Whether /v1/models/reload exists."),
    max_body_bytes: int = typer.Option(4 * 2**20, "--max-body-bytes", help="Bytes in the body of a request."),
    max_ids: int = typer.Option(1000, "--max-ids", help="Ids, links or new nodes in a request."),
    max_waiting: int = typer.Option(128, "--max-waiting", help="Requests that wait for the model; further ones get 429."),
    seconds: float = typer.Option(30.0, "--seconds", help="Seconds for a request, from its first byte to its response."),
    notice_seconds: float = typer.Option(
        0.0, "--notice-seconds", help="Seconds after SIGTERM in which the server still listens but is not ready."
    ),
    grace_seconds: float = typer.Option(
        30.0, "--grace-seconds", help="Seconds for requests in progress when the server shuts down."
    ),
    device: str = DeviceOption,
    verify: bool = VerifyOption,
) -> None:
    """Serve a trained model over HTTP: embeddings, classes, links, explanations, nearest nodes. Logs go to standard error."""
    _check_extra()
    from gatas.serving.loaded_model import load_model
    from gatas.serving.logs import log_to
    from gatas.serving.server import serve
    from gatas.serving.settings import ServerSettings, check_token, read_token
    from gatas.tasks.config import checked
    from gatas.training.folder import read_run

    given = {
        "host": host, "port": port, "neighbours": neighbours, "metrics": metrics, "reload": reload,
        "max_body_bytes": max_body_bytes, "max_ids": max_ids, "max_waiting": max_waiting, "seconds": seconds,
        "notice_seconds": notice_seconds, "grace_seconds": grace_seconds,
        "token": read_token(token_file, os.environ.get("GATAS_TOKEN")),
    }  # fmt: skip
    settings = checked(ServerSettings, given)
    check_token(settings)
    if verify:
        verified(run)
    read_run(run)  # a folder without a run is an error before anything listens
    log_to(sys.stderr)
    serve(settings, partial(load_model, run, device, neighbours), _print_address)


def _print_address(address: str) -> None:
    stdout.print(f"Serving at {address}; Ctrl-C stops it.", soft_wrap=True)


def _check_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("serving needs packages that are not installed", "serve") from None
