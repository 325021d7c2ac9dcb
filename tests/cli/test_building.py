"""Lines about transitions that are being built."""

import re
from itertools import count

from gatas.cli.building import builds_said
from gatas.transitions import Transitions
from tests.tasks.toys import camps


def test_a_build_of_seconds_is_told_of_and_a_quick_one_is_not(capsys):
    ticks = count(0, 4)  # seconds: more than the first line waits for
    with builds_said(lambda: float(next(ticks))):
        Transitions.build(camps(5000).graph, 2)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"building transitions, \d\d?%  0:08", first)  # of a table that is done nothing is said
    assert re.fullmatch(r"building transitions, \d\d?%  \d:\d\d", last)
    with builds_said():
        Transitions.build(camps().graph, 2)
    Transitions.build(camps().graph, 2)
    assert capsys.readouterr().err == ""
