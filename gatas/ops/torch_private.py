"""Everything that is private to torch and used here; each use has a test that says what breaks when torch changes it."""

import torch
from torch import Tensor


def is_mapped(tensor: Tensor) -> bool:
    """Whether a tensor is one model's part of many, inside `torch.func.vmap`: its values cannot be looked at."""
    return torch._C._functorch.is_batchedtensor(tensor)


def unwrapped(tensor: Tensor) -> Tensor:
    """What is beneath the wrappers of torch.func, all models of a vmap together: the host can look at its values."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def assert_on_device(condition: Tensor, message: str) -> None:
    """Raise when the GPU gets there and the condition does not hold; the host does not wait."""
    torch._assert_async(condition, message)
