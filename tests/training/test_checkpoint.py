"""Checkpoints: a training that ends in any way goes on where it was, and never into another's folder."""

import ast
import errno
import json
import os
import resource
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from safetensors.torch import load_file, save_file

import gatas.training
import gatas.training.plots
from gatas.errors import TrainingError
from gatas.inference import fit, fit_many
from gatas.tasks import LinkTask, NodeTask
from gatas.training import Config
from tests.tasks.toys import SMALL, camps, classifier, likes, predictor

SETTINGS: dict[str, Any] = {"epochs": 4, "batch_size": 4, "learning_rate": 0.01, "checkpoint_seconds": 0}  # 3 batches an epoch


def train(folder=None, dataset=None, seed=0, report=None, model=None, **settings):
    dataset = dataset or camps()
    model = model or classifier(dataset)
    return fit(model, dataset, seed=seed, folder=folder, device="cpu", report=report, **{**SETTINGS, **settings})


def state(run):
    return {name: tensor.clone() for name, tensor in run.model.state_dict().items()}


def assert_same(run, other):
    ours, theirs = state(run), state(other)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert run.metrics == other.metrics
    assert told(run) == told(other)


def told(run):
    return [{name: value for name, value in entry.items() if not name.endswith("seconds")} for entry in run.history]


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """They are test_folder's, and take most of the time."""
    for name in ("curve_plot", "depth_plot"):
        monkeypatch.setattr(gatas.training.plots, name, lambda _: Figure(figsize=(1, 1)))


@pytest.fixture(scope="module")
def undisturbed():
    return train()


def checkpoints(folder):
    return sorted(path.stem for path in folder.glob("checkpoints/*.safetensors"))


def after(monkeypatch, calls, act, task=NodeTask, method="loss"):
    """Let `act` change what the n-th call of a task's method gives."""
    original, count = getattr(task, method), iter(range(10_000))

    def counted(self, *args, **kwargs):
        found = original(self, *args, **kwargs)
        return act(found) if next(count) == calls - 1 else found

    monkeypatch.setattr(task, method, counted)


def sending(*numbers):
    def act(found):
        for number in numbers:
            os.kill(os.getpid(), number)
        return found

    return act


def test_a_folder_changes_nothing(tmp_path, undisturbed):
    assert_same(train(tmp_path / "run"), undisturbed)


@pytest.mark.parametrize(
    ("number", "error", "code"), [(signal.SIGTERM, SystemExit, 143), (signal.SIGINT, KeyboardInterrupt, None)]
)
@pytest.mark.parametrize(("calls", "place"), [(1, "000000-000001"), (5, "000001-000002"), (6, "000002-000000")])
def test_a_signal_saves_the_place_and_ends(tmp_path, monkeypatch, undisturbed, number, error, code, calls, place):
    handlers = [signal.getsignal(known) for known in (signal.SIGTERM, signal.SIGINT)]
    with monkeypatch.context() as patch, pytest.raises(error) as end:
        after(patch, calls, sending(number))
        train(tmp_path, checkpoint_seconds=1000)
    assert code is None or end.value.code == code
    assert checkpoints(tmp_path) == [place] and not (tmp_path / "metrics.json").exists()
    assert [signal.getsignal(known) for known in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert_same(train(tmp_path), undisturbed)


def test_a_second_signal_is_obeyed_at_once(tmp_path, monkeypatch):
    after(monkeypatch, 5, sending(signal.SIGINT, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path)
    assert checkpoints(tmp_path) == ["000001-000000"]


def test_a_signal_that_comes_when_all_is_learned_is_obeyed_after_the_results_are_written(tmp_path, monkeypatch):
    after(monkeypatch, 1, sending(signal.SIGTERM), method="measure")
    with pytest.raises(SystemExit) as end:
        train(tmp_path)
    assert end.value.code == 143 and (tmp_path / "metrics.json").exists()


def test_a_signal_that_is_ignored_stays_so(monkeypatch, undisturbed):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        after(monkeypatch, 2, sending(signal.SIGINT))
        assert_same(train(), undisturbed)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_can_train_too(tmp_path, undisturbed):
    runs = []
    thread = threading.Thread(target=lambda: runs.append(train(tmp_path)))
    thread.start()
    thread.join()
    assert_same(runs[0], undisturbed)


def test_links_and_many_seeds_go_on_from_the_middle_of_an_epoch(tmp_path, monkeypatch):
    model = {**SMALL, "node_embedding_size": 4}
    config = Config.model_validate({"model": model, "training": {**SETTINGS, "batch_size": 20, "epochs": 3}})

    def train_all(folder=None):
        return fit_many(config, [3, 5], dataset=likes(), folder=folder, device="cpu")

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        after(patch, 5, sending(signal.SIGTERM), LinkTask)
        train_all(tmp_path)
    assert checkpoints(tmp_path)[-1] == "000001-000002"
    for run, other in zip(train_all(tmp_path), train_all(), strict=True):
        assert_same(run, other)


@pytest.mark.filterwarnings("ignore:the (training|validation) loss rose")
@pytest.mark.parametrize(("monitor", "rate"), [("metric", 0.05), ("either", 0.3)])
def test_early_stopping_goes_on_where_it_was(tmp_path, monkeypatch, monitor, rate):
    settings: dict[str, Any] = {"epochs": 40, "patience": 3, "learning_rate": rate, "monitor": monitor}
    whole = train(**settings)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        after(patch, 3 * whole.metrics["best_epoch"] + 5, sending(signal.SIGTERM))
        train(tmp_path, **settings)
    assert whole.metrics["epochs"] < 40
    assert_same(train(tmp_path, **settings), whole)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_training_with_what_was_good(tmp_path, monkeypatch, undisturbed, wrong):
    model = classifier(camps())
    with monkeypatch.context() as patch:
        after(patch, 8, lambda loss: loss * wrong)
        with pytest.raises(
            TrainingError, match=rf"the loss became {wrong} in epoch 3, batch 2 \(targets \[.*\]…\), seed 0\."
        ) as e:
            train(tmp_path, model=model)
    assert "\n" not in str(e.value) and str(tmp_path) in str(e.value) and "learning_rate" in str(e.value)
    best = train(model=classifier(camps()), epochs=2)  # the best of the two epochs before
    assert all(torch.equal(*both) for both in zip(model.parameters(), best.model.parameters(), strict=True))
    assert checkpoints(tmp_path)[-1] == "000002-000000"
    assert_same(train(tmp_path), undisturbed)


def test_targets_of_a_wrong_loss_are_those_of_its_batch(monkeypatch):
    batch = NodeTask(camps(), 4).epoch(seed=0, number=2).columns["target"][1]
    after(monkeypatch, 8, lambda loss: loss * float("nan"))
    with pytest.raises(TrainingError, match=rf"targets \[{', '.join(map(str, batch))}\]…"):
        train()


def test_a_wrong_loss_after_going_on_in_mid_epoch_puts_back_that_very_place(tmp_path, monkeypatch, undisturbed):
    for calls, act, error in [(5, sending(signal.SIGTERM), SystemExit), (1, lambda loss: loss * float("nan"), TrainingError)]:
        with monkeypatch.context() as patch, pytest.raises(error):
            after(patch, calls, act)
            train(tmp_path)
        assert checkpoints(tmp_path)[-1] == "000001-000002"
    assert_same(train(tmp_path), undisturbed)


def test_without_validation_a_wrong_loss_leaves_the_weights_before_its_epoch(monkeypatch):
    whole = camps()
    dataset = whole.with_splits({"train": whole.splits["train"]})
    good, model = train(dataset=dataset, epochs=2).model, classifier(dataset)
    after(monkeypatch, 8, lambda loss: loss * float("nan"))
    with pytest.raises(TrainingError, match="The model has its last good weights"):
        train(dataset=dataset, model=model)
    assert all(torch.equal(*both) for both in zip(model.parameters(), good.parameters(), strict=True))


def test_weights_that_become_infinite_in_the_last_step_of_an_epoch_are_not_kept(tmp_path, monkeypatch):
    def steep(loss):
        loss.register_hook(lambda gradient: gradient * float("inf"))
        return loss

    model = classifier(camps())
    after(monkeypatch, 3, steep)
    with pytest.raises(TrainingError, match="weights became infinite in epoch 1, batch 3"):
        train(tmp_path, model=model)
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    saved = load_file(tmp_path / "checkpoints" / "000000-000000.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in saved.values())


def other_labels():
    dataset = camps()
    labels = dataset.node_targets.labels[::-1].copy()
    return replace(dataset, targets=replace(dataset.node_targets, labels=labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, r"seeds was \[0\] and is \[1\]"),
        ({"learning_rate": 0.02}, r"training.learning_rate was 0.01 and is 0.02"),
        ({"batch_size": 5, "l2": 0.1}, r"training.batch_size was 4 and is 5; training.l2 was 0.0 and is 0.1"),
        ({"model": classifier(camps(), dropout=0.2)}, r"model.dropout was 0.1 and is 0.2"),
        ({"dataset": camps(seed=5)}, r"graph was '\w+' and is '\w+'; its contents was"),
        ({"dataset": other_labels()}, r"another training: its contents was '\w+' and is '\w+'\."),
        ({"dataset": camps(name="others")}, r"data was 'camps' and is 'others'"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_and_the_difference_shown(tmp_path, change, message):
    train(tmp_path, epochs=1)
    before = (tmp_path / "weights.safetensors").read_bytes()
    with pytest.raises(TrainingError, match=message) as error:
        train(tmp_path, **{"epochs": 1, **change})
    assert "Choose another folder, or remove it." in str(error.value) and "\n" not in str(error.value)
    assert (tmp_path / "weights.safetensors").read_bytes() == before


def test_more_epochs_go_on_from_the_last(tmp_path, undisturbed):
    train(tmp_path, epochs=2)
    assert_same(train(tmp_path, epochs=4, checkpoint_seconds=5, keep_checkpoints=1), undisturbed)


def test_more_epochs_of_a_cosine_are_another_training(tmp_path):
    train(tmp_path, epochs=1, schedule="cosine")
    with pytest.raises(TrainingError, match=r"training\.epochs was 1 and is 2"):
        train(tmp_path, epochs=2, schedule="cosine")


def test_a_finished_training_is_not_done_again(tmp_path, undisturbed):
    train(tmp_path)
    again = train(tmp_path, report=lambda entry: pytest.fail(f"epoch {entry['epoch']} was done again"))
    assert_same(again, undisturbed)


@pytest.mark.parametrize("keep", [1, 3])
def test_only_the_last_checkpoints_are_kept(tmp_path, keep):
    train(tmp_path, keep_checkpoints=keep)
    assert checkpoints(tmp_path) == [f"{epoch:06}-000000" for epoch in range(5 - keep, 5)]


def test_checkpoints_are_saved_as_seldom_as_asked(tmp_path):
    train(tmp_path, checkpoint_seconds=1000)
    assert checkpoints(tmp_path) == ["000004-000000"]


def test_a_second_training_in_the_same_folder_is_refused(tmp_path, undisturbed):
    refused = []

    def intrude(_):
        with pytest.raises(TrainingError, match=r"^another training is writing into .*\. Wait for it, or choose another") as e:
            train(tmp_path)
        refused.append(str(e.value))

    assert_same(train(tmp_path, report=intrude), undisturbed)
    assert len(refused) == 4 and not any("\n" in line for line in refused)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_learned(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TrainingError, match=r"file/run cannot be written to \(Not a directory\)\. Choose another folder"):
        train(tmp_path / "file" / "run", report=lambda _: pytest.fail("it learned"))


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_disk_that_refuses_ends_the_training_with_a_line(tmp_path, monkeypatch, undisturbed, number):
    def refuse(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch, pytest.raises(TrainingError) as error:
        train(tmp_path, report=lambda entry: entry["epoch"] == 1 and patch.setattr(os, "fsync", refuse))
    assert f"cannot be written to ({os.strerror(number)}). Nothing that was saved is lost" in str(error.value)
    assert "\n" not in str(error.value) and not list(tmp_path.rglob("*.tmp*"))
    assert checkpoints(tmp_path) == ["000001-000000"]
    assert_same(train(tmp_path), undisturbed)


def test_a_disk_that_is_full_in_the_midst_of_a_checkpoint_leaves_the_one_before(tmp_path, undisturbed):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(entry):
        if entry["epoch"] == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))  # less than a checkpoint takes

    try:
        with pytest.raises(TrainingError, match=r"cannot be written to \(File too large\)\. Nothing that was saved is lost"):
            train(tmp_path, report=limit)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoints(tmp_path) == ["000001-000000"] and not list(tmp_path.rglob("*.tmp*"))
    assert_same(train(tmp_path), undisturbed)


def truncated(path):
    os.truncate(path, path.stat().st_size // 2)


def of_another_format(path):
    save_file(load_file(path), path, {"gatas": json.dumps({"format": 99})})


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        of_another_format,
        lambda path: path.write_bytes(b"\0" * 100),
        lambda path: path.write_bytes(b""),
        lambda path: save_file(load_file(path), path),
        lambda path: save_file(load_file(path), path, {"gatas": "["}),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_can_be_used(tmp_path, monkeypatch, undisturbed, damage):
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        after(patch, 9, sending(signal.SIGTERM))
        train(tmp_path)
    newest = tmp_path / "checkpoints" / f"{checkpoints(tmp_path)[-1]}.safetensors"
    damage(newest)
    with pytest.raises(TrainingError, match=rf"{newest} is damaged \(.*\)\. Remove it to go on from the one before") as error:
        train(tmp_path)
    assert "\n" not in str(error.value)
    newest.unlink()
    assert_same(train(tmp_path), undisturbed)


def test_a_history_torn_in_the_midst_of_a_line_is_mended(tmp_path, monkeypatch, undisturbed):
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        after(patch, 8, sending(signal.SIGTERM))
        train(tmp_path)
    with (tmp_path / "checkpoints" / "history.jsonl").open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert_same(train(tmp_path), undisturbed)


def test_a_history_that_lacks_epochs_is_refused(tmp_path):
    train(tmp_path, epochs=2)
    (tmp_path / "checkpoints" / "history.jsonl").unlink()
    with pytest.raises(TrainingError, match=r"is after 2 epochs, but .*history.jsonl tells of 0"):
        train(tmp_path)


def test_a_history_that_is_not_as_it_was_is_refused(tmp_path):
    train(tmp_path, epochs=2)
    history = tmp_path / "checkpoints" / "history.jsonl"
    for damage in (lambda text: text.replace(b'"epoch": 1', b'"epoch": 3'), lambda text: text[:-1] + b"\x8a"):
        content = history.read_bytes()
        history.write_bytes(damage(content))
        with pytest.raises(TrainingError, match=r"history.jsonl is damaged: it is not what 000002-000000.safetensors"):
            train(tmp_path)
        history.write_bytes(content)
    train(tmp_path, epochs=3)


def test_one_weight_that_changed_in_a_checkpoint_is_found(tmp_path):
    train(tmp_path, epochs=2)
    (newest,) = (tmp_path / "checkpoints").glob("000002-*")
    content = bytearray(newest.read_bytes())
    content[-100] ^= 1  # the last tensors are numbers of which any is as good as another
    newest.write_bytes(content)
    with pytest.raises(TrainingError, match="it does not have the sha256 it was written with"):
        train(tmp_path)


def test_what_a_killed_write_left_behind_is_removed(tmp_path, undisturbed):
    (tmp_path / "checkpoints").mkdir()
    for name in ("000003-000000.safetensors.tmp", ".000003-000000.safetensors.tmp-elsewhere-1-0123abcd"):
        (tmp_path / "checkpoints" / name).write_bytes(b"half")
    assert_same(train(tmp_path), undisturbed)
    assert not list(tmp_path.rglob("*.tmp*"))


def test_nothing_in_training_is_pickled():
    for path in Path(gatas.training.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = [
            f"{getattr(node, 'module', '')}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        used = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        assert not {"torch.load", "torch.save"} & {*imported, *used}, path
        assert not any(word in name.lower() for name in imported for word in ("pickle", "dill", "joblib", "shelve")), path


def test_predictors_can_be_stopped_too(tmp_path, monkeypatch):
    settings: dict[str, Any] = {"epochs": 3, "batch_size": 20}
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        after(patch, 4, sending(signal.SIGTERM), LinkTask)
        train(tmp_path, likes(), model=predictor(likes()), **settings)
    resumed, whole = (train(folder, likes(), model=predictor(likes()), **settings) for folder in (tmp_path, None))
    assert_same(resumed, whole)
