"""Named data: the paper's six, and two embedded sets that need no download."""

from gatas.datasets.dataset import Dataset, Pairs, Task
from gatas.datasets.loading import NAMES, load_dataset

__all__ = ["NAMES", "Dataset", "Pairs", "Task", "load_dataset"]
