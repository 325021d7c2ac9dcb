"""The paper's experiments: recipes, results and tables."""

from gatas.experiments.recipes import recipe
from gatas.experiments.reproduce import reproduce

__all__ = ["recipe", "reproduce"]
