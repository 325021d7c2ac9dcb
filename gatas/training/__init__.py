"""What makes a model learn."""

from gatas.training.memory import keep_freed_memory
from gatas.training.nadam import NAdam

__all__ = ["NAdam", "keep_freed_memory"]
