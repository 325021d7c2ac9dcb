"""What is learned: classes of nodes, or typed links; batches, losses and metrics of both."""

from gatas.tasks.config import ModelConfig
from gatas.tasks.link_list_task import LinkListTask
from gatas.tasks.link_task import LinkTask
from gatas.tasks.links import LinkPredictor
from gatas.tasks.model import Model
from gatas.tasks.nodes import NodeClassifier, NodeTask

__all__ = ["LinkListTask", "LinkPredictor", "LinkTask", "Model", "ModelConfig", "NodeClassifier", "NodeTask"]
