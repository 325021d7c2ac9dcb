"""What is learned: classes or numbers of nodes, or typed links; batches, losses and metrics of each."""

from gatas.tasks.config import ModelConfig
from gatas.tasks.link_list_task import LinkListTask
from gatas.tasks.link_task import LinkTask
from gatas.tasks.links import LinkPredictor
from gatas.tasks.model import Model
from gatas.tasks.nodes import NodeClassifier, NodeTask
from gatas.tasks.numbers import NodeRegressor, RegressionTask

__all__ = [
    "LinkListTask",
    "LinkPredictor",
    "LinkTask",
    "Model",
    "ModelConfig",
    "NodeClassifier",
    "NodeRegressor",
    "NodeTask",
    "RegressionTask",
]
