"""`gatas serve`: what it refuses before it listens. Started for real in tests/serving."""

import sys

import pytest

from gatas.serving.logs import LOGGER, UVICORN
from tests.inference.conftest import digits_folder

__all__ = ["digits_folder"]


@pytest.fixture(autouse=True)
def logs_as_before():
    """The command's log goes to a stream that is closed after its test."""
    before = [(logger, logger.handlers, logger.propagate, logger.level) for logger in (LOGGER, UVICORN)]
    yield
    for logger, handlers, propagate, level in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("GATAS_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "which other machines can reach, and there is no token"),
        (["--host", "example.org"], "which other machines can reach, and there is no token"),
        (["--token-file", "{folder}/none"], "could not be read as a token"),
        (["--token-file", "{folder}/short"], "16 characters or more"),
        (["--port", "70000"], "port is 70000; input should be less than or equal to 65535"),
        (["--max-ids", "0"], "max_ids is 0"),
        (["--seconds", "-1"], "seconds is -1.0"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(gatas, tmp_path, arguments, message):
    (tmp_path / "short").write_text("secret\n")
    code, out, err = gatas("serve", tmp_path, *(argument.format(folder=tmp_path) for argument in arguments))
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert "secret" not in err


def test_a_token_comes_from_a_file_or_the_environment_not_both(gatas, tmp_path, monkeypatch):
    monkeypatch.setenv("GATAS_TOKEN", "x" * 20)
    (tmp_path / "token").write_text("y" * 20)
    code, _, err = gatas("serve", tmp_path, "--token-file", tmp_path / "token")
    assert code == 1 and "Give one of them" in err


@pytest.mark.parametrize("kind", ["missing", "truncated"])
def test_a_run_that_cannot_be_served_ends_it_with_one_line(gatas, digits_folder, tmp_path, kind):
    run = tmp_path / "run"
    if kind == "truncated":
        run.mkdir()
        for name in ("about.json", "config.yaml"):
            (run / name).write_bytes((digits_folder / name).read_bytes())
        (run / "weights.safetensors").write_bytes((digits_folder / "weights.safetensors").read_bytes()[:200])
    code, out, err = gatas("serve", run, "--port", 0)
    assert code == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and str(run) in err


def test_a_port_that_is_taken_is_told(gatas, digits_folder):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = gatas("serve", digits_folder, "--port", taken.getsockname()[1])
    assert code == 1 and "cannot listen on 127.0.0.1 port" in err and "Choose another port with --port." in err


@pytest.mark.parametrize("name", ["fastapi", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_is_named(gatas, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    code, _, err = gatas("serve", tmp_path)
    assert code == 1 and "pip install 'gatas[serve]'" in err
