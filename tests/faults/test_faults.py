"""The fault suite, short: each fault once on most jobs. `make faults` runs the long one."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gatas.cli.app import COMMANDS, imported_command
from tests.faults.commands import EMBED, KINDS, NOT_DRAWN, LeftOut
from tests.faults.damage import damaged
from tests.faults.disturbing import FAULTS
from tests.faults.suite import is_one_line
from tests.faults.world import bytes_lost

ROOT = Path(__file__).parents[2]
SHORT = ("ingest", "transitions", "training", "embedding", "serving", "damage")


@pytest.mark.slow
def test_every_fault_is_survived_with_no_byte_lost():
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--rounds", "1", "--json", "--only", *SHORT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["survived"] == row["injected"] and row["bytes_lost"] == 0 for row in rows), rows
    injected = {(row["job"], row["fault"]) for row in rows if row["injected"] or "only root" in row["said"]}
    certain = [fault for fault in FAULTS if "random moment" not in fault]  # which may come too late
    assert {(job, fault) for job in SHORT[:4] for fault in certain} <= injected
    assert ("serving", "kill -9 at a random moment") in injected


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_drawn_command_is_drawn_or_left_out_for_a_reason(name):
    kind = KINDS[name]
    command = imported_command(kind.words.split()[0])
    for word in kind.words.split()[1:]:
        command = command.commands[word]
    options = {parameter.name: {*parameter.opts, *parameter.secondary_opts} for parameter in command.params}
    assert set(kind.choices) == set(options)
    for option, choices in kind.choices.items():
        given = [] if isinstance(choices, LeftOut) else [word for choice in choices for word in choice.split()]
        assert {word for word in given if word.startswith("--")} <= options[option]


def test_every_command_is_drawn_or_left_out_for_a_reason():
    drawn = {kind.words.split()[0] for kind in KINDS.values()}
    assert drawn | set(NOT_DRAWN) == set(COMMANDS) and not drawn & set(NOT_DRAWN)


def test_draws_are_those_of_the_seed_and_options_come_together():
    draws = [[EMBED.drawn(random.Random(seed)).command for seed in range(300)] for _ in range(2)]
    assert draws[0] == draws[1] and len(set(draws[0])) > 200
    for words in (("--engine pool", "--parts 8"), ("--engine serial", "--job"), ("--engine pool", "--batch-size", "--json")):
        assert any(all(word in command for word in words) for command in draws[0])
    assert all("--engine" in command for command in draws[0] if "--parts" in command or "--job" in command)


def test_damage_that_nobody_finds_is_a_loss(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("content")
    monkeypatch.setattr("tests.faults.damage.verified", lambda path: None)
    for row in damaged("file", tmp_path, 2, 0):
        assert (row.injected, row.survived, row.bytes_lost) == (2, 0, 2) and row.said == "not found in file"


def test_what_differs_is_lost():
    expected = {"same": b"12", "other": b"345", "missing": b"6789"}
    assert bytes_lost(expected, {"same": b"12", "other": b"34", "new": b"1"}) == 7
    assert bytes_lost(expected, expected) == 0


def test_a_stack_trace_is_not_survival():
    assert is_one_line(1, "progress\nerror: the disk is full. Make room.\n")
    assert not is_one_line(1, "Traceback (most recent call last)\nerror: the disk is full.\n")
    assert not is_one_line(2, "error: the disk is full.\n") and not is_one_line(1, "OSError: the disk is full.\n")
