"""`NeighbourSampler`: learned depth, and a fixed-size sample of typed neighbours for each target (§3.4)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatas.errors import TransitionError
from gatas.sampling import kernels
from gatas.sampling.neighbourhood import Neighbourhood
from gatas.sampling.noise import DRAW, stream
from gatas.sampling.threads import run_spans
from gatas.transitions import Rows, Transitions, TransitionSource
from gatas.transitions.table import checked_targets

Mode = Literal["sample", "top", "all"]
PARALLEL_CANDIDATES = 20_000
"""Fewer are not worth a second thread."""


class NeighbourSampler(nn.Module):
    """Draws S (neighbour, path) pairs per target without replacement, ∝ P = Σ qₜ T⁽ᵗ⁾; owns q̃.

    The draw for a target is a function of (seed, draw number, target) alone: not of its batch, of threads or of the device.
    The draw number advances by one with each call, unless it is given.
    Modes: `sample`; `top`, the likeliest without noise; `all`, every candidate. `uniform` is the paper's variation in which
    every candidate is alike likely and ln P plays no part in the attention.
    """

    draws: Tensor

    def __init__(
        self,
        transitions: TransitionSource,
        sample_size: int,
        *,
        seed: int = 0,
        mode: Mode = "sample",
        uniform: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(sample_size, int) or sample_size < 1:
            raise TransitionError(f"sample_size is {sample_size!r}; expected a whole number from 1 on.")
        if mode not in ("sample", "top", "all"):
            raise TransitionError(f"mode is {mode!r}; expected 'sample', 'top' or 'all'.")
        self.transitions, self.sample_size, self.seed, self.mode = transitions, sample_size, seed, mode
        self.uniform = uniform
        num_steps = transitions.setting.num_steps
        steps = torch.arange(num_steps + 1, dtype=torch.get_default_dtype())
        self.depth_logits = nn.Parameter(-steps / np.log(num_steps + 1))  # q̃ₜ = -t / ln(C + 1), §4.2
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    @property
    def depth_coefficients(self) -> Tensor:
        """q: (C + 1,), adds up to 1."""
        return torch.softmax(self.depth_logits, dim=-1)

    def forward(self, targets: Tensor, *, draw: int | None = None, mode: Mode | None = None) -> Neighbourhood:
        """The neighbourhoods of (B,) targets; a target may occur more than once and gets the same neighbours each time."""
        if draw is None:
            draw = int(self.draws)
            self.draws += 1
        wanted = checked_targets(targets, self.transitions.setting.num_nodes)
        rows, positions = self._rows(wanted)
        sizes = rows.indptr[(positions + 1) * (rows.num_steps + 1)] - rows.indptr[positions * (rows.num_steps + 1)]
        mode = mode or self.mode
        size = int(sizes.max(initial=1)) if mode == "all" else self.sample_size
        drawn = self._drawn(rows, positions, sizes, wanted, size, draw, noisy=mode == "sample")
        device = self.depth_logits.device
        node, path, step, probability, mask = (torch.from_numpy(column).to(device) for column in drawn)
        return Neighbourhood(node, path, self._log_probability(step, probability, mask), mask)

    def coverage(self, targets: Tensor, neighbourhood: Neighbourhood) -> Tensor:
        """(B,) the share of P's mass that is in each sample; candidates that the table dropped count as missing."""
        rows, positions = self._rows(checked_targets(targets, self.transitions.setting.num_nodes))
        levels = positions[:, None] * (rows.num_steps + 1) + np.arange(rows.num_steps + 1)
        reached = torch.from_numpy(rows.indptr[levels + 1] > rows.indptr[levels]).to(neighbourhood.node.device)
        total = reached.to(self.depth_logits.dtype) @ self.depth_coefficients
        return neighbourhood.log_probability.exp().sum(-1) / total

    def _rows(self, targets: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """Rows that hold the targets' candidates, and where: the table itself where it is in one piece."""
        source = self.transitions
        if isinstance(source, Transitions) and len(source.shards) == 1:
            return source.shards[0], source.positions(targets)
        return source.rows(targets), np.arange(len(targets))

    def _drawn(
        self,
        rows: Rows,
        positions: NDArray[np.int64],
        sizes: NDArray[np.int64],
        targets: NDArray[np.int64],
        sample_size: int,
        draw: int,
        *,
        noisy: bool,
    ) -> tuple[NDArray[Any], ...]:
        shape = (len(targets), sample_size)
        node, path, step = (np.zeros(shape, kind) for kind in (np.int64, np.int64, np.int64))
        probability, count = np.ones(shape, np.float32), np.zeros(len(targets), np.int64)
        depth = torch.softmax(self.depth_logits.detach().double(), dim=-1).float().double().cpu().numpy()
        key0, key1 = (np.uint32(word) for word in stream(self.seed, DRAW, draw))

        def work(first: int, last: int) -> None:
            kernels.draw_rows(
                rows.indptr, rows.node, rows.path, rows.probability, positions[first:last], targets[first:last], depth,
                key0, key1, noisy, self.uniform,
                node[first:last], path[first:last], step[first:last], probability[first:last], count[first:last],
            )  # fmt: skip

        run_blocks(work, sizes)
        return node, path, step, probability, np.arange(sample_size) < count[:, None]

    def _log_probability(self, step: Tensor, probability: Tensor, mask: Tensor) -> Tensor:
        """ln P = ln qₜ + ln T⁽ᵗ⁾. A product with a one-hot: the gradient of q[step] would add up B·S numbers one by one."""
        if self.uniform:
            return torch.where(mask, 0.0, -torch.inf).to(self.depth_logits.dtype)
        log_depth = torch.log_softmax(self.depth_logits, dim=-1)
        chosen = nn.functional.one_hot(step, len(log_depth)).to(log_depth.dtype) @ log_depth
        return torch.where(mask, chosen + probability.to(log_depth.dtype).log(), -torch.inf)


def run_blocks(work: Callable[[int, int], None], sizes: NDArray[np.int64]) -> None:
    """Call `work(first, last)` over ranges of rows of about equal size, on as many threads as torch uses."""
    threads, total = torch.get_num_threads(), np.cumsum(sizes)
    if threads == 1 or sizes.sum() < PARALLEL_CANDIDATES:
        work(0, len(sizes))
        return
    cuts = np.searchsorted(total, np.linspace(0, total[-1], 4 * threads + 1)[1:-1])
    run_spans(work, [0, *np.unique(cuts[cuts > 0]).tolist(), len(sizes)])
