"""What is shown of a search: a live table on a terminal, a line for each trial elsewhere."""

import io

from rich.console import Console

from gatas.tuning.display import TuningDisplay, top_table
from gatas.tuning.trial import Trial

FIRST = Trial(1, {"model.dropout": 0.5, "model.num_heads": 4}, "finished", 0.8, 0.5, 20, 3.0)
SECOND = Trial(2, {"model.dropout": 0.123, "model.num_heads": 4}, "finished", 0.9, 0.4, 1, 3.0)
THIRD = Trial(3, {"model.dropout": 0.7, "model.num_heads": 1}, "pruned", 0.3, 2.0, 11, 1.0)


def shown(*, terminal):
    file, times = io.StringIO(), iter(range(1000))
    console = Console(file=file, force_terminal=terminal, width=100, color_system=None)
    display = TuningDisplay(console, clock=lambda: float(next(times)))
    display.begin([FIRST], 50, "accuracy")
    return display, file, console


def test_elsewhere_each_trial_is_a_line():
    display, file, _ = shown(terminal=False)
    for trial in (SECOND, THIRD):
        display.ended(trial)
    lines = file.getvalue().splitlines()
    assert lines[0] == "going on after 1 trial  best 0.8000 (trial 1)"
    assert lines[1].startswith("trial 2/50  valid accuracy 0.9000  1 epoch  0:0") and lines[1].endswith("best 0.9000 (trial 2)")
    assert "pruned  11 epochs" in lines[2] and lines[2].endswith("best 0.9000 (trial 2)")


def test_a_terminal_has_a_table_of_the_best_and_of_those_at_work():
    display, _, console = shown(terminal=True)
    display.ended(SECOND)
    display.epoch([THIRD], {"epoch": 3, "epochs": 100, "valid_loss": [1.0], "valid_accuracy": [0.25]})
    with console.capture() as capture:
        console.print(display.picture())
    text = capture.get()
    assert "2 of 50 trials" in text and "trial 3: epoch 4/100  valid accuracy 0.2500" in text
    rows = [line.split() for line in text.splitlines()[1:]]
    assert rows[0] == ["trial", "accuracy", "epochs", "dropout"]  # what is the same for all is left out
    assert rows[1] == ["2", "0.9000", "1", "0.123"] and rows[2] == ["1", "(yours)", "0.8000", "20", "0.5"]


def test_settings_that_do_not_fit_side_by_side_are_named_row_by_row():
    first = {"training.learning_rate": 0.005, "model.sample_size": 100, "model.neighbour_size": 50, "model.input_noise": 0.0}
    other = {"training.learning_rate": 0.0021, "model.sample_size": 25, "model.neighbour_size": 16, "model.input_noise": 0.25}
    trials = [Trial(1, first, "finished", 0.8, 0.5, 20, 3.0), Trial(2, other, "finished", 0.9, 0.4, 1, 3.0)]
    file = io.StringIO()
    Console(file=file, width=60, color_system=None).print(top_table(trials, "accuracy", 5, 60))
    text = " ".join(file.getvalue().split())
    assert text.startswith("trial accuracy epochs settings 2 0.9000 1 ")
    for name in ("learning_rate 0.0021", "sample_size 25", "neighbour_size 16", "input_noise 0.25"):
        assert name in text
    wide = top_table(trials, "accuracy", 5, 100)
    assert [column.header for column in wide.columns][3:] == ["learning_rate", "sample_size", "neighbour_size", "input_noise"]
