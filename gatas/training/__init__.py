"""What makes a model learn."""

from gatas.training.nadam import NAdam

__all__ = ["NAdam"]
