"""A picture of predicted numbers beside true ones."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gatas.tasks.number_details import NumberDetails
from gatas.training.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 6
"""Numbers that a picture has room for: the first ones."""


def number_plot(details: NumberDetails, title: str) -> "Figure":
    """Draw predicted against true numbers, a part of the picture for each of them."""
    from matplotlib.figure import Figure

    names = details.names[:DRAWN]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(1.2 + 3.9 * columns, 0.9 + 3.7 * rows), layout="constrained")
    parts = figure.subplots(rows, columns, squeeze=False).ravel()
    for number, axes in enumerate(parts):
        if number < len(names):
            _scatter(axes, names[number], details.truth[:, number], details.predicted[:, number])
        else:
            axes.axis("off")
    some = f"{len(details.truth):,} of " if len(details.truth) < details.num_nodes else ""
    more = f", the first {DRAWN} of {len(details.names)} numbers" if len(details.names) > DRAWN else ""
    figure.suptitle(f"{title}, {some}{details.num_nodes:,} nodes{more}", fontsize=12, parse_math=False)
    return figure


def _scatter(axes: Any, name: str, truth: Any, predicted: Any) -> None:
    known = ~np.isnan(truth)
    truth, predicted = truth[known], predicted[known]
    axes.scatter(truth, predicted, s=9, color=COLOURS[0], alpha=0.45, linewidths=0)
    if len(truth):
        ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
        axes.plot(ends, ends, color="#555555", linewidth=1, linestyle="--")
    axes.set_title(name, fontsize=10, parse_math=False)
    axes.set(xlabel="truth", ylabel="predicted")
    axes.spines[["top", "right"]].set_visible(False)
