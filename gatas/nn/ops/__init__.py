"""The operators that cost the most, each with one contract and several implementations."""

from gatas.nn.ops.attend import attend

__all__ = ["attend"]
