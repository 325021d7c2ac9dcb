"""What a trained model has to say."""

from gatas.inference.attention import Attention, attention, shares_by_path
from gatas.inference.explain import explain
from gatas.inference.explanation import Answer, Explanation, Part

__all__ = ["Answer", "Attention", "Explanation", "Part", "attention", "explain", "shares_by_path"]
