"""Tensors on a CPU as the contiguous numpy arrays that kernels take."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import GatasError


def as_numpy(tensor: Tensor) -> NDArray[Any]:
    """The tensor's own memory where it is contiguous, else a copy; half precision is refused, as kernels have none."""
    if tensor.dtype in (torch.float16, torch.bfloat16):
        raise GatasError(
            f"an operator was given {str(tensor.dtype).removeprefix('torch.')} on a CPU; expected float32 or float64. "
            "Call .float() on the model and on the features, leave out torch.autocast, or use a GPU."
        )
    return tensor.detach().contiguous().numpy()
