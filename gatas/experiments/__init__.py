"""The paper's experiments: recipes, results and tables."""

from gatas.experiments.paper import reproduce
from gatas.experiments.recipes import recipe

__all__ = ["recipe", "reproduce"]
