"""A program that trains in groups of forked processes, disturbs some, and leaves folders behind; run by test_processes.py.

Processes are forked from one that has everything loaded, so that each begins to learn at once. It has one thread only.
"""

import multiprocessing
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from gatas.errors import GatasError
from gatas.inference import fit, fit_many
from gatas.scale.processes import together
from gatas.tasks import NodeTask
from gatas.training import Config
from gatas.training.group import ALONE
from gatas.training.learner import Learner
from tests.tasks.toys import SMALL, camps, classifier, heights, labelled_graphs, likes, predictor, regressor

FORK = multiprocessing.get_context("fork")
SIZES = (1, 2, 3)
SETTINGS: dict[str, Any] = {"epochs": 6, "batch_size": 4, "learning_rate": 0.01, "l2": 0.01, "max_norm": 0.5, "device": "cpu"}
LONG = {**SETTINGS, "epochs": 25, "batch_size": 2, "patience": 100, "checkpoint_seconds": 0}
TIMEOUT = 60.0
SOON = 3.0
Work = Callable[[Any, Path], object]  # of a group, into a folder


def keep(runs, group, folder):
    """What every process ended with."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [{"weights": run.model.state_dict(), "history": run.history, "metrics": run.metrics} for run in runs]
    torch.save(found, folder / f"{group.rank}.pt")


def nodes(group, folder):
    """Ten nodes in batches of four: the last has two, and a third process none of them."""
    dataset = camps()
    keep([fit(classifier(dataset, dropout=0.5), dataset, seed=1, group=group, **SETTINGS)], group, folder)


def consistency(group, folder):
    dataset = camps()
    settings = {**SETTINGS, "consistency": 1.0, "consistency_nodes": 5}
    keep([fit(classifier(dataset), dataset, seed=1, group=group, **settings)], group, folder)


def numbers(group, folder):
    """Numbers of which some are not known."""
    dataset = heights()
    keep([fit(regressor(dataset), dataset, seed=1, group=group, **SETTINGS)], group, folder)


def weighted(group, folder):
    dataset = camps()
    settings = {**SETTINGS, "class_weights": {"odd": 3.0}, "label_smoothing": 0.1}
    keep([fit(classifier(dataset), dataset, seed=1, group=group, **settings)], group, folder)


def labels(group, folder):
    dataset = labelled_graphs()
    keep([fit(classifier(dataset), dataset, seed=1, group=group, by_graph=True, **SETTINGS)], group, folder)


def links(group, folder, **settings):
    """Pairs of one process are links that the neighbourhoods of another must not give away."""
    dataset = likes()
    keep([fit(predictor(dataset), dataset, seed=1, group=group, **{**SETTINGS, "batch_size": 5, **settings})], group, folder)


def lists(group, folder):
    """Links of one process are hidden from the graph that another looks at."""
    dataset = likes()
    model = predictor(dataset, link_score=("vectors", "neighbourhood", "paths"), vector_size=6, revisits=True)
    settings = {**SETTINGS, "loss": "list", "hidden_folds": 3, "num_negatives": 2, "n3": 0.01, "batch_size": 5}
    keep([fit(model, dataset, seed=1, group=group, **settings)], group, folder)


def seen(group, folder):
    links(group, folder, embedding_updates="seen")


def seeds(group, folder):
    """Two models side by side, of which one stops early."""
    training = {name: value for name, value in SETTINGS.items() if name != "device"}
    config = Config.model_validate({"model": SMALL, "training": {**training, "epochs": 8, "patience": 2}})
    keep(fit_many(config, [0, 3], dataset=camps(), device="cpu", group=group), group, folder)


def long(group, folder):
    dataset = camps()
    fit(classifier(dataset), dataset, seed=1, folder=folder, group=group, **LONG)


def infinite(group, folder):
    dataset = camps()
    fit(classifier(dataset), dataset, seed=1, folder=folder, group=group, **{**LONG, "learning_rate": 1e38, "max_norm": None})


def other_data(group, folder):
    dataset = camps(seed=group.rank)
    fit(classifier(dataset), dataset, seed=1, folder=folder, group=group, **LONG)


def disturbed(group, folder, what: Callable[[], object]):
    """The last process does something after a few steps."""
    objective, steps = NodeTask.objective, 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 12 and group.rank == group.size - 1:
            what()
        return objective(*given, **named)

    with patch.object(NodeTask, "objective", counted):
        long(group, folder)


def refuse() -> None:
    raise GatasError("row 7 is bad.")


def evaluated(group, folder):
    """Four batches of a split, however many processes there are."""
    dataset = camps()
    with patch("gatas.tasks.model.EVALUATED_SLOTS", {"cpu": 3 * SMALL["sample_size"]}):
        model = classifier(dataset)
        learner = Learner.of([model], NodeTask(dataset, 4), Config().training, torch.device("cpu"), group)
        logits = learner.predict("valid")
    folder.mkdir(parents=True, exist_ok=True)
    torch.save([{"weights": {"logits": logits}, "history": [], "metrics": learner.task.measure(logits[0], "valid")}],
               folder / f"{group.rank}.pt")  # fmt: skip


def run_rank(rank: int, size: int, port: int, work: Work, folder: Path, timeout: float) -> None:
    """As `gatas train` would be run; what it says is kept in a file."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "GROUP_WORLD_SIZE": "1"}  # fmt: skip
    said = folder.with_name(f"{folder.name}.said-{rank}").open("a", buffering=1)
    try:
        with together("cpu", timeout) as group:
            work(group, folder)
    except GatasError as error:
        said.write(f"error: {error}\n")
        os._exit(1)
    except SystemExit as error:
        os._exit(int(str(error.code)))
    os._exit(0)


def start(size: int, work: Work, folder: Path, timeout: float = TIMEOUT) -> list[Any]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [FORK.Process(target=run_rank, args=(rank, size, port, work, folder, timeout)) for rank in range(size)]
    for process in processes:
        process.start()
    return processes


def ends(processes: list[Any], seconds: float = 120) -> list[int | None]:
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    return codes


def end_of(size: int, work: Work, folder: Path, timeout: float = TIMEOUT) -> None:
    """Codes go beside the folder."""
    codes = ends(start(size, work, folder, timeout), 30 if timeout == SOON else 120)
    folder.with_name(f"{folder.name}.codes").write_text(" ".join(str(code) for code in codes))


def killed_now_and_then(folder: Path, seconds: float) -> None:
    """Kill one of two after a random time and end the other, as torchrun does; after some times let them finish."""
    chance = random.Random(0)
    for _ in range(6):
        processes = start(2, long, folder)
        time.sleep(chance.uniform(0, seconds))
        chance.shuffle(processes)
        processes[0].kill()
        time.sleep(0.1)
        processes[1].terminate()
        assert None not in ends(processes)
    end_of(2, long, folder)


def stopped(folder: Path, whom: tuple[int, ...], seconds: float) -> None:
    """SIGTERM to some of two, which ends both."""
    processes = start(2, long, folder)
    time.sleep(seconds)
    for rank in whom:
        os.kill(processes[rank].pid, signal.SIGTERM)
    folder.with_name(f"{folder.name}.stopped").write_text(" ".join(str(code) for code in ends(processes)))
    end_of(2, long, folder)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    long(ALONE, folder / "warm")  # loads and compiles what all will need
    for work in (nodes, consistency, numbers, weighted, labels, links, lists, seen, seeds, evaluated):
        for size in SIZES:
            end_of(size, work, folder / work.__name__ / str(size))
    started = time.monotonic()
    end_of(2, long, folder / "undisturbed")
    taken = time.monotonic() - started
    killed_now_and_then(folder / "killed", taken)
    stopped(folder / "stopped both", (0, 1), 0.5 * taken)
    stopped(folder / "stopped one", (1,), 0.5 * taken)
    end_of(2, infinite, folder / "infinite")
    end_of(2, other_data, folder / "other data")
    end_of(3, lambda group, own: disturbed(group, own, refuse), folder / "refused")
    end_of(3, lambda group, own: disturbed(group, own, lambda: os.kill(os.getpid(), signal.SIGKILL)), folder / "died")
    end_of(3, lambda group, own: disturbed(group, own, lambda: os.kill(os.getpid(), signal.SIGSTOP)), folder / "hung", SOON)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
