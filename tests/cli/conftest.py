"""Commands run in process, as a person types them."""

import sys

import pytest

from gatas.cli import main


@pytest.fixture
def gatas(monkeypatch, capsys):
    """Run a command; gives (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gatas", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run
