"""What a trained model has to say."""

from gatas.inference.attention import Attention, attention, shares_by_path

__all__ = ["Attention", "attention", "shares_by_path"]
