"""Dense layers as they begin."""

import math

from torch import nn


def dense(input_size: int, output_size: int, *, bias: bool = True, beside: int = 0) -> nn.Linear:
    """A linear layer with Glorot's initial weights and biases of 0, as in the authors' code.

    `beside` is the width of what it sees together with its input, through a layer of its own.
    """
    layer = nn.Linear(input_size, output_size, bias=bias)
    limit = math.sqrt(6 / (input_size + beside + output_size))
    nn.init.uniform_(layer.weight, -limit, limit)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
