"""Random bits that are a function of what they are for: Threefry-2x32, by torch, by numba and by Triton."""

from gatas.ops.random.contract import DRAW, WORD, NoiseSource, stream, threefry, uniform

__all__ = ["DRAW", "WORD", "NoiseSource", "stream", "threefry", "uniform"]
