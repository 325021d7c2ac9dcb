"""`Learner`: one or several models that learn at once, batch by batch, on a CPU or as captured CUDA graphs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gatas.errors import ConfigError
from gatas.tasks import LinkPredictor, LinkTask, NodeTask
from gatas.tasks.batches import Batches
from gatas.tasks.learnable import Learnable
from gatas.tasks.ranking import Ranks
from gatas.training.batch_loop import Batch, Loop, even
from gatas.training.config import TrainingConfig
from gatas.training.group import ALONE, Group
from gatas.training.nadam import NAdam
from gatas.training.rates import Rates
from gatas.training.weight_average import WeightAverage

Work = Callable[[Any, Batch], Tensor]  # of one model
PAIRS = 16_384
"""Pairs that are scored at once in an evaluation."""
RANKED_LINKS = 2000
"""Validation links that are ranked after an epoch, at most; test links are all ranked."""
MOST_EMBEDDINGS = 1_000_000
"""Up to so many, every step changes all of them unless told otherwise."""


class Learner:
    """M models of one shape that share nothing but the program, each with its own weights, noise and order of batches.

    One is called as it is; several are called through torch.func.vmap, over weights with a leading dimension of models.
    """

    def __init__(
        self,
        model: Learnable,
        state: dict[str, Tensor],
        task: NodeTask | LinkTask,
        config: TrainingConfig,
        device: torch.device,
        num_models: int | None = None,
        *,
        group: Group = ALONE,
        sparse: bool = False,
        rates: Rates | None = None,
    ) -> None:
        """The model's own `state` is learned, or one that has, in all of it, a leading dimension of `num_models`.

        `rates` are what these models have each for itself, in place of the config's.
        """
        self.model, self.stacked, self.num_models = model, num_models is not None, num_models or 1
        self.task, self.config, self.device, self.group, self.rates = task, config, device, group, rates
        self.parameters = {name: tensor for name, tensor in state.items() if isinstance(tensor, nn.Parameter)}
        self.counters = {name: tensor for name, tensor in state.items() if name not in self.parameters}  # seeds and counts
        self.optimiser = NAdam(
            self.parameters.values(),
            config.learning_rate if rates is None else rates.learning_rate,
            momentum_decay=config.momentum_decay,
            max_norm=config.max_norm,
            l2=[(1.0 if rates else config.l2) * self.model.l2_share(name) for name in self.parameters],
            l2_of_models=None if rates is None else rates.l2,
            nesterov=config.optimiser == "nadam",
            num_models=num_models,
        )
        self.best = self.optimiser.values.clone()
        self.average = WeightAverage(self.optimiser.values, config.ema_decay) if config.ema_decay and not sparse else None
        self.draw = torch.zeros((), dtype=torch.int64, device=device)
        whole = not (isinstance(task, LinkTask) and (task.lists or task.hidden_folds))  # else tables change between batches
        captures = device.type == "cuda" and self.model.captures and whole and not sparse  # rows are counted by the host
        changed = [*self.counters.values(), self.optimiser.values, *self.optimiser.moments]
        changed += [] if self.average is None else [self.average.values]
        self.training = Loop(self._step, captures, changed, self.model.look_ahead)
        self.splits: dict[str, Split] = {}
        self.ranks: dict[str, list[Ranks | None]] = {}
        if isinstance(task, LinkTask):
            task.hide_from(model)

    @classmethod
    def of(
        cls,
        models: Sequence[Learnable],
        task: NodeTask | LinkTask,
        config: TrainingConfig,
        device: torch.device,
        group: Group = ALONE,
        rates: Rates | None = None,
    ) -> "Learner":
        """Make a learner of models as they are. The weights of a single one are learned in place."""
        states, sparse = [model.state_dict(keep_vars=True) for model in models], changes_seen_only(models, config)
        models[0].to(device).prepare(config.precision, config.storage, sparse=sparse)
        if len(models) == 1:
            state = models[0].state_dict(keep_vars=True)
            return cls(models[0], state, task.to(device), config, device, group=group, sparse=sparse)
        state = {name: _stacked([own[name] for own in states], device) for name in states[0]}
        return cls(models[0], state, task.to(device), config, device, len(models), group=group, rates=rates)

    def part(self, rows: list[int]) -> "Learner":
        """Return a learner that goes on with some of the models."""
        state = {name: _chosen(tensor, rows) for name, tensor in {**self.parameters, **self.counters}.items()}
        rates = None if self.rates is None else self.rates.part(rows)
        part = Learner(self.model, state, self.task, self.config, self.device, len(rows), group=self.group, rates=rates)
        self._copy(part, rows, lambda own, theirs: theirs.copy_(own))
        return part

    def forget(self) -> None:
        """Free what was captured; it would be captured anew."""
        self.training.forget()
        self.splits.clear()

    def take_back(self, part: "Learner", rows: list[int]) -> None:
        """Copy back what a part has learned since."""
        if part is not self:
            self._copy(part, rows, lambda own, theirs: own.copy_(theirs))

    @torch.no_grad()
    def _copy(self, part: "Learner", rows: list[int], copy: Callable[[Tensor, Tensor], Tensor]) -> None:
        theirs = part.state()
        for name, own in self.state().items():
            if own.dim() == 0:
                copy(own, theirs[name])
                continue
            for place, row in enumerate(rows):
                copy(own[row], theirs[name][place])

    def state(self) -> dict[str, Tensor]:
        """Return all that changes in training, by name; to be copied into."""
        moments = {f"moments.{name}": tensor for name, tensor in self.optimiser.moments._asdict().items()}
        counters = {f"counters.{name}": tensor for name, tensor in self.counters.items()}
        averaged = {} if self.average is None else {"averaged": self.average.values}
        return {"values": self.optimiser.values, "best": self.best, **averaged, **moments, **counters}

    def train(self, batches: Batches, first: int = 0, stop: Callable[[], bool] = lambda: False) -> Tensor:
        """Take a step for each batch from the `first` on, unless asked to stop; return their (num_batches, M) losses."""
        self.model.train()
        try:
            losses = self.training(self._on_device(batches), batches.sizes, first, stop, self._hiding(batches))
        finally:
            if batches.fold is not None:
                self.model.hide(None)
        return self.group.all_reduce_sum(losses)

    def _hiding(self, batches: Batches) -> Callable[[int], None]:
        """Return what is to be done before a batch: its fold of links is hidden, if it is not yet, and the next made ready."""
        folds, hidden = batches.fold, -1

        def enter(number: int) -> None:
            nonlocal hidden
            if folds is None or folds[number] == hidden:
                return
            hidden = int(folds[number])
            later = folds[number:][folds[number:] != hidden]
            self.model.hide(hidden, int(later[0]) if len(later) else None)

        return enter

    def _step(self, batch: Batch) -> Tensor:
        self.optimiser.zero_grad()
        with self._autocast():
            losses = self._call(self._loss, batch, 0)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self.optimiser.step(self.group)
        if self.average is not None:
            self.average.follow(self.optimiser.moments.steps)
        return losses.detach()

    def _loss(self, model: Learnable, batch: Batch) -> Tensor:
        return self.task.objective(model, **self.group.share(batch), whole=batch)

    @torch.no_grad()
    def predict(self, split: str) -> Tensor:
        """Return (M, n, …) logits for a split: of nodes in ascending order, of pairs as they come."""
        return self.task.mean_logits(self._drawn_logits(split))

    @torch.no_grad()
    def predict_encoded(self) -> Tensor:
        """Return the logits of validation data that training is judged by: without what labels spread over the graph add.

        Fitted to few validation nodes, spread labels would make an encoder look good that has learned nothing yet.
        """
        weights = self.counters.get("spreading_weights")
        if weights is not None:
            weights.zero_()
        return self.predict("valid")

    @torch.no_grad()
    def predict_valid(self) -> Tensor:
        """Return the logits of validation data, to which it is first fitted what labels spread over the graph count."""
        weights = self.counters.get("spreading_weights")
        if weights is None or not isinstance(self.task, NodeTask):
            return self.predict("valid")
        weights.zero_()
        logits = self._drawn_logits("valid")  # (R, M, n, classes)
        fitted = self.task.fit_spreading(self.model, self.task.mean_logits(logits)).to(self.device)  # (M, A)
        weights.copy_(fitted.view_as(weights))
        self.group.copy_first([weights])
        return self.task.mean_logits(logits + self.task.spreading(self.model, weights.view_as(fitted)))

    def _drawn_logits(self, split: str) -> Tensor:
        """Return (R, M, n, …) logits of each draw."""
        self.model.eval()
        draws = range(self.config.evaluation_draws if self.config.evaluation_mode == "sample" else 1)
        self.ranks.pop(split, None)
        with nullcontext() if self.average is None else self.average.in_place():
            return torch.stack([self._predicted(split, -1 - draw) for draw in draws])

    def _predicted(self, split: str, draw: int) -> Tensor:
        self.draw.fill_(draw)  # below zero: never one that is trained on
        if split not in self.splits:
            self.splits[split] = self._prepared(split)
        loop, columns, sizes, width, place, num_batches = self.splits[split]
        found = self.group.gathered(_wide(loop(columns, sizes), width), num_batches)
        found = found.transpose(0, 1).flatten(1, 2)[:, place].float()  # (M, n, …)
        return self._linked(found, split) if isinstance(self.task, LinkTask) else found

    def _prepared(self, split: str) -> "Split":
        batches = self.task.split(split, self.model.evaluation_batch(self.device))
        waits = self.config.evaluation_mode == "all"  # the length of the longest row is the host's to know
        captures = self.device.type == "cuda" and self.model.captures and not waits
        loop = Loop(self._evaluated, captures, [], self.model.look_ahead)
        own, sizes = self.group.numbers(len(batches)), batches.sizes
        columns = {name: column[own] for name, column in self._on_device(batches).items()}
        place = torch.from_numpy(batches.place).to(self.device)
        return Split(loop, columns, [sizes[number] for number in own], batches.columns["weight"].shape[-1], place, len(batches))

    def _evaluated(self, batch: Batch) -> Tensor:
        def work(model: Any, batch: Batch) -> Tensor:
            given = {name: column for name, column in batch.items() if name not in ("weight", "known")}
            ask = model.represent if isinstance(self.task, LinkTask) else model
            found: Tensor = ask(**given, draw=self.draw, mode=self.config.evaluation_mode)
            return found

        with self._autocast():
            return self._call(work, batch, None)

    def _linked(self, representations: Tensor, split: str) -> Tensor:
        """Return (M, n) logits of a split's pairs, from representations of its nodes."""
        assert isinstance(self.task, LinkTask)
        source, target, edge_type = (column.to(self.device) for column in self.task.pairs_of(split))
        in_parts = isinstance(self.model, LinkPredictor) and bool(self.model.parts)
        if self.task.lists:
            self._combine(representations[0], split)
        nodes = torch.from_numpy(self.task.nodes_of(split)).to(self.device)

        def work(model: Any, batch: Batch) -> Tensor:
            own, ends = batch["representations"], (batch["source"], batch["target"])
            named = {"nodes": tuple(nodes[end] for end in ends)} if in_parts else {}
            logits: Tensor = model.score(own[ends[0]], own[ends[1]], batch["edge_type"], **named)
            return logits

        dims = {"representations": 0, "source": None, "target": None, "edge_type": None}
        all_rows = torch.arange(len(source), device=self.device).split(PAIRS)  # type: ignore[no-untyped-call]
        parts = []
        for number in self.group.numbers(len(all_rows)):
            rows = all_rows[number]
            asked = {"source": source[rows], "target": target[rows], "edge_type": edge_type[rows]}
            own = representations if self.stacked else representations[0]
            parts.append(self._call(work, {"representations": own, **asked}, dims))
        found = self.group.gathered(_wide(even(parts), len(all_rows[0])), len(all_rows))  # (parts, M, PAIRS)
        return found.transpose(0, 1).flatten(1)[:, : len(source)].float()

    def _combine(self, representations: Tensor, split: str) -> None:
        """Fit what the parts of a score count, to validation links, and rank the links of a split by their sum."""
        assert isinstance(self.task, LinkTask)
        if split == "valid":
            self.task.combine(self.model, representations)
        if split not in self.ranks:
            count = RANKED_LINKS if split == "valid" else None
            self.ranks[split] = [self.task.rank(self.model, representations, split, count)]

    def _call(self, work: Any, batch: Batch, dims: Any) -> Tensor:
        """Do `work` with each model, (M, …); `dims` says which columns of the batch are the models' own."""
        if not self.stacked:
            return work(self.model, batch)[None]  # type: ignore[no-any-return]
        bound = _Bound(self.model, work)
        own = {} if self.rates is None else self.rates.dropout
        state = {f"model.{name}": tensor for name, tensor in {**self.parameters, **self.counters, **own}.items()}

        def one(state: dict[str, Tensor], batch: Batch) -> Tensor:
            return torch.func.functional_call(bound, state, (batch,))  # type: ignore[no-any-return]

        return torch.vmap(one, in_dims=(0, dims), randomness=self.model.randomness)(state, batch)

    @torch.no_grad()
    def keep_best(self, improved: list[bool]) -> None:
        """Keep the weights of the models that have improved as their best."""
        chosen = torch.tensor(improved, device=self.device)[:, None]
        now = self.optimiser.values if self.average is None else self.average.values
        self.best.copy_(torch.where(chosen, now, self.best))

    @torch.no_grad()
    def restore_best(self) -> None:
        """Put all models back to their best weights."""
        self._take(self.best)

    @torch.no_grad()
    def take_averages(self) -> None:
        """Put the averages of weights, if there are any, in place of the weights."""
        if self.average is not None:
            self._take(self.average.values)

    def _take(self, weights: Tensor) -> None:
        self.optimiser.values.copy_(weights)
        if self.average is not None:
            self.average.values.copy_(weights)

    @torch.no_grad()
    def restart(self, rows: Tensor) -> None:
        """Put some of the models back to their best weights, with nothing remembered of the steps since."""
        self.optimiser.values[rows] = self.best[rows]
        if self.average is not None:
            self.average.values[rows] = self.best[rows]
        self.optimiser.moments.first[rows] = 0.0
        self.optimiser.moments.second[rows] = 0.0

    def set_rate(self, share: float) -> None:
        """Learn with a share of the learning rate that was asked for."""
        if self.rates is None:
            self.optimiser.lr.fill_(self.config.learning_rate * share)
        else:
            self.optimiser.lr.copy_(torch.tensor([rate * share for rate in self.rates.learning_rate]))

    @torch.no_grad()
    def depth(self) -> dict[str, list[list[float]]]:
        """Return the depth coefficients q of every model under the name `depth`; nothing for models without."""
        depth = self.model.depth_of(self.parameters)
        return {} if depth is None else {"depth": depth.view(self.num_models, -1).tolist()}

    def weights(self, model: int) -> dict[str, Tensor]:
        """Return what `load_state_dict` of one of the models takes."""
        state = {**self.parameters, **self.counters}
        return {name: (t[model] if self.stacked else t).detach().cpu().clone() for name, t in state.items()}

    def _on_device(self, batches: Batches) -> Batch:
        return {name: torch.from_numpy(column).to(self.device) for name, column in batches.columns.items()}

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.device.type == "cuda" and self.config.precision == "bfloat16":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return nullcontext()


class Split(NamedTuple):
    """A split made ready for evaluation."""

    loop: "Loop"
    columns: Batch
    sizes: list[int]
    width: int
    place: Tensor  # of each row's result among those of all batches
    num_batches: int  # those of other processes too


def changes_seen_only(models: Sequence[Learnable], config: TrainingConfig) -> bool:
    """Whether a step changes embeddings of nodes that it saw, and no others; models side by side cannot."""
    if config.embedding_updates == "seen" and len(models) > 1:
        raise ConfigError(
            f"embedding_updates is 'seen', which works for one seed at a time, and {len(models)} came. Use 'all'."
        )
    many = config.embedding_updates == "auto" and models[0].num_embeddings > MOST_EMBEDDINGS
    return len(models) == 1 and models[0].num_embeddings > 0 and (config.embedding_updates == "seen" or many)


class _Bound(nn.Module):
    """A model and what is asked of it, so that functional_call can ask."""

    def __init__(self, model: Learnable, work: Work) -> None:
        super().__init__()
        self.model, self.work = model, work

    def forward(self, batch: Batch) -> Tensor:
        return self.work(self.model, batch)


def _stacked(tensors: list[Tensor], device: torch.device) -> Tensor:
    together = torch.stack([tensor.detach().to(device) for tensor in tensors])
    return nn.Parameter(together) if tensors[0].requires_grad else together


def _chosen(tensor: Tensor, rows: list[int]) -> Tensor:
    together = tensor.detach()[rows]
    return nn.Parameter(together) if tensor.requires_grad else together


def _wide(found: Tensor, width: int) -> Tensor:
    """Fill (batches, M, …) results of batches that may all be short up with zeros to `width`."""
    if found.shape[2] == width:
        return found
    return torch.cat([found, found.new_zeros(*found.shape[:2], width - found.shape[2], *found.shape[3:])], dim=2)
