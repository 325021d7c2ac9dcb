"""What a person sees of a training."""

import io
import re

import pytest
from rich.console import Console

from gatas.training.progress import ProgressDisplay, epochs_left, reporting
from gatas.training.stopping import EarlyStopping
from gatas.transitions import Transitions
from gatas.transitions.cost import readable_seconds
from tests.tasks.toys import camps


def entry(epoch, *, epochs=100, patience=10, best=None, last=-1, seeds=(0,), **more):
    stopping = EarlyStopping(len(seeds), patience)
    stopping.best_epoch = [epoch if best is None else best] * len(seeds)
    stopping.last_epoch = [last, *[-1] * (len(seeds) - 1)]
    measured = {"loss": [0.5] * len(seeds), "valid_loss": [0.6] * len(seeds), "valid_accuracy": [0.75] * len(seeds)}
    depth = {"depth": [[0.6, 0.4]] * len(seeds), "seconds": 2.0}
    return {"epoch": epoch, "epochs": epochs, "seeds": list(seeds), "stopping": stopping, **measured, **depth, **more}


class Clock:
    """Time that passes when told to."""

    now = 0.0

    def __call__(self):
        return self.now


def shown(entries, *, terminal=False, seconds_each=0.0):
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, force_terminal=terminal, width=100, markup=False, highlight=False, _environ={"TERM": "xterm"})
    with ProgressDisplay(console, clock) as progress:
        for one in entries:
            clock.now += seconds_each
            progress(one)
    return text.getvalue()


def test_lines_are_seconds_apart_and_the_last_epoch_is_always_told():
    lines = shown([entry(k) for k in range(12)], seconds_each=1.0).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 5/100", "epoch 10/100", "epoch 12/100"]


def test_a_line_has_loss_metric_depth_and_times():
    (line,) = shown([entry(8, best=4), entry(9, best=4)], seconds_each=2.0).splitlines()
    assert line == "epoch 10/100  loss 0.500  valid accuracy 0.750  q 0.60 0.40  0:04, left 0:10 to 3:00"


def test_the_first_epoch_which_may_compile_foretells_nothing():
    (line,) = shown([entry(0, seconds=20.0)], seconds_each=20.0).splitlines()
    assert line.endswith("  0:20")


def test_of_several_seeds_the_mean_is_shown_and_who_has_stopped():
    (line,) = shown([entry(9, seeds=(0, 1), last=8, loss=[0.2, 0.4])]).splitlines()
    assert line.startswith("epoch 10/100, 1 of 2 seeds have stopped  loss 0.300")


def test_a_terminal_gets_a_display_that_leaves_one_line():
    text = shown([entry(9)], terminal=True)
    assert "\x1b[2K" in text  # lines are wiped
    assert re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", text).splitlines()[-1].startswith("epoch 10/100  loss 0.500")


def test_a_long_epoch_is_told_of_before_it_is_over():
    text, clock = io.StringIO(), Clock()
    with ProgressDisplay(Console(file=text, width=100), clock) as progress:
        progress.build(0.5)
        for number in range(1, 11):
            clock.now += 9.0
            progress.batch(0, 30, number, 1000)
        progress(entry(0, epochs=30, seconds=90.0))
    assert text.getvalue().splitlines() == [
        "epoch 1/30, batch 3 of 1,000  0:27",
        "epoch 1/30, batch 6 of 1,000  0:54",
        "epoch 1/30, batch 9 of 1,000  1:21",
        "epoch 1/30  loss 0.500  valid accuracy 0.750  q 0.60 0.40  1:30",
    ]


def test_a_terminal_shows_the_batches_of_an_epoch():
    console, clock = Console(file=io.StringIO(), width=100, force_terminal=True, _environ={"TERM": "xterm"}), Clock()
    with ProgressDisplay(console, clock) as progress:
        progress.batch(0, 30, 3, 8)
        with console.capture() as first:
            console.print(progress.picture())
        progress(entry(0))
        progress.batch(1, 100, 5, 8)
        with console.capture() as second:
            console.print(progress.picture())
    assert "epoch 1/30, batch 3 of 8  0:00" in first.get() and "batch 5 of 8" in second.get()


def test_tables_that_a_training_builds_are_told_of(monkeypatch):
    heard = []
    monkeypatch.setattr(ProgressDisplay, "build", lambda self, share: heard.append(share))
    with reporting(None, True):
        Transitions.build(camps().graph, 2)
    Transitions.build(camps().graph, 2)
    assert heard and heard[-1] == 1 and heard == sorted(heard)


def test_a_training_that_was_finished_before_says_so():
    assert "finished before" in shown([])


def test_an_error_before_the_first_epoch_is_not_called_finished():
    text = io.StringIO()
    with pytest.raises(ValueError), ProgressDisplay(Console(file=text)):
        raise ValueError
    assert text.getvalue() == ""


def test_the_least_time_left_is_that_of_patience_and_the_most_that_of_epochs():
    assert epochs_left(entry(20, best=15, patience=10)) == (5, 79)
    assert epochs_left(entry(95, best=95, patience=10)) == (4, 4)
    assert epochs_left(entry(20, last=20)) == (0, 0)


def test_without_validation_only_epochs_count():
    plain = {name: value for name, value in entry(20).items() if not name.startswith("valid_")}
    assert epochs_left(plain) == (79, 79)


def test_a_report_of_ones_own_is_called_beside_the_display(capsys):
    told: list[object] = []
    with reporting(told.append, True) as report:
        report(entry(0))
    assert len(told) == 1 and "epoch 1/100" in capsys.readouterr().err
    with reporting(told.append, False) as report:
        report(entry(1))
        report.batch(0, 9, 1, 2)
    assert len(told) == 2 and capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (61, "1:01"), (3723, "1:02:03")])
def test_seconds_are_readable(seconds, text):
    assert readable_seconds(seconds) == text
