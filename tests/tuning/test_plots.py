"""Pictures of a search."""

from matplotlib.backends.backend_agg import FigureCanvasAgg

from gatas.tuning.plots import history_plot
from gatas.tuning.trial import Outcome, Trial


def test_the_legend_lies_outside_of_the_points():
    outcomes: tuple[Outcome, ...] = ("finished", "pruned", "diverged")
    trials = [Trial(number, {}, outcomes[number % 3], 0.9 - number / 100, 0.5, 3, 1.0) for number in range(1, 13)]
    figure = history_plot(trials, "accuracy")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent(canvas.get_renderer())
    assert (
        not box.overlaps(figure.axes[0].get_window_extent()) and figure.bbox.containsx(box.x1) and figure.bbox.containsy(box.y0)
    )
    assert [text.get_text() for text in legend.get_texts()] == ["finished", "pruned", "diverged", "best so far"]
