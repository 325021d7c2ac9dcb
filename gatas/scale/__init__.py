"""Beyond one process: training on several that torchrun starts."""

from gatas.scale.processes import Processes, together

__all__ = ["Processes", "together"]
