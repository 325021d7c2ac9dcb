"""What is learned: classes of nodes, or typed links; batches, losses and metrics of both."""

from gatas.tasks.config import ModelConfig
from gatas.tasks.links import LinkPredictor, LinkTask
from gatas.tasks.model import Model
from gatas.tasks.nodes import NodeClassifier, NodeTask

__all__ = ["LinkPredictor", "LinkTask", "Model", "ModelConfig", "NodeClassifier", "NodeTask"]
