"""Keys G = n · Wᵀ and values V = ELU(n · Wᵀ + bias) of pairs, for every head; on a GPU in one kernel, ELU included."""

import torch
from torch import Tensor
from torch.nn import functional as F

from gatas.sampling.models import fold_models


def project(
    neighbours: Tensor,  # (U, J)        n
    key_weight: Tensor,  # (K·F', J)
    value_weight: Tensor,  # (K·F'', J)
    value_bias: Tensor,  # (K·F'')
    num_heads: int,
    precision: str = "tf32",
) -> tuple[Tensor, Tensor]:
    """(U, K, F') and (U, K, F'')."""
    if not neighbours.is_cuda or neighbours.dtype == torch.float64:
        return project_torch(neighbours, key_weight, value_weight, value_bias, num_heads)
    given = (tensor.float()[None] for tensor in (neighbours, key_weight, value_weight, value_bias))
    keys, values = _project(*given, num_heads, precision)
    return keys[0], values[0]


def project_torch(
    neighbours: Tensor, key_weight: Tensor, value_weight: Tensor, value_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor]:
    """The contract."""
    keys = F.linear(neighbours, key_weight)
    values = F.elu(F.linear(neighbours, value_weight, value_bias))
    return keys.view(len(keys), num_heads, -1), values.view(len(values), num_heads, -1)


@torch.library.custom_op("gatas::project", mutates_args=())
def _project(
    neighbours: Tensor, key_weight: Tensor, value_weight: Tensor, value_bias: Tensor, num_heads: int, precision: str
) -> tuple[Tensor, Tensor]:
    from gatas.nn.ops import gpu

    return gpu.project_forward(neighbours, key_weight, value_weight, value_bias, num_heads, precision)


@_project.register_fake
def _(
    neighbours: Tensor, key_weight: Tensor, value_weight: Tensor, value_bias: Tensor, num_heads: int, precision: str
) -> tuple[Tensor, Tensor]:
    shape = (*neighbours.shape[:2], num_heads)
    widths = (weight.shape[1] // num_heads for weight in (key_weight, value_weight))
    keys, values = (neighbours.new_empty(*shape, width) for width in widths)
    return keys, values


@torch.library.custom_op("gatas::project_backward", mutates_args=())
def _project_backward(
    neighbours: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    values: Tensor,
    grad_keys: Tensor,
    grad_values: Tensor,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from gatas.nn.ops import gpu

    return gpu.project_backward(neighbours, key_weight, value_weight, values, grad_keys, grad_values, precision)


@_project_backward.register_fake
def _(
    neighbours: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    values: Tensor,
    grad_keys: Tensor,
    grad_values: Tensor,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weights = (neighbours, key_weight, value_weight, value_weight[..., 0])
    of_neighbours, of_key, of_value, of_bias = (torch.empty_like(tensor) for tensor in weights)
    return of_neighbours, of_key, of_value, of_bias.contiguous()


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    neighbours, key_weight, value_weight, _, _, ctx.precision = inputs
    ctx.save_for_backward(neighbours, key_weight, value_weight, output[1])


def _differentiate(ctx, grad_keys, grad_values):  # type: ignore[no-untyped-def]
    grads = torch.ops.gatas.project_backward(*ctx.saved_tensors, grad_keys, grad_values, ctx.precision)
    return (*grads, None, None)


_project.register_autograd(_differentiate, setup_context=_setup)
fold_models(_project)
