"""`fit_models`: the training loop, for one model or for one of each of several seeds in one program."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from gatas.datasets import Dataset
from gatas.errors import ConfigError, GatasError, TrainingError
from gatas.graph import Graph
from gatas.ops.memory import memory_kept
from gatas.ops.threads import settle_threads
from gatas.tasks import LinkPredictor, Model, NodeClassifier, NodeTask
from gatas.tasks.batches import Batches, stacked
from gatas.tasks.learnable import Learnable
from gatas.training.checkpoint import Checkpoints, Position
from gatas.training.config import Config, TrainingConfig
from gatas.training.final_test import final_graph, measured_on
from gatas.training.folder import MODELS, write_run
from gatas.training.group import ALONE, Group
from gatas.training.interrupt import Interrupt, interruptible
from gatas.training.jumps import warn_of_jumps
from gatas.training.learner import Learner
from gatas.training.limit import Limit
from gatas.training.products import quick_products
from gatas.training.progress import Entry, Report, Reporter, reporting
from gatas.training.run import Details, TrainedRun
from gatas.training.stopping import EarlyStopping, Rule
from gatas.training.storage import ADVICE, check_range, is_narrow
from gatas.training.task_making import choices_of, make_task


def make_model(dataset: Dataset, config: Config, seed: int, like: Model | None = None) -> Model:
    """Make a model for the data set's task; transitions are shared with one that is `like` it."""
    kind = MODELS[type(dataset.targets)]
    return kind(dataset, transitions=None if like is None else like.transitions, seed=seed, **config.model.model_dump())


def fit_models(
    models: Sequence[Learnable],
    dataset: Dataset,
    config: Config,
    seeds: Sequence[int],
    *,
    folder: str | Path | None = None,
    device: str = "auto",
    report: Report | None = None,
    progress: bool = False,
    limit: Limit | None = None,
    group: Group = ALONE,
) -> list[TrainedRun]:
    """Train models of one shape as they are, one for each seed, in one program. Those that a `limit` ends say so: `cut`."""
    settle_threads()
    seeds = list(seeds)
    if isinstance(models[0], Model):
        config = config.model_copy(update={"model": models[0].config})  # with numbers in place of `auto`
    if isinstance(models[0], LinkPredictor):
        check_link_training(models[0], config.training)
    if len(models) > 1 and (config.training.loss == "list" or not models[0].stacks):
        return _one_after_another(models, dataset, config, seeds, folder, device, report, progress, limit, group)
    task = make_task(dataset, config.training, models[0])
    learner = Learner.of(models, task, config.training, chosen_device(device), group)
    session, first = Session(learner, seeds, Reporter(report, None), limit or Limit()), group.first
    saving = Checkpoints.of(folder, config, dataset, seeds, writes=first)
    products = quick_products(learner.device, config.training.precision)
    with interruptible(group) as interrupt, saving as checkpoints, products, memory_kept():
        choices = choices_of(models[0], dataset, config)
        with reporting(report if first else None, progress and first, choices) as session.report:
            session.learn(checkpoints, interrupt)
        if isinstance(models[0], LinkPredictor):
            models[0].stop_hiding()  # tables of several folds, which the next seed's would come on top of
        metrics = session.measure(final_graph(dataset, config.data))
        runs = []
        for number, (seed, own) in enumerate(zip(seeds, metrics, strict=True)):
            weights = learner.weights(number)
            models[number].load_state_dict(weights)
            if isinstance(models[number], NodeClassifier):
                models[number].temperature = own.get("temperature", 1.0)
            history = [entry_of(entry, number) for entry in session.history[: own["epochs"]]]
            details = session.details[number]
            runs.append(TrainedRun(config, seed, own, history, models[number], dataset, details, len(models)))
        if folder is not None and first:
            write_run(runs, Path(folder))
    return runs


def _one_after_another(
    models: Sequence[Learnable],
    dataset: Dataset,
    config: Config,
    seeds: list[int],
    folder: str | Path | None,
    device: str,
    report: Report | None,
    progress: bool,
    limit: Limit | None,
    group: Group,
) -> list[TrainedRun]:
    """Train models that cannot be called as one, each with checkpoints of its own, and write them as one run."""
    runs: list[TrainedRun] = []
    for model, seed in zip(models, seeds, strict=True):
        own = None if folder is None else Path(folder) / f"seed-{seed}"
        settings: Any = {"device": device, "report": report, "progress": progress, "limit": limit, "group": group}
        runs += fit_models([model], dataset, config, [seed], folder=own, **settings)
    if folder is not None and group.first:
        write_run(runs, Path(folder))
    return runs


def check_link_training(model: LinkPredictor, config: TrainingConfig) -> None:
    """Refuse ways of training links that a model cannot learn by."""
    if config.loss == "list" and not model.parts:
        raise ConfigError(
            "training.loss is list, but model.link_score is pair, which scores one pair at a time. Set link_score to vectors, "
            "neighbourhood and paths, or loss to binary."
        )
    if "paths" in model.parts and not config.hidden_folds:
        raise ConfigError(
            "model.link_score has paths, but training.hidden_folds is 0: every training link would give itself away. Set "
            "hidden_folds to 10, say."
        )


def check_fits(model: Model, dataset: Dataset) -> None:
    """Refuse data that the model was not made for."""
    if not isinstance(model, MODELS[type(dataset.targets)]):
        raise GatasError(f"{dataset.name} is for {dataset.task}, which a {type(model).__name__} does not learn.")
    if (model.graph.num_nodes, model.names) != (dataset.graph.num_nodes, dataset.names):
        raise GatasError(
            f"the model was made for {model.graph.num_nodes:,} nodes and {', '.join(model.names)}, but {dataset.name} has "
            f"{dataset.graph.num_nodes:,} and {', '.join(dataset.names)}. Make a model for it."
        )


def chosen_device(name: str) -> torch.device:
    """Return the device that is meant; `auto` is a GPU where there is one that torch can use."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device is {name!r}, but torch sees no GPU here. Use 'cpu', or 'auto' to take what there is.")
    try:
        return torch.device(name)
    except RuntimeError:
        raise ConfigError(f"there is no device {name!r}; expected 'auto', 'cpu' or 'cuda'.") from None


@dataclass
class Session:
    """One training, from its first epoch or from a checkpoint to its end.

    Models that have stopped are left behind now and then: `program` learns those in `rows`, of all that `learner` holds.
    """

    learner: Learner
    seeds: list[int]
    report: Reporter
    limit: Limit
    history: list[Entry] = field(default_factory=list)
    cut: str = ""  # by what, if it was

    def __post_init__(self) -> None:
        self.config, self.task, self.group = self.learner.config, self.learner.task, self.learner.group
        self.validates = "valid" in self.task.splits
        monitor = self.config.monitor
        rule: Rule = monitor if monitor == "either" or monitor == "both" else "best"
        self.stopping = EarlyStopping(self.learner.num_models, self.config.patience, rule)
        self.program, self.rows = self.learner, self.stopping.at_work
        self.temperatures = [1.0] * self.learner.num_models
        self.details: list[dict[str, Details]] = [{} for _ in range(self.learner.num_models)]

    def learn(self, checkpoints: Checkpoints, interrupt: Interrupt) -> None:
        """Train epoch after epoch, until no model has improved for a while."""
        position = self.begin(checkpoints)
        upcoming: Batches | None = None
        begun = perf_counter() - sum(entry["seconds"] for entry in self.history)  # those before a stop count too
        for epoch in range(position.epoch, self.config.epochs):
            taken = (perf_counter() - begun) / len(self.seeds)
            self.cut = self.group.broadcast(self.limit.reached(epoch, taken)) if epoch else ""
            if self.stopping.done or self.cut:
                break
            started = perf_counter()
            if self.leave_behind() or upcoming is None:
                upcoming = self.batches(epoch)
            batches = upcoming
            self.set_rate(epoch)
            checkpoints.begin(self.program)
            stop = self.counting(epoch, position.batch, len(batches), interrupt.asked)
            losses = self.program.train(batches, position.batch, stop)  # (num_batches, models at work)
            upcoming = self.batches(epoch + 1)  # while a GPU is still at work
            losses = losses.cpu()
            training = perf_counter() - started
            self.check(losses, position, batches, checkpoints)
            total = position.total + losses.double().sum(0)
            done = position.batch + len(losses)
            if done < len(batches):
                position = Position(epoch, done, total)
                break
            columns = {"loss": (total / len(batches)).tolist(), **self.validate(epoch), **self.program.depth()}
            entry = {"epoch": epoch, **{name: self.of_all(name, values) for name, values in columns.items()}}
            entry |= {"training_seconds": training, "seconds": perf_counter() - started}
            self.warn_of_jump(entry)
            self.history.append(entry)
            checkpoints.record(entry)
            self.report({**entry, "seeds": self.seeds, "epochs": self.config.epochs, "stopping": self.stopping})
            position = Position(epoch + 1)
            if interrupt.asked():
                break
            if checkpoints.due:
                self.save(checkpoints, position)
        self.save(checkpoints, position)
        self.program = self.learner
        if interrupt.asked():
            interrupt.leave()
        if self.validates:
            self.learner.restore_best()
        else:
            self.learner.take_averages()

    def begin(self, checkpoints: Checkpoints) -> Position:
        """Restore the newest checkpoint, if there is one, in all processes; return where to go on."""
        checkpoints.check_same(self.group)
        position = checkpoints.restore(self.learner, self.stopping, self.history)
        position, self.stopping, self.history = self.group.broadcast((position, self.stopping, self.history))
        self.group.copy_first(self.learner.state().values())
        return position

    def counting(self, epoch: int, done: int, count: int, asked: Callable[[], bool]) -> Callable[[], bool]:
        """Return `asked`, which is called after each batch, so that batches are told of as well."""
        numbers = itertools.count(done + 1)

        def stop() -> bool:
            self.report.batch(epoch, self.config.epochs, next(numbers), count)
            return asked()

        return stop

    def batches(self, epoch: int) -> Batches:
        several = [self.task.epoch(self.seeds[row], epoch) for row in self.rows]
        return stacked(several) if self.program.stacked else several[0]

    def leave_behind(self) -> bool:
        """Go on without models that have stopped, where they are many; return whether they were."""
        rows = self.stopping.at_work
        if rows == self.rows:
            return False
        self.learner.take_back(self.program, self.rows)
        self.program.forget()
        self.program, self.rows = self.learner.part(rows), rows
        return True

    def save(self, checkpoints: Checkpoints, position: Position) -> None:
        self.learner.take_back(self.program, self.rows)
        checkpoints.save(self.learner, self.stopping, position)

    def of_all(self, name: str, values: list[Any]) -> list[Any]:
        """Return one value for each model; those left behind keep the one they had."""
        known = list(self.history[-1][name]) if len(self.rows) < len(self.seeds) else [None] * len(self.seeds)
        for row, value in zip(self.rows, values, strict=True):
            known[row] = value
        return known

    def set_rate(self, epoch: int) -> None:
        share = 1.0 if self.config.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * epoch / self.config.epochs))
        self.program.set_rate(share)

    def validate(self, epoch: int) -> Entry:
        if not self.validates:
            return {}
        logits = self.program.predict_encoded()
        self.check_logits(logits)
        ranked = {"ranks": self.program.ranks["valid"]} if self.program.ranks.get("valid") else {}
        measured = self.task.monitor(logits, "valid", **ranked)
        columns = self.group.broadcast({f"valid_{name}": values.tolist() for name, values in measured.items()})
        scores: list[tuple[float, ...]] = [(-loss,) for loss in columns["valid_loss"]]
        if self.config.monitor != "loss":  # of equal ones the smaller loss
            scores = [(metric, *score) for metric, score in zip(columns[f"valid_{self.task.metric}"], scores, strict=True)]
        self.program.keep_best(self.stopping.report(epoch, dict(zip(self.rows, scores, strict=True))))
        return columns

    def warn_of_jump(self, entry: Entry) -> None:
        """Report losses that are far above those of the epochs before."""
        warn_of_jumps(self.history, entry, self.seeds)

    def check(self, losses: torch.Tensor, position: Position, batches: Batches, checkpoints: Checkpoints) -> None:
        """Refuse to go on with a loss or weights that are not finite; what was good is kept."""
        finite = torch.isfinite(losses)
        finite[-1] &= torch.isfinite(self.program.optimiser.values).all(1).cpu()
        learns = torch.tensor([self.stopping.last_epoch[row] < 0 for row in self.rows])
        wrong = (~finite & learns).nonzero()
        if not len(wrong):
            return
        batch, model = (int(number) for number in wrong[0])
        checkpoints.put_back(self.program)
        self.save(checkpoints, position)
        self.group.wait()  # for the one that saves
        if self.validates:
            self.learner.restore_best()
        loss, number = losses[batch, model].item(), position.batch + batch
        what = "weights became infinite" if math.isfinite(loss) else f"the loss became {loss}"
        advice = f" {ADVICE}" if is_narrow(self.learner.device, self.config) else ""
        rows = batches.columns["target"][number].reshape(len(self.rows), -1)[model, :5].tolist()
        raise TrainingError(
            f"{what} in epoch {position.epoch + 1}, batch {number + 1} (targets {rows}…), seed {self.seeds[self.rows[model]]}. "
            f"The model has its {'best' if self.validates else 'last good'} weights{checkpoints.kept()}. Try a smaller "
            f"learning_rate.{advice}"
        )

    def check_logits(self, logits: torch.Tensor) -> None:
        """Refuse to measure what is not a number because keys or values were too large."""
        check_range(logits, self.learner.device, self.config)

    def measure(self, final_graph: Graph | None = None) -> list[dict[str, Any]]:
        """Measure every model on every split; test data is looked at here, once, from the `final_graph` if there is one."""
        ends = [len(self.history) if last < 0 else last + 1 for last in self.stopping.last_epoch]
        best = self.stopping.best_epoch if self.validates else [end - 1 for end in ends]  # without validation the last
        found: list[dict[str, Any]] = [{"best_epoch": kept, "epochs": end} for kept, end in zip(best, ends, strict=True)]
        for own, last in zip(found, self.stopping.last_epoch, strict=True):
            if self.cut and last < 0:
                own["cut"] = self.cut
        for split in ("valid", "test"):
            if split in self.task.splits:
                graph = final_graph if split == "test" else None
                for own, measured in zip(found, self.measured(split, graph), strict=True):
                    own[split] = measured
        if self.calibrates:
            found = [{**own, "temperature": temperature} for own, temperature in zip(found, self.temperatures, strict=True)]
        return self.group.broadcast(found)

    @property
    def calibrates(self) -> bool:
        """Whether probabilities get a temperature, from validation data."""
        return self.config.calibrate and self.validates and isinstance(self.task, NodeTask) and self.task.classifies

    def measured(self, split: str, graph: Graph | None) -> list[dict[str, Any]]:
        """Return the metrics of every model on a split; those from a `graph` with validation links say so."""
        with measured_on(graph, self.learner.model) as said:
            logits = self.learner.predict_valid() if split == "valid" else self.learner.predict(split)
        self.check_logits(logits)
        ranks = self.learner.ranks.get(split, [None] * len(logits))
        found = []
        for of_pairs, of_links in zip(logits, ranks, strict=True):
            ranked: dict[str, Any] = {} if of_links is None else {"ranks": of_links}
            found.append({**self.task.measure(of_pairs, split, **ranked), **said})
        if isinstance(self.task, NodeTask):
            self._describe(self.task, logits, split, found)
        return found

    def _describe(self, task: NodeTask, logits: torch.Tensor, split: str, found: list[dict[str, Any]]) -> None:
        """Add what is measured class by class, with probabilities at a temperature that validation data gives."""
        if self.calibrates and split == "valid":
            self.temperatures = [task.fit_temperature(own, split) for own in logits]
        for number, (own, temperature) in enumerate(zip(logits, self.temperatures, strict=True)):
            self.details[number][split] = details = task.details(own, split, temperature)
            found[number] |= details.metrics


def entry_of(entry: Entry, model: int) -> Entry:
    """Return one model's part of an epoch's entry; of an entry of one model, all of it."""
    if not isinstance(entry["loss"], list):
        return entry
    return {name: value[model] if isinstance(value, list) else value for name, value in entry.items()}
