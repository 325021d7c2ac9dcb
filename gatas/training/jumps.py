"""`warn_of_jumps`: a loss that is suddenly far above what it was."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from gatas.errors import GatasWarning
from gatas.training.progress import Entry

BEFORE = 3
"""Epochs before, by the median of which a loss is judged."""
TIMES, MORE = 3.0, 0.75
"""A loss is suspicious that is so many times that median, and so much above it."""
SUDDEN = 1.5
"""And so many times that of the epoch before: what stays high is told of once."""
LOSSES = {"loss": "training", "valid_loss": "validation"}


def warn_of_jumps(history: Sequence[Entry], entry: Entry, seeds: Sequence[int]) -> None:
    """Report the losses of an epoch, of each model, that jumped above those of the epochs before."""
    for name, what in LOSSES.items():
        for place, seed in enumerate(seeds):
            for before, now in _jumps([one[name][place] for one in (*history[-BEFORE:], entry) if name in one]):
                warnings.warn(
                    f"the {what} loss rose from {before:.3g} to {now:.3g} in epoch {entry['epoch'] + 1} (seed {seed}). The "
                    "best weights are kept; a smaller learning_rate or max_norm makes such jumps unlikely.",
                    GatasWarning,
                    stacklevel=3,
                )


@contextmanager
def jumps_unreported() -> Iterator[None]:
    """Keep quiet about jumps, as those of a trial: its settings are compared with others by what comes of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the (training|validation) loss rose", GatasWarning)
        yield


def _jumps(losses: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Give the last two losses if the last is a jump."""
    *before, now = losses or [0.0]
    if before and now > max(TIMES * median(before), MORE + median(before), SUDDEN * before[-1]):
        yield before[-1], now
