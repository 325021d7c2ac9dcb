"""What finds good settings: a search over trials that are compared on validation data."""

from gatas.tuning.trial import Trial
from gatas.tuning.tuning import Tuning, tune

__all__ = ["Trial", "Tuning", "tune"]
