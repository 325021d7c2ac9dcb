"""What makes a model learn: the loop, early stopping, many seeds at once, checkpoints, run folders."""

from gatas.training.config import Config, TrainingConfig, load_config
from gatas.training.evaluation import evaluate
from gatas.training.folder import load
from gatas.training.loop import fit, fit_many
from gatas.training.nadam import NAdam
from gatas.training.run import Run, Runs

__all__ = ["Config", "NAdam", "Run", "Runs", "TrainingConfig", "evaluate", "fit", "fit_many", "load", "load_config"]
