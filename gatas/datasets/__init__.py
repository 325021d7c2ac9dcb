"""Named data: the paper's six, and two embedded sets that need no download; and files of one's own."""

from gatas.datasets.config import DataConfig
from gatas.datasets.dataset import Dataset, Pairs, Task
from gatas.datasets.loading import NAMES, load_dataset, open_dataset
from gatas.datasets.own import read_dataset

__all__ = ["NAMES", "DataConfig", "Dataset", "Pairs", "Task", "load_dataset", "open_dataset", "read_dataset"]
