"""Lines about transitions that are being built."""

from itertools import count

from gatas.cli.building import builds_said
from gatas.transitions import Transitions
from tests.tasks.toys import camps


def test_a_build_of_seconds_is_told_of_and_a_quick_one_is_not(capsys):
    ticks = count(0, 4)  # seconds: more than the first line waits for
    with builds_said(lambda: float(next(ticks))):
        Transitions.build(camps().graph, 2)
    err = capsys.readouterr().err
    assert err.startswith("building transitions, 40%  0:0") and err.count("\n") == 1
    with builds_said():
        Transitions.build(camps().graph, 2)
    Transitions.build(camps().graph, 2)
    assert capsys.readouterr().err == ""
