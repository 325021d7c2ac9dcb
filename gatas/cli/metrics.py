"""Metrics as people read them: a row each, with the spread over seeds where there are several."""

from statistics import fmean, stdev
from typing import Any

from gatas.cli.output import plain_table, print_table

NAMES = {"roc_auc": "ROC-AUC", "pr_auc": "PR-AUC", "f1": "F1", "micro_f1": "micro-F1", "macro_f1": "macro-F1"}


def print_metrics(title: str, measured: list[dict[str, Any]]) -> None:
    """Print a row for each number, then one for each type of link; `measured` has an entry for each seed."""
    table = plain_table("", "#")
    table.show_header = False
    for name, value in measured[0].items():
        if isinstance(value, float):
            table.add_row(NAMES.get(name, name), spread([own[name] for own in measured]))
    several = f", mean ± standard deviation of {len(measured)} seeds" if len(measured) > 1 else ""
    print_table(title + several, table)
    types = measured[0].get("by_type", {})
    if len(types) > 1:
        print_table("By type of link", _by_type([own["by_type"] for own in measured]))


def _by_type(measured: list[dict[str, Any]]) -> Any:
    table = plain_table("type", "positives#", "negatives#", "ROC-AUC#", "F1#")
    for kind, of_kind in measured[0].items():
        numbers = (spread([own[kind][name] for own in measured]) if name in of_kind else "–" for name in ("roc_auc", "f1"))
        table.add_row(kind, f"{of_kind['positives']:,}", f"{of_kind['negatives']:,}", *numbers)
    return table


def spread(values: list[float]) -> str:
    """Return `0.9612`, or `0.9612 ± 0.0031`."""
    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")
