"""Tensors on a CPU as the contiguous numpy arrays that kernels take."""

from typing import Any

from numpy.typing import NDArray
from torch import Tensor


def as_numpy(tensor: Tensor) -> NDArray[Any]:
    """The tensor's own memory where it is contiguous, else a copy."""
    return tensor.detach().contiguous().numpy()
