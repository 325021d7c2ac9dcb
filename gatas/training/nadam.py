"""NAdam with clipping and L2, over all parameters of a model as one flat vector: one pass on a CPU, four launches on a GPU.

`torch.optim.NAdam` gives the same numbers, but captured in a CUDA graph it takes some hundred launches for a small model.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from gatas.ops.nadam import Moments, NAdamInputs, nadam_step
from gatas.training.group import ALONE, Group
from gatas.training.rows import RowGradients


class NAdam:
    """Dozat's Adam with Nesterov momentum, as in torch; the gradient's norm is clipped at `max_norm` first.

    `l2` is λ of λ·½‖θ‖², whose gradient is added before clipping; one number, or one for each parameter. Parameters become
    views of one vector, so they must all be on one device, and are not to be moved afterwards. With `num_models` every
    parameter has a leading dimension of models, which share nothing but the number of steps; each may have its own `lr`, and
    its own factor of `l2` in `l2_of_models`. Without `nesterov` it is Adam.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float | Sequence[float] = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        *,
        momentum_decay: float = 4e-3,
        max_norm: float | None = None,
        l2: float | Sequence[float] = 0.0,
        l2_of_models: Sequence[float] | None = None,
        nesterov: bool = True,
        num_models: int | None = None,
    ) -> None:
        self.parameters = [parameter for parameter in dict.fromkeys(parameters) if parameter.requires_grad]
        self.betas, self.eps, self.momentum_decay, self.max_norm = betas, eps, momentum_decay if nesterov else None, max_norm
        self.num_models = num_models or 1
        self.sizes = [parameter.numel() // self.num_models for parameter in self.parameters]
        with torch.no_grad():
            self.values = self._joined(self.parameters)  # (M, P)
            for parameter, part in zip(self.parameters, torch.split(self.values, self.sizes, dim=1), strict=True):
                parameter.data = part.view(parameter.shape)
            self.lr = torch.tensor(lr, dtype=torch.float32, device=self.values.device)  # (), or (M,)
            shares = [float(l2)] * len(self.parameters) if isinstance(l2, int | float) else l2
            parts = [torch.full((size,), share) for size, share in zip(self.sizes, shares, strict=True)]
            self.l2 = torch.cat(parts).to(self.values) if any(shares) else None
            if self.l2 is not None and l2_of_models is not None:
                self.l2 = torch.tensor(l2_of_models).to(self.values)[:, None] * self.l2
            self.moments = Moments.of(self.values)

    def _joined(self, tensors: Iterable[Tensor]) -> Tensor:
        return torch.cat([tensor.reshape(self.num_models, -1) for tensor in tensors], dim=1)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, group: Group = ALONE) -> None:
        """Take a step along the gradients, summed over processes; parameters without one have zeros.

        Of a parameter whose gradient is sparse, as of learned embeddings, only the rows that have one are looked at.
        """
        gradients = [torch.zeros_like(own) if own.grad is None else own.grad for own in self.parameters]
        if any(gradient.is_sparse for gradient in gradients):
            self._lazy_step(RowGradients.of(gradients, group), group)
        else:
            self._step(self.values, group.all_reduce_sum(self._joined(gradients)), self.moments, self.l2)

    def _lazy_step(self, gradients: RowGradients, group: Group) -> None:
        """Take a step for rows with a gradient; the others keep values and moments, and L2 leaves them as they are."""
        vectors = (self.values, self.moments.first, self.moments.second)
        values, first, second = (gradients.chosen(vector) for vector in vectors)
        l2 = None if self.l2 is None else gradients.chosen(self.l2)[0]
        self._step(values, group.all_reduce_sum(gradients.joined()), self.moments._replace(first=first, second=second), l2)
        for vector, changed in zip(vectors, (values, first, second), strict=True):
            gradients.put_back(vector, changed)

    def _step(self, values: Tensor, gradient: Tensor, moments: Moments, l2: Tensor | None) -> None:
        settings = (self.lr, l2, self.betas, self.eps, self.momentum_decay, self.max_norm)
        nadam_step(NAdamInputs(values, gradient, moments, *settings))
