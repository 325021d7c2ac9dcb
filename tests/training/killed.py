"""A program that trains in children and kills them at random moments; run by test_resume.py.

Children are forked from a process that has everything loaded, so that each begins to learn at once. It has one thread only.
"""

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gatas.inference import fit
from tests.tasks.toys import camps, classifier

SETTINGS: dict[str, Any] = {"epochs": 20, "batch_size": 2, "learning_rate": 0.01, "patience": 100, "checkpoint_seconds": 0}
KILLS = 12
FORK = multiprocessing.get_context("fork")


def train(folder: Path) -> None:
    dataset = camps()
    fit(classifier(dataset), dataset, seed=1, folder=folder, device="cpu", **SETTINGS)


def train_on_a_slow_disk(folder: Path) -> None:
    """Most of the time goes into writing, so that is when most kills come."""
    fsync = os.fsync

    def slow(file: Any) -> None:
        time.sleep(0.01)
        fsync(file)

    with patch("os.fsync", slow):
        train(folder)


def train_and_die_writing(folder: Path, syncs: int) -> None:
    """Die with half a file written."""
    fsync, done = os.fsync, 0

    def deadly(file: Any) -> None:
        nonlocal done
        done += 1
        if done == syncs:
            if Path(f"/proc/self/fd/{file}").readlink().suffix == ".tmp":
                os.truncate(file, os.fstat(file).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(file)

    with patch("os.fsync", deadly):
        train(folder)


def killed_now_and_then(folder: Path, work, longest: float) -> None:
    """Kill twelve children after times up to the `longest`, then let one finish."""
    chance = random.Random(0)
    for _ in range(KILLS):
        child = FORK.Process(target=work, args=(folder,))
        child.start()
        child.join(chance.uniform(0, longest))
        assert child.exitcode in (None, 0), child.exitcode
        child.kill()
        child.join()
    train(folder)


def killed_writing(folder: Path) -> None:
    """Kill a child at each of the first syncs that it comes to, then let one finish."""
    for syncs in range(1, KILLS + 1):
        child = FORK.Process(target=train_and_die_writing, args=(folder, syncs))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    train(folder)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    train(folder / "warm")  # loads and compiles what children will need
    started = time.monotonic()
    train(folder / "undisturbed")
    longest = 0.15 * (time.monotonic() - started)
    killed_now_and_then(folder / "anywhere", train, longest)
    killed_now_and_then(folder / "slow disk", train_on_a_slow_disk, longest)
    killed_writing(folder / "writing")
    shutil.copytree(folder / "writing" / "checkpoints", folder / "finishing" / "checkpoints")
    killed_writing(folder / "finishing")  # has learned all, and dies writing its results


if __name__ == "__main__":
    main(Path(sys.argv[1]))
