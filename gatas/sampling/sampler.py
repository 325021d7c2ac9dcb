"""`NeighbourSampler`: learned depth, and a fixed-size sample of typed neighbours for each target (§3.4)."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from gatas.errors import TransitionError
from gatas.ops.draw import draw_samples
from gatas.ops.mixture import log_mixture
from gatas.ops.torch_private import unwrapped
from gatas.sampling.neighbourhood import Neighbourhood
from gatas.sampling.on_demand import rows_on
from gatas.sampling.table import CandidateTable, make_table, stored_table, uniform_table
from gatas.transitions import Transitions, TransitionSource
from gatas.transitions.table import checked_targets

Mode = Literal["sample", "top", "all"]
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class NeighbourSampler(nn.Module):
    """Draws S (neighbour, path) pairs per target without replacement, ∝ P = Σ qₜ T⁽ᵗ⁾ (§3.4), and learns q.

    The draw for a target is a function of (seed, draw number, target) alone: not of its batch, of threads or of the device.
    The draw number advances by one with each call, unless it is given.

    On a GPU all of it stays there: a stored table is copied at the first call, the counter is the device's, and a captured
    CUDA graph draws anew at every replay. `OnDemand` makes rows there too, from edges that are copied at the first call; the
    host then reads some sizes for each batch, as it does for `all`, which needs the length of the longest row. Under
    torch.func.vmap every model draws what it draws alone, for the same q.

    Args:
        transitions: Where candidates come from: a `Transitions` table, or `OnDemand`, which makes rows for each batch.
        sample_size: S, neighbours for each target; slots beyond its candidates are unused.
        seed: What draws are a function of, a whole number of 64 bits. Default: 0.
        mode: "sample", the default, draws with noise; "top" takes the likeliest; "all" takes every candidate.
        uniform: Whether every candidate is alike likely and ln P plays no part in the attention, a variation of the paper's
            (§4.4). Default: False.
        uniform_steps: Whether the candidates of each step are alike likely, T⁽ᵗ⁾ being 1 / their number. Default: False.
        late_decay: Whether q starts alike for the target itself and its neighbours, and decays from there, as in the authors'
            code. Default: False.

    >>> sampler = NeighbourSampler(Transitions.build(graph, 2), sample_size=100)
    >>> neighbourhood = sampler(torch.tensor([17, 4]))      # node, path, ln P and mask, each (2, 100)
    """

    seed: Tensor
    draws: Tensor

    def __init__(
        self,
        transitions: TransitionSource,
        sample_size: int,
        *,
        seed: int = 0,
        mode: Mode = "sample",
        uniform: bool = False,
        uniform_steps: bool = False,
        late_decay: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(sample_size, int) or sample_size < 1:
            raise TransitionError(f"sample_size is {sample_size!r}; expected a whole number from 1 on.")
        if mode not in ("sample", "top", "all"):
            raise TransitionError(f"mode is {mode!r}; expected 'sample', 'top' or 'all'.")
        if not -(2**63) <= seed < 2**63:
            raise TransitionError(f"seed is {seed}; expected a whole number of 64 bits.")
        self.transitions, self.sample_size, self.mode, self.uniform = transitions, sample_size, mode, uniform
        self.uniform_steps = uniform_steps
        num_steps = transitions.setting.num_steps
        steps = (torch.arange(num_steps + 1, dtype=torch.get_default_dtype()) - int(late_decay)).clamp_min(0)
        self.depth_logits = nn.Parameter(-steps / np.log(num_steps + 1))  # q̃ₜ = -t / ln(C + 1), §4.2
        self.register_buffer("seed", torch.tensor(seed, dtype=torch.int64))
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    @property
    def depth_coefficients(self) -> Tensor:
        """q: (C + 1,), adds up to 1."""
        return torch.softmax(self.depth_logits, dim=-1)

    def forward(self, targets: Tensor, *, draw: int | Tensor | None = None, mode: Mode | None = None) -> Neighbourhood:
        """Draw the neighbourhoods of (B,) targets; a target may occur more than once and gets the same neighbours each time."""
        mode = mode or self.mode
        targets, table, positions = self.located(targets)
        drawn = draw_samples(
            *(own[None] for own in (self.depth_logits.detach(), self.seed, self._number(draw), targets, positions)),
            *(table.indptr, table.node, table.path, table.probability, table.longest),
            sample_size=table.longest_of(positions) if mode == "all" else self.sample_size,
            noisy=mode == "sample",
            uniform=self.uniform,
        )
        node, path, step, log_step, mask = drawn
        log_probability = self._log_probability(step, log_step, mask)
        return Neighbourhood(*(tensor.squeeze(0) for tensor in (node, path, log_probability, mask)))

    def coverage(self, targets: Tensor, neighbourhood: Neighbourhood) -> Tensor:
        """(B,) the share of P's mass that is in each sample; candidates that the table dropped count as missing."""
        _, table, positions = self.located(targets)
        counts = table.counts(positions)  # (B, C + 1)
        if self.uniform:
            return neighbourhood.mask.sum(-1) / counts.sum(-1)
        whole = (counts > 0).to(self.depth_logits.dtype) @ self.depth_coefficients
        return neighbourhood.log_probability.exp().sum(-1) / whole

    def num_candidates(self, targets: Tensor) -> Tensor:
        """(B,) how many (neighbour, path) pairs each sample is drawn from."""
        _, table, positions = self.located(targets)
        return table.counts(positions).sum(-1)

    def located(self, targets: Any) -> tuple[Tensor, CandidateTable, Tensor]:
        """The targets as int64 on the device, a table with their rows, and where in it these are."""
        targets = self._on_device(targets)
        table = self._table(targets)
        return targets, table, table.positions(targets)

    def _on_device(self, targets: Any) -> Tensor:
        """Targets checked on the host, unless they are on the GPU or under a vmap, where their values are out of its sight."""
        device = self.depth_logits.device
        hidden = isinstance(targets, Tensor) and (
            unwrapped(targets) is not targets or (targets.is_cuda and targets.device == device)
        )
        if not hidden:
            return torch.tensor(checked_targets(targets, self.transitions.setting.num_nodes), device=device)
        if targets.ndim > 1 or targets.dtype not in INTEGERS:
            kind, shape = targets.dtype, tuple(targets.shape)
            raise TransitionError(f"targets are {kind} of shape {shape}; expected a list of node indices.")
        numbers: Tensor = targets.long().reshape(-1)
        return numbers

    def _table(self, targets: Tensor) -> CandidateTable:
        """The stored table, or rows made for these targets: on demand, and on a CPU of a table that is in pieces."""
        source, device = self.transitions, targets.device
        made = uniform_table if self.uniform_steps else lambda table: table
        if isinstance(source, Transitions) and (len(source.shards) == 1 or device.type != "cpu"):
            return made(stored_table(source, device))
        if (maker := rows_on(source, device)) is not None:
            return made(maker.table(unwrapped(targets)))
        wanted = np.unique(unwrapped(targets.cpu()).numpy())
        return made(make_table((source.rows(wanted),), wanted, device))

    def _number(self, draw: int | Tensor | None) -> Tensor:
        """The draw's number, as a tensor that stays what it is when the counter advances."""
        if draw is None:
            number = self.draws.clone()
            self.draws.add_(1)
            return number
        return draw.to(self.draws) if isinstance(draw, Tensor) else torch.full_like(self.draws, draw)

    def _log_probability(self, step: Tensor, log_step: Tensor, mask: Tensor) -> Tensor:
        """ln P = ln qₜ + ln T⁽ᵗ⁾, (1, B, S)."""
        if self.uniform:
            return torch.where(mask, 0.0, -torch.inf).to(self.depth_logits.dtype)
        result: Tensor = log_mixture(torch.log_softmax(self.depth_logits, dim=-1)[None], step, log_step, mask)
        return result
