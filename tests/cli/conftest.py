"""Commands run in process, as a person types them."""

import sys

import pytest

from gatas.cli import main
from gatas.cli.output import stdout


@pytest.fixture
def gatas(monkeypatch, capsys):
    """Run a command; gives (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gatas", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr(stdout, "width", 100)  # it may have been made where COLUMNS was another number
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run
