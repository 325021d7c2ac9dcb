"""How much each part of a link's score counts: fitted to validation links, which no part was trained on."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

STEPS = 50
"""Iterations of L-BFGS at most; a few parameters need a dozen."""
PRIOR = 5.0
"""How many examples weigh as much as what is expected without any: that parts count alike, and types have one bias."""


class Examples(NamedTuple):
    """Queries with the scores of candidates by each part: (parts, Q, C); -inf where a candidate does not count."""

    scores: Tensor
    answer: Tensor  # (Q,) the slot of the true candidate


def fit_part_weights(several: list[Examples]) -> Tensor:
    """Return (parts,) weights from 0 on that make the true candidates likeliest, by softmax over the weighted sums.

    Scores stay on their device, which has far more to do than the host, where the weights are.
    """
    parts, device = len(several[0].scores), several[0].scores.device
    raw = torch.full((parts,), 0.5413, dtype=torch.float64, requires_grad=True)  # softplus: 1
    tables = [Examples(one.scores.double().clamp_min(-1e30), one.answer.to(device)) for one in several]
    count = sum(len(one.answer) for one in tables)

    def loss() -> Tensor:
        weights = F.softplus(raw)
        there = weights.to(device)
        found = [F.cross_entropy(torch.einsum("p,pqc->qc", there, one.scores), one.answer) for one in tables]
        return torch.stack(found).mean().cpu() + PRIOR / count * (weights - 1).square().sum()

    _minimise(raw, loss)
    return F.softplus(raw).detach()


def fit_bias(logits: Tensor, label: Tensor, edge_type: Tensor, num_types: int) -> tuple[Tensor, Tensor]:
    """Return a slope and (T,) biases that make scores of pairs into log-odds; types with few pairs are near the mean bias."""
    scores, truth, kinds = logits.double(), label.double().to(logits.device), edge_type.to(logits.device)
    values = torch.zeros(num_types + 2, dtype=torch.float64, requires_grad=True)  # ln slope, mean bias, what types have more

    def loss() -> Tensor:
        slope, bias = values[0].exp().to(scores.device), (values[1] + values[2:]).to(scores.device)
        found = F.binary_cross_entropy_with_logits(slope * scores + bias[kinds], truth).cpu()
        return found + PRIOR / len(truth) * (values[0].square() + values[2:].square().sum() / 4)

    _minimise(values, loss)
    fitted = values.detach()
    return fitted[0].exp(), fitted[1] + fitted[2:]


@torch.enable_grad()
def _minimise(values: Tensor, loss: Callable[[], Tensor]) -> None:
    optimiser = torch.optim.LBFGS([values], max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        result = loss()
        result.backward()  # type: ignore[no-untyped-call]
        return result

    optimiser.step(closure)  # type: ignore[no-untyped-call]
