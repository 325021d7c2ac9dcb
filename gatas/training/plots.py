"""Pictures of a run: how it learned, and how deep it came to look."""

from io import BytesIO
from typing import TYPE_CHECKING, Any

from gatas.training.run import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")

TITLES = {"valid_micro_f1": "Micro-F1", "valid_roc_auc": "ROC-AUC", "valid_r2": "R²"}


def png(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=120, format="png")
    return buffer.getvalue()


def curve_plot(run: TrainedRun) -> "Figure":
    """Plot loss and validation metric over epochs, with the epoch whose weights were kept."""
    from matplotlib.figure import Figure  # half a second, which a training without plots need not wait for
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    metric: str | None = next((name for name in run.history[-1] if name.startswith("valid_") and name != "valid_loss"), None)
    losses, *others = figure.subplots(1, 1 if metric is None else 2, squeeze=False)[0]
    epochs = [entry["epoch"] + 1 for entry in run.history]
    _line(losses, run, epochs, "loss", "training", COLOURS[0])
    if run.config.training.loss != "list":  # where links are learned by lists, and validated as pairs: not to be compared
        _line(losses, run, epochs, "valid_loss", "validation", COLOURS[1])
    losses.set(title="Loss", xlabel="epoch")
    losses.legend(frameon=False)
    for scores in others:
        _line(scores, run, epochs, str(metric), "validation", COLOURS[1])
        scores.set(title=TITLES.get(str(metric), str(metric).removeprefix("valid_").capitalize()), xlabel="epoch")
    best = run.metrics["best_epoch"] if "valid" in run.metrics else -1
    for axes in (losses, *others):
        if best >= 0:
            axes.axvline(best + 1, color=COLOURS[7], linewidth=1, linestyle="--")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{run.dataset.name}, seed {run.seed}" + (f": best after epoch {best + 1}" if best >= 0 else ""))
    return figure


def _line(axes: Any, run: TrainedRun, epochs: list[int], name: str, label: str, colour: str) -> None:
    if name in run.history[-1]:
        marker = "o" if len(epochs) == 1 else None  # which has no line
        axes.plot(epochs, [entry[name] for entry in run.history], label=label, color=colour, linewidth=1.5, marker=marker)


def depth_plot(run: TrainedRun) -> "Figure":
    """Plot the depth coefficients q over epochs, one band for each step."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    epochs = [entry["epoch"] + 1 for entry in run.history]
    depths = [entry["depth"] for entry in run.history]
    if len(epochs) == 1:  # which has no width
        epochs, depths = [epochs[0] - 0.5, epochs[0] + 0.5], depths * 2
    bands = list(zip(*depths, strict=True))
    labels = ["itself", *(f"{step} step{'s' if step > 1 else ''} away" for step in range(1, len(bands)))]
    axes.stackplot(epochs, *bands, labels=labels, colors=COLOURS, alpha=0.85)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set(
        xlim=(epochs[0], epochs[-1]),
        ylim=(0, 1),
        xlabel="epoch",
        ylabel="q",
        title=f"Learned weights of depth, {run.dataset.name}",
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, reverse=True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
