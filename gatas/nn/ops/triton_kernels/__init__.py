"""The Triton kernels of `nn.ops`, for GPUs; imported only where there is one, or Triton's interpreter.

Every array has a leading dimension of M independent models and is contiguous. B targets, S slots, K heads, U pairs;
J is the width of n, F that of g's hidden layer, H that of a head's output; JP, FP and HP are these as powers of two.
"""

from gatas.nn.ops.triton_kernels.nadam import nadam_norm, nadam_update
from gatas.nn.ops.triton_kernels.noise import fill_keep
from gatas.nn.ops.triton_kernels.normalise import normalise_backward, normalise_forward
from gatas.nn.ops.triton_kernels.pairs import (
    count_slots,
    pairs_backward,
    pairs_backward_sums,
    pairs_forward,
    place_slots,
    project_forward,
)
from gatas.nn.ops.triton_kernels.represent import represent_backward_input, represent_backward_steps, represent_forward
from gatas.nn.ops.triton_kernels.tiles import tiles_backward, tiles_forward

__all__ = [
    "count_slots",
    "fill_keep",
    "nadam_norm",
    "nadam_update",
    "normalise_backward",
    "normalise_forward",
    "pairs_backward",
    "pairs_backward_sums",
    "pairs_forward",
    "place_slots",
    "project_forward",
    "represent_backward_input",
    "represent_backward_steps",
    "represent_forward",
    "tiles_backward",
    "tiles_forward",
]
