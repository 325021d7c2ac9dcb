"""`fit_side_by_side`: models of one shape that differ in their rates, trained in one program, compared on validation data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.ops.memory import memory_kept
from gatas.tasks import LinkPredictor, Model
from gatas.tasks.batches import Batches
from gatas.training.checkpoint import Checkpoints, Position
from gatas.training.config import Config
from gatas.training.interrupt import interruptible
from gatas.training.learner import Learner
from gatas.training.limit import Limit
from gatas.training.loop import Session, check_link_training, chosen_device, entry_of
from gatas.training.products import quick_products
from gatas.training.progress import Entry, Report, Reporter
from gatas.training.rates import Rates
from gatas.training.run import TrainedRun
from gatas.training.storage import is_narrow
from gatas.training.task_making import make_task


def fit_side_by_side(
    models: Sequence[Model],
    dataset: Dataset,
    configs: Sequence[Config],
    seed: int,
    *,
    device: str = "auto",
    report: Report | None = None,
    limit: Limit | None = None,
) -> list[TrainedRun]:
    """Train models as they are, all with the noise and the batches of one seed; nothing is written.

    A model whose loss or weights become infinite ends with its best weights until then, and says so: `diverged`.

    Args:
        models: Models of one shape, each made with its own config.
        dataset: What they learn from. Every split that it has is measured: leave out those that must not be looked at.
        configs: Settings of each model, which may differ in `gatas.training.rates.OWN_SETTINGS`.
        seed: Batches are a function of it.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        report: Called with the numbers of each epoch; `entry["stopping"].stop` ends models early.
        limit: Where trainings are cut short; seconds are for each model.
    """
    configs = [config.model_copy(update={"model": own.config}) for own, config in zip(models, configs, strict=True)]
    first, training, where = models[0], configs[0].training, chosen_device(device)
    if isinstance(first, LinkPredictor):
        check_link_training(first, training)
    rates = Rates.of(models, configs, where)
    learner = Learner.of(models, make_task(dataset, training), training, where, rates=rates)
    session = TolerantSession(learner, [seed] * len(models), Reporter(report, None), limit or Limit())
    with interruptible() as interrupt, quick_products(where, training.precision), memory_kept():
        session.learn(Checkpoints(None, configs[0], {}), interrupt)
        metrics = session.measure()
    runs = []
    for number, (model, config, own) in enumerate(zip(models, configs, metrics, strict=True)):
        model.load_state_dict(learner.weights(number))
        history = [entry_of(entry, number) for entry in session.history[: own["epochs"]]]
        runs.append(TrainedRun(config, seed, own, history, model, dataset))
    return runs


@dataclass
class TolerantSession(Session):
    """A training in which a model may go astray while the others go on."""

    diverged: set[int] = field(default_factory=set)

    def check(self, losses: torch.Tensor, position: Position, batches: Batches, checkpoints: Checkpoints) -> None:
        """Stop models whose loss or weights are not finite; they get their best weights back."""
        finite = torch.isfinite(losses).all(0) & torch.isfinite(self.program.optimiser.values).all(1).cpu()
        wrong = (~finite).nonzero()[:, 0]
        if not len(wrong):
            return
        self.program.restart(wrong.to(self.program.device))
        for row in (self.rows[place] for place in wrong.tolist()):
            if self.stopping.last_epoch[row] < 0:
                self.stopping.stop(row, position.epoch)
                self.diverged.add(row)

    def check_logits(self, logits: torch.Tensor) -> None:
        """Let the others go on; a model whose keys or values were too large counts as one that went astray."""
        if is_narrow(self.learner.device, self.config):
            rows = self.rows if len(logits) == len(self.rows) else range(len(logits))
            wrong = logits.isnan().flatten(1).any(1).tolist()
            self.diverged |= {row for row, astray in zip(rows, wrong, strict=True) if astray}

    def warn_of_jump(self, entry: Entry) -> None:
        """Say nothing: what a large learning rate does is what is tried."""

    def measure(self, final_graph: Any = None) -> list[dict[str, Any]]:
        found = super().measure(final_graph)
        return [{**own, "diverged": True} if row in self.diverged else own for row, own in enumerate(found)]
