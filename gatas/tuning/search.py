"""`Search`: what is tried next, by Optuna, and a journal on disk from which it goes on."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.pruners import PercentilePruner
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from gatas.errors import TrainingError
from gatas.files import FileLock, reason
from gatas.training.rates import OWN_SETTINGS
from gatas.tuning.space import Space
from gatas.tuning.trial import Trial

JOURNAL = "tuning/journal.log"
STARTUP_TRIALS = 10
"""Trials with settings drawn at random, before what is known says where to look."""
COMPARED_TRIALS = 5
"""Trials that must have ended before others are pruned."""
KEPT = 67.0
"""Percentage of trials that are better than one that is pruned, after as many epochs: the worst third ends early."""
WARM_UP = 0.15
"""Share of the epochs in which no trial is pruned."""
STATES = {"finished": TrialState.COMPLETE, "pruned": TrialState.PRUNED}


class Search:
    """Asks Optuna what to try, and tells it what came of it.

    What a trial is given is a function of the seed and of the trials that ended before it: a search that was stopped goes on
    as if it had not been.
    """

    def __init__(self, storage: BaseStorage, space: Space, own: Mapping[str, Any], seed: int, epochs: int) -> None:
        """The first trial is the `own` settings, as near as the space has them; the trial is run with these very settings."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.seed = space, seed
        self.distributions = {name: values.distribution() for name, values in space.items()}
        warm_up = max(2, int(WARM_UP * epochs))
        pruner = PercentilePruner(KEPT, n_startup_trials=COMPARED_TRIALS, n_warmup_steps=warm_up)
        self.study = optuna.create_study(
            storage=storage, study_name="gatas", direction="maximize", pruner=pruner, load_if_exists=True
        )
        self.own = {name: space[name].nearest(value) for name, value in own.items() if name in space}
        self._try_again()

    def check(self, identity: Mapping[str, Any]) -> None:
        """Refuse to go on with a search of other data, settings or values."""
        known, asked = self.study.user_attrs.get("identity"), json.loads(json.dumps(identity))
        if known is None:
            self.study.set_user_attr("identity", asked)
            return
        differing = [
            f"{name} was {known.get(name)!r} and is {value!r}" for name, value in asked.items() if known.get(name) != value
        ]
        if differing:
            raise TrainingError(
                f"the folder holds another search: {'; '.join(differing)}. Choose another folder, or remove it."
            )

    def _try_again(self) -> None:
        """Have trials that were cut off by the end of the program tried again, before any others."""
        for trial in self.study.get_trials(states=(TrialState.RUNNING,)):
            self.study.tell(trial.number, state=TrialState.FAIL)
            self.study.enqueue_trial(trial.params)

    def trials(self) -> list[Trial]:
        """Return all trials that have ended, numbered in the order in which they were asked for."""
        ended = [
            trial
            for trial in self.study.get_trials(deepcopy=False)
            if "trial" in trial.user_attrs and trial.state.is_finished()
        ]
        return [_as_trial(trial, number) for number, trial in enumerate(ended, start=1)]

    def ask(self, count: int) -> list["optuna.Trial"]:
        """Return trials that can learn in one program: all of them have the shape of the first."""
        ended = len(self.trials())
        if not ended and not self.study.get_trials(states=(TrialState.WAITING,)):
            self.study.enqueue_trial(self.own)
        first = self._asked(ended, 0)
        shape = {name: value for name, value in first.params.items() if name not in OWN_SETTINGS}
        others = []
        for place in range(1, count if len(shape) < len(self.space) else 1):
            if not self.study.get_trials(states=(TrialState.WAITING,)):
                self.study.enqueue_trial(shape)
            others.append(self._asked(ended, place))
        return [first, *others]

    def _asked(self, ended: int, place: int) -> "optuna.Trial":
        state = int(np.random.SeedSequence([self.seed, ended, place]).generate_state(1)[0])
        self.study.sampler = TPESampler(seed=state, n_startup_trials=STARTUP_TRIALS, multivariate=True, constant_liar=True)
        return self.study.ask(self.distributions)

    def settings(self, trial: "optuna.Trial") -> dict[str, Any]:
        """Return what a trial is to be trained with."""
        return {name: self.space[name].value(drawn) for name, drawn in trial.params.items()}

    def tell(self, asked: "optuna.Trial", trial: Trial) -> None:
        """Note what came of a trial."""
        asked.set_user_attr("trial", {name: value for name, value in asdict(trial).items() if name not in ("number", "curve")})
        state = STATES.get(trial.outcome, TrialState.PRUNED)  # one that failed is as bad as one that was pruned at once
        self.study.tell(asked, trial.metric if state == TrialState.COMPLETE else None, state=state)

    def importance(self) -> dict[str, float]:
        """Return the share that each setting has in what made trials good; nothing while too few have ended."""
        ended = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        searched = [name for name, distribution in self.distributions.items() if not distribution.single()]
        if len(ended) < 4 or len({trial.value for trial in ended}) < 2 or not searched:
            return {}
        return dict(optuna.importance.get_param_importances(self.study, params=searched))


def _as_trial(frozen: FrozenTrial, number: int) -> Trial:
    curve = [frozen.intermediate_values[step] for step in sorted(frozen.intermediate_values)]
    return replace(Trial(number=number, **frozen.user_attrs["trial"]), curve=curve)


class _NoLock(JournalFileOpenLock):
    """Stands for Optuna's lock, which the death of a process leaves behind; `journal` holds one that ends with it."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


@contextmanager
def journal(folder: Path | None) -> Iterator[BaseStorage]:
    """Open the journal in a run's folder, which no other process then writes; without a folder, one in memory."""
    if folder is None:
        yield InMemoryStorage()
        return
    path = folder / JOURNAL
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.parent / ".lock")
    except OSError as error:
        raise TrainingError(f"{folder} cannot be written to ({reason(error)}). Choose another folder.") from None
    with lock:
        try:
            lock.acquire()
        except OSError as error:
            what = "another search is writing into" if isinstance(error, BlockingIOError) else f"{reason(error)}: no lock in"
            raise TrainingError(f"{what} {folder}. Wait for it, or choose another folder.") from None
        _cut_torn_line(path)
        yield JournalStorage(JournalFileBackend(str(path), lock_obj=_NoLock(str(path))))


def _cut_torn_line(path: Path) -> None:
    """Remove a last line that the end of a process left half written."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
