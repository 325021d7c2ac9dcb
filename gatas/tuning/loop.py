"""`SearchLoop`: trials, a few at a time, until there are enough or time is over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from gatas.training.checkpoint import write_whole
from gatas.training.config import Config
from gatas.training.progress import Entry
from gatas.training.rates import OWN_SETTINGS
from gatas.tuning.trainer import Trainer
from gatas.tuning.trial import Trial, as_csv, best_of

if TYPE_CHECKING:
    from gatas.tuning.search import Search

FILES = {"best": "best.yaml", "table": "trials.csv", "history": "trials.png", "importance": "importance.png"}


class Watcher(Protocol):
    """What is told how a search gets on."""

    def begin(self, trials: Sequence[Trial], total: int, metric: str) -> None: ...

    def epoch(self, trials: Sequence[Trial], entry: Entry) -> None: ...

    def ended(self, trial: Trial) -> None: ...


@dataclass
class SearchLoop:
    """Trials, a few at a time, until there are enough or time is over; what is known is written after each."""

    search: "Search"
    trainer: Trainer
    config: Config
    own: Mapping[str, Any]
    watcher: Watcher | None
    folder: Path | None
    metric: str

    def run(self, total: int, seconds: float | None, at_once: int) -> None:
        begun, ended = perf_counter(), self.search.trials()
        if self.watcher is not None:
            self.watcher.begin(ended, total, self.metric)
        left: float | None = seconds
        try:
            while len(ended) < total and (left is None or left > 0 or not ended):
                self.some(len(ended), min(at_once, total - len(ended)), left)
                ended = self.search.trials()
                self.write(ended)
                left = None if seconds is None else seconds - (perf_counter() - begun)
        finally:
            self.write(self.search.trials())  # also of a search that is interrupted

    def some(self, ended: int, count: int, seconds: float | None) -> None:
        """Train the next trials; those of one shape in one program."""
        asked = self.search.ask(count)
        drawn = [self.search.settings(one) for one in asked]
        if not ended:
            drawn[0] = dict(self.own)
        trials = [Trial(number, own, "failed") for number, own in enumerate(drawn, start=ended + 1)]
        for places in _alike(trials):
            group = [trials[place] for place in places]

            def prune(number: int, epoch: int, metric: float) -> bool:
                one = asked[number - ended - 1]
                one.report(metric, epoch)
                return number > 1 and one.should_prune()

            def watch(entry: Entry, group: list[Trial] = group) -> None:
                if self.watcher is not None:
                    self.watcher.epoch(group, entry)

            configs = [self.config_of(trial) for trial in group]
            share = None if seconds is None else seconds * len(group) / len(trials)
            for place, done in zip(
                places, self.trainer.train(group, configs, prune=prune, watch=watch, seconds=share), strict=True
            ):
                self.search.tell(asked[place], done)
                if self.watcher is not None:
                    self.watcher.ended(done)

    def write(self, trials: list[Trial]) -> None:
        """Write the table, and the best settings so far."""
        if self.folder is None:
            return
        write_whole(self.folder / FILES["table"], as_csv(trials, self.metric))
        best = best_of(trials)
        if best is not None:
            write_whole(self.folder / FILES["best"], self.config_of(best).to_yaml().encode())

    def config_of(self, trial: Trial) -> Config:
        """Return the config with what was tried; what is as it was stays as it was written, such as `auto`."""
        changed = {name: value for name, value in trial.settings.items() if value != self.own[name]}
        return self.config.with_settings(changed) if changed else self.config


def _alike(trials: Sequence[Trial]) -> list[list[int]]:
    """Return the places of trials that can learn in one program: they differ in what each may have for itself."""
    groups: dict[str, list[int]] = {}
    for place, trial in enumerate(trials):
        shape = {name: value for name, value in trial.settings.items() if name not in OWN_SETTINGS}
        groups.setdefault(repr(sorted(shape.items())), []).append(place)
    return list(groups.values())
