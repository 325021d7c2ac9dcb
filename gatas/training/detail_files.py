"""Tables and pictures of a run's folder that say more than its metrics: class by class, and how far to believe it."""

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

from gatas.tasks.class_details import ClassDetails
from gatas.tasks.number_details import NumberDetails
from gatas.training.class_plots import confusion_plot, reliability_plot
from gatas.training.number_plots import number_plot
from gatas.training.plots import png
from gatas.training.run import TrainedRun


def detail_files(run: TrainedRun) -> dict[str, bytes]:
    """Return files by name, of the test split or, where there is none, of validation; nothing for models of links."""
    split = next((name for name in ("test", "valid") if name in run.details), None)
    if split is None:
        return {}
    details, title = run.details[split], f"{run.dataset.name}, {split} data"
    if isinstance(details, NumberDetails):
        return {"predictions.png": png(number_plot(details, title))}
    return class_files(details, title)


def class_files(details: ClassDetails, title: str) -> dict[str, bytes]:
    """Return scores by class, the matrix of confusions where there is one, and the reliability of probabilities."""
    scores = [[name, *values.values()] for name, values in details.by_class.items()]
    files = {
        "classes.csv": table([["class", "precision", "recall", "f1", "support"], *scores]),
        "reliability.png": png(reliability_plot(details, title)),
    }
    if details.confusion is not None:
        rows = ([name, *counts] for name, counts in zip(details.names, details.confusion.tolist(), strict=True))
        files["confusion.csv"] = table([["truth \\ predicted", *details.names], *rows])
        files["confusion.png"] = png(confusion_plot(details, title))
        return files
    columns = zip(*(getattr(details, name).tolist() for name in ("support", "predicted", "correct")), strict=True)
    counts = [
        [name, correct, support - correct, predicted - correct, details.num_nodes - support - predicted + correct]
        for name, (support, predicted, correct) in zip(details.names, columns, strict=True)
    ]
    head = ["class", "true positives", "false negatives", "false positives", "true negatives"]
    return {**files, "confusion.csv": table([head, *counts])}


def table(rows: Iterable[Iterable[Any]]) -> bytes:
    """Return rows as a CSV file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
