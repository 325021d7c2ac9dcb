"""What makes a model learn: the loop, early stopping, many seeds at once, checkpoints, run folders."""

from gatas.training.config import Config, TrainingConfig, load_config
from gatas.training.evaluation import evaluate
from gatas.training.limit import Limit
from gatas.training.loop import fit_models
from gatas.training.nadam import NAdam
from gatas.training.run import Runs, TrainedRun

__all__ = ["Config", "Limit", "NAdam", "Runs", "TrainedRun", "TrainingConfig", "evaluate", "fit_models", "load_config"]
