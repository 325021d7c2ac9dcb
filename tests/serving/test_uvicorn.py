"""What `gatas/serving/server.py` relies on in uvicorn beyond what its documentation promises.

A test that fails here names what a new uvicorn has changed, and what stops working with it.
"""

import ast
import inspect
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

import gatas
from gatas.serving.server import HeaderTimeoutProtocol, Server

SERVING = Path(gatas.__file__).parent / "serving"


def parameters(method):
    return list(inspect.signature(method).parameters)


def attributes_set_by(kind):
    """Names that the methods of a class assign to `self`."""
    tree = ast.parse(inspect.getsource(kind))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def test_one_module_alone_touches_uvicorn():
    importing = {
        path.name
        for path in SERVING.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("uvicorn"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("uvicorn") for alias in node.names))
    }
    assert importing == {"server.py"}


def test_the_protocol_calls_what_the_header_timeout_overrides():
    """Otherwise slow headers are waited for without end: see `HeaderTimeoutProtocol`."""
    assert parameters(H11Protocol.connection_made) == ["self", "transport"]
    assert parameters(H11Protocol.data_received) == ["self", "data"]
    assert parameters(H11Protocol.connection_lost) == ["self", "exc"]
    assert issubclass(HeaderTimeoutProtocol, H11Protocol)


def test_the_protocol_has_what_the_header_timeout_reads():
    """Otherwise a connection that is being answered may be closed, or a silent one kept: see `HeaderTimeoutProtocol`."""
    assert {"loop", "transport", "cycle"} <= attributes_set_by(H11Protocol)
    assert "response_complete" in attributes_set_by(RequestResponseCycle)


def test_the_server_calls_what_signals_and_the_first_load_override():
    """Otherwise SIGHUP ends the server, or one without a model goes on: see `Server`."""
    assert parameters(uvicorn.Server.startup) == ["self", "sockets"]
    assert parameters(uvicorn.Server.on_tick) == ["self", "counter"]
    assert parameters(uvicorn.Server.capture_signals) == ["self"]
    assert {"servers", "should_exit", "force_exit"} <= attributes_set_by(uvicorn.Server)
    source = inspect.getsource(uvicorn.Server)
    assert all(f"self.{name}(" in source for name in ("startup", "on_tick", "capture_signals"))
    assert issubclass(Server, uvicorn.Server)


def test_uvicorn_itself_has_no_timeout_for_headers():
    """If it gets one, `HeaderTimeoutProtocol` can go."""
    timeouts = {name for name in parameters(uvicorn.Config) if "timeout" in name and not name.startswith(("ws_", "ssl_"))}
    assert timeouts == {"timeout_keep_alive", "timeout_notify", "timeout_graceful_shutdown", "timeout_worker_healthcheck"}
