"""`RunResults`: what a run measured, read from its folder."""

import json
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from gatas.errors import GatasError
from gatas.training.run import with_ranks

DETAILS = {"by_class": "class", "by_type": "type", "by_target": "number"}
"""Parts of the metrics of a split, and what each of them is about."""


VALIDATION_EDGES = "in the final test links of validation are edges of the graph"


class RunResults(BaseModel):
    """What the run measured when it ended."""

    data: str = Field(description="Name of the data that the model was trained on")
    note: str = Field(description="What a reader of the metrics must know of the data; empty if nothing")
    epochs_to_best: int = Field(
        description="Number of epochs after which the model had the weights that it keeps; 0 if untrained"
    )
    epochs: int = Field(description="Number of epochs that were trained")
    metrics: dict[str, dict[str, float]] = Field(description="By split, `valid` and `test` where there are any: name and value")
    details_of: str | None = Field(description="What `details` are about: `class`, `type` (of link) or `number`")
    details: dict[str, dict[str, float]] = Field(description="Metrics of each class, type or number, on the last split")


def read_results(folder: Path) -> RunResults | None:
    """Read what the run in a folder measured; None where its metrics are not there."""
    if not folder.joinpath("metrics.json").exists():
        return None
    try:
        metrics = json.loads(folder.joinpath("metrics.json").read_text(encoding="utf-8"))
        about = json.loads(folder.joinpath("about.json").read_text(encoding="utf-8"))
        return _results(metrics, about)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GatasError(f"{folder} has a metrics.json that cannot be read ({error}). Train the model again.") from None


def _results(metrics: dict[str, Any], about: dict[str, Any]) -> RunResults:
    splits = {name: measured for name, measured in metrics.items() if isinstance(measured, dict)}
    last = splits[list(splits)[-1]] if splits else {}
    part = next((name for name in DETAILS if name in last), None)
    return RunResults(
        data=about["data"],
        note=", and ".join(note for note in (about["note"], VALIDATION_EDGES if last.get("validation_edges") else "") if note),
        epochs_to_best=metrics["best_epoch"] + 1,
        epochs=metrics["epochs"],
        metrics={name: _numbers(with_ranks(measured)) for name, measured in splits.items()},
        details_of=None if part is None else DETAILS[part],
        details={} if part is None else {name: _numbers(own) for name, own in last[part].items()},
    )


def _numbers(measured: dict[str, Any]) -> dict[str, float]:
    """Return what is a finite number, which JSON can hold."""
    return {name: float(value) for name, value in measured.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
