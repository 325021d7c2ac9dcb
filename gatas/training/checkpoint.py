"""Where a training is, on disk: whole or not at all, so that it goes on after any end."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gatas.datasets import Dataset
from gatas.datasets.saved import data_fingerprint
from gatas.errors import TrainingError
from gatas.files import FileLock, RunningChecksum, append_to_file, checksum_of, reason, remove_all_leftovers_within, write_file
from gatas.graph.saved import graph_fingerprint
from gatas.graph.storage import fingerprint
from gatas.training.config import Config
from gatas.training.group import Group
from gatas.training.learner import Learner
from gatas.training.stopping import EarlyStopping

FORMAT = 3
"""Formats 1 and 2 are those of gatas 0.1."""
MAY_CHANGE_ON_RESUME = {"epochs", "checkpoint_seconds", "keep_checkpoints", "calibrate"}
"""Settings that may change between a training and its resumption, as they change nothing that was done."""
STOPPING = ("best", "best_epoch", "last_epoch", "highest", "last_improvement")


@dataclass(frozen=True)
class Position:
    """The next step: epoch, batch in it, and the sum of the epoch's losses so far."""

    epoch: int = 0
    batch: int = 0
    total: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))


class Checkpoints:
    """Saves a learner's state in a folder that is its own while it learns. Without a folder, or where another process
    `writes`, it does nothing.
    """

    def __init__(self, folder: Path | None, config: Config, identity: dict[str, Any], *, writes: bool = True) -> None:
        self.named, self.folder, self.config, self.identity = folder, folder if writes else None, config.training, identity
        self.saved = monotonic()
        self.good: dict[str, Tensor] = {}
        self.history_checksum = RunningChecksum()  # of the history so far

    @classmethod
    def of(
        cls, folder: str | Path | None, config: Config, dataset: Dataset, seeds: list[int], *, writes: bool = True
    ) -> "Checkpoints":
        if folder is None:
            return cls(None, config, {})
        return cls(Path(folder), config, identity_of(config, dataset, seeds), writes=writes)

    def __enter__(self) -> "Checkpoints":
        if self.folder is None:
            return self
        try:
            self.folder.joinpath("checkpoints").mkdir(parents=True, exist_ok=True)
            self.lock = FileLock(self.folder / ".lock")
        except OSError as error:
            raise TrainingError(f"{self.folder} cannot be written to ({reason(error)}). Choose another folder.") from None
        try:
            self.lock.acquire()
        except OSError as error:
            self.lock.close()
            what = "another training is writing into" if isinstance(error, BlockingIOError) else f"{reason(error)}: no lock in"
            raise TrainingError(f"{what} {self.folder}. Wait for it, or choose another folder.") from None
        remove_all_leftovers_within(self.folder / "checkpoints")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.folder is not None:
            self.lock.close()

    def check_same(self, group: Group) -> None:
        """Refuse to train together with a process that has other data or settings."""
        first = group.broadcast(self.identity)
        if first != self.identity:
            differences = [f"{name} is {value!r}, not {first.get(name)!r}" for name, value in self.identity.items()
                           if first.get(name) != value]  # fmt: skip
            raise TrainingError(
                f"process {group.rank} would train something else than process 0: {'; '.join(differences)}. Start all of them "
                "with the same command, on copies of the same data."
            )

    def restore(self, learner: Learner, stopping: EarlyStopping, history: list[dict[str, Any]]) -> Position:
        """Go on from the newest checkpoint, if there is one and it is of this very training."""
        for path in reversed(self._paths()):
            content, tensors = _read(path)
            self._check_identity(path, content["identity"])
            with torch.no_grad():
                for name, tensor in learner.state().items():
                    tensor.copy_(tensors[name])
            for name, values in content["stopping"].items():
                setattr(stopping, name, [tuple(value) for value in values] if name in ("best", "highest") else values)
            lines = _history_lines(path, content)
            self._cut_history(len(lines))
            self.history_checksum = RunningChecksum(b"".join(lines))
            history.extend(json.loads(line) for line in lines)
            return Position(content["epoch"], content["batch"], tensors["total"])
        self._cut_history(0)
        return Position()

    def begin(self, learner: Learner) -> None:
        """Remember what is good before an epoch that may not be."""
        self.good = {name: tensor.detach().clone() for name, tensor in learner.state().items()}

    def put_back(self, learner: Learner) -> None:
        """Restore the state from before the epoch at hand."""
        with torch.no_grad():
            for name, tensor in learner.state().items():
                tensor.copy_(self.good[name])

    def kept(self) -> str:
        return "" if self.named is None else f", and the state before that epoch is saved in {self.named}"

    def record(self, entry: dict[str, Any]) -> None:
        """Append an epoch to the history."""
        if self.folder is not None:
            line = f"{json.dumps(entry)}\n".encode()
            self.history_checksum.update(line)
            with writing(self.folder):
                append_to_file(self._history_path(), line)  # on the disk before a checkpoint that counts on it

    @property
    def due(self) -> bool:
        """Whether the last save was long ago."""
        return monotonic() - self.saved >= self.config.checkpoint_seconds

    def save(self, learner: Learner, stopping: EarlyStopping, position: Position) -> None:
        """Save the state and the position, atomically; the last few are kept."""
        if self.folder is None:
            return
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in learner.state().items()}
        content = {
            "format": FORMAT,
            "identity": self.identity,
            "stopping": {name: getattr(stopping, name) for name in STOPPING},
            "epoch": position.epoch,
            "batch": position.batch,
            "history": self.history_checksum.hexdigest(),
        }
        tensors["total"] = position.total
        content["sha256"] = _checksum_of(content, tensors)
        path = self.folder / "checkpoints" / f"{position.epoch:06}-{position.batch:06}.safetensors"
        write_whole(path, save(tensors, {"gatas": json.dumps(content)}))
        for old in self._paths()[: -self.config.keep_checkpoints]:
            old.unlink()
        self.saved = monotonic()

    def _paths(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("checkpoints/*.safetensors"))

    def _check_identity(self, path: Path, found: Mapping[str, Any]) -> None:
        differences = [
            f"{name} was {found.get(name)!r} and is {value!r}"
            for name, value in self.identity.items()
            if found.get(name) != value
        ]
        if differences:
            raise TrainingError(
                f"{path} is of another training: {'; '.join(differences)}. Choose another folder, or remove it."
            )

    def _history_path(self) -> Path:
        assert self.folder is not None
        return self.folder / "checkpoints" / "history.jsonl"

    def _cut_history(self, epochs: int) -> None:
        """Remove the epochs from the history that will be written again."""
        if self.folder is None or not self._history_path().exists():
            return
        lines = self._history_path().read_bytes().splitlines(keepends=True)
        if len(lines) > epochs:
            write_whole(self._history_path(), b"".join(lines[:epochs]))


def verify_checkpoints(folder: Path) -> None:
    """Read every byte of the checkpoints of a run, and of their history."""
    for path in sorted(folder.glob("checkpoints/*.safetensors")):
        content, _ = _read(path)
        _history_lines(path, content)


def _history_lines(checkpoint: Path, content: Mapping[str, Any]) -> list[bytes]:
    """Return the lines of history up to where the checkpoint is, as they were when it was saved."""
    path, epochs = checkpoint.with_name("history.jsonl"), content["epoch"]
    lines = path.read_bytes().splitlines(keepends=True)[:epochs] if path.exists() else []
    if len(lines) < epochs:
        raise TrainingError(
            f"{checkpoint} is after {epochs} epochs, but {path} tells of {len(lines)}. Remove both to begin anew, or bring "
            "back what is missing."
        )
    if checksum_of(b"".join(lines)) != content["history"]:
        raise TrainingError(f"{path} is damaged: it is not what {checkpoint.name} was saved after. Remove both to begin anew.")
    return lines


def _checksum_of(content: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash all that a checkpoint holds."""
    return fingerprint({name: tensor.numpy() for name, tensor in tensors.items()}, content)


def identity_of(config: Config, dataset: Dataset, seeds: list[int]) -> dict[str, Any]:
    """Return the data, seeds and settings that make a training the same training."""
    free = MAY_CHANGE_ON_RESUME - ({"epochs"} if config.training.schedule == "cosine" else set())
    training = {name: value for name, value in config.training.model_dump().items() if name not in free}
    sections = {"model": config.model.model_dump(mode="json"), "training": training}
    settings = {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}
    graph, contents = graph_fingerprint(dataset.graph), data_fingerprint(dataset)
    return {"graph": graph[:16], "data": dataset.name, "its contents": contents[:16], "seeds": seeds, **settings}


class UnwritableError(TrainingError):
    """A folder that cannot be written to: the disk is full, say."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, or say what a failure to write it means."""
    with writing(path.parent):
        write_file(path, content)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say what a failure to write means."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(
            f"{folder} cannot be written to ({reason(error)}). Nothing that was saved is lost: make room, or allow writing, "
            "and start again to go on from there."
        ) from None


def _check_format(path: Path, written: int) -> None:
    if written < FORMAT:
        raise TrainingError(
            f"{path} was written by an earlier version of gatas (format {written}; this one reads {FORMAT}). Finish the "
            "training with that version, or remove the folder to begin anew."
        )
    if written > FORMAT:
        raise ValueError(f"it has format {written}, and this gatas reads {FORMAT}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a checkpoint and check every byte of it."""
    try:
        with safe_open(path, framework="pt") as file:
            content = json.loads(file.metadata()["gatas"])
            _check_format(path, content["format"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if content.pop("sha256") != _checksum_of(content, tensors):
            raise ValueError("it does not have the sha256 it was written with")
        return content, tensors
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrainingError(f"{path} is damaged ({error}). Remove it to go on from the one before, if any.") from None
