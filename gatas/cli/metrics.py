"""Metrics as people read them: a row each, with the spread over seeds where there are several."""

from statistics import fmean, stdev
from typing import Any

from gatas.cli.output import plain_table, print_table, stderr, stdout

NAMES = {
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "f1": "F1",
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
}
OF_NUMBERS = ("mae", "rmse", "r2")
RANKING = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}
VALIDATION_EDGES = "In this test the links of validation are edges of the graph (data.validation_edges)."
SHOWN = 15
"""Types of link, or classes, that are printed one by one: the most frequent ones."""


def print_measured(title: str, measured: list[dict[str, Any]]) -> None:
    """Print all that was measured at the end of training; `measured` has an entry for each seed."""
    print_metrics(title, measured)
    if "ranking" in measured[0]:
        print_ranking(f"{title}, filtered ranking", [own["ranking"] for own in measured])
    print_graph(measured)


def print_graph(measured: list[dict[str, Any]]) -> None:
    """Say so where metrics were measured on another graph than the data's."""
    if measured[0].get("validation_edges"):
        stdout.print(VALIDATION_EDGES, soft_wrap=True)
        stdout.print()


def print_metrics(title: str, measured: list[dict[str, Any]]) -> None:
    """Print a row for each metric, then one for each type of link or number; `measured` has an entry for each seed."""
    table = plain_table("", "#")
    table.show_header = False
    for name, value in measured[0].items():
        if isinstance(value, float):
            table.add_row(_title(name, measured[0]), spread([own[name] for own in measured]))
    several = f", mean ± standard deviation of {len(measured)} seeds" if len(measured) > 1 else ""
    print_table(title + several, table)
    types = measured[0].get("by_type", {})
    if len(types) > 1:
        print_table("By type of link", _by_type([own["by_type"] for own in measured]))
    if len(measured[0].get("by_target", {})) > 1:
        print_table("By number", _by_number([own["by_target"] for own in measured]))


def _title(name: str, metrics: dict[str, Any]) -> str:
    """Return a metric's name; that of a mean over numbers says so, whose units may differ."""
    title = NAMES.get(name, name)
    return f"mean {title}" if len(metrics.get("by_target", {})) > 1 and name in OF_NUMBERS else title


def print_details(measured: list[dict[str, Any]]) -> None:
    """Print the scores of the most frequent classes, and how far probabilities can be believed; `measured` is as above."""
    if "by_class" in measured[0]:
        classes = sorted(measured[0]["by_class"].items(), key=lambda of: -of[1]["support"])
        table = plain_table("class", "nodes#", "precision#", "recall#", "F1#")
        for name, of_class in classes[:SHOWN]:
            numbers = (spread([own["by_class"][name][score] for own in measured]) for score in ("precision", "recall", "f1"))
            table.add_row(name, f"{of_class['support']:,}", *numbers)
        print_table("By class", table)
        if len(classes) > SHOWN:
            stderr.print(f"the {SHOWN} most frequent of {len(classes)} classes, {len(classes) - SHOWN} more with --json")
    if "calibration" in measured[0]:
        table = plain_table("probabilities", "log loss#", "expected calibration error#")
        for name in ("before", "after"):
            numbers = (spread([own["calibration"][f"{what}_{name}"] for own in measured]) for what in ("loss", "error"))
            table.add_row(f"{name} calibration", *numbers)
        print_table("Calibration", table)


def _by_number(measured: list[dict[str, Any]]) -> Any:
    table = plain_table("number", "nodes#", *(f"{NAMES[score]}#" for score in OF_NUMBERS))
    for name, of_number in measured[0].items():
        numbers = (spread([own[name][score] for own in measured]) for score in OF_NUMBERS)
        table.add_row(name, f"{of_number['support']:,}", *numbers)
    return table


def _by_type(measured: list[dict[str, Any]]) -> Any:
    table = plain_table("type", "positives#", "negatives#", "ROC-AUC#", "F1#")
    for kind, of_kind in measured[0].items():
        numbers = (spread([own[kind][name] for own in measured]) if name in of_kind else "–" for name in ("roc_auc", "f1"))
        table.add_row(kind, f"{of_kind['positives']:,}", f"{of_kind['negatives']:,}", *numbers)
    return table


def print_ranking(title: str, measured: list[dict[str, Any]]) -> None:
    """Print MRR and Hits@K over links, over types and by direction, then those of the most frequent types."""
    first = measured[0]
    several = f", mean ± standard deviation of {len(measured)} seeds" if len(measured) > 1 else ""
    table = plain_table("", "links#", *(f"{name}#" for name in RANKING.values()))
    rows: dict[str, Any] = {
        "micro: over links": measured,
        f"macro: over {len(first['by_type'])} types": [own["macro"] for own in measured],
        "targets asked for": [own["by_direction"]["target"] for own in measured],
        "sources asked for": [own["by_direction"]["source"] for own in measured],
    }
    for name, row in rows.items():
        table.add_row(name, f"{first['count']:,}", *_ranking_cells(row))
    print_table(title + several, table)
    if len(first["by_type"]) > 1:
        _print_ranked_types(measured)


def _print_ranked_types(measured: list[dict[str, Any]]) -> None:
    kinds = sorted(measured[0]["by_type"].items(), key=lambda of: -of[1]["count"])
    table = plain_table("type", "links#", *(f"{name}#" for name in RANKING.values()))
    for kind, of_kind in kinds[:SHOWN]:
        table.add_row(kind, f"{of_kind['count']:,}", *_ranking_cells([own["by_type"][kind] for own in measured]))
    print_table("By type of link", table)
    if len(kinds) > SHOWN:
        stderr.print(f"the {SHOWN} most frequent of {len(kinds)} types, {len(kinds) - SHOWN} more with --json")


def _ranking_cells(measured: list[dict[str, Any]]) -> list[str]:
    return [spread([own[name] for own in measured]) for name in RANKING]


def spread(values: list[float]) -> str:
    """Return `0.9612`, or `0.9612 ± 0.0031`."""
    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")
