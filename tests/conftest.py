"""Settings for all tests."""

import os
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("gatas", deadline=None)  # machines pause, and the first call compiles
settings.load_profile("gatas")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would their children

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined, so before any is imported

SLOW = {
    "cli": "*",
    "experiments": "*",
    "scale": "*",
    "serving": "*",
    "faults": "*",
    "datasets": ("test_ingest", "test_benchmarks", "test_one_reader", "test_generating"),
    "inference": (
        "test_classifier",
        "test_new_nodes",
        "test_picture",
        "test_explain",
        "test_strongest_paths",
        "test_link_picture",
    ),
    "nn": ("test_encoder",),
    "ops": ("test_triton", "test_draw", "test_operator", "test_compiling", "test_evidence", "test_pair_evidence"),
    "sampling": ("test_sampler",),
    "tests": ("test_examples",),
    "training": (
        "test_fit",
        "test_many",
        "test_checkpoint",
        "test_options",
        "test_store",
        "test_folder",
        "test_mlflow",
        "test_resume",
        "test_side_by_side",
    ),
    "transitions": ("test_properties", "test_truncation"),
    "tuning": ("test_tune",),
}
"""Folders and files of tests that take more than their share of a minute: `make quick` leaves them out."""


LONGEST_FIRST = ("website", "faults", "scale")
"""Folders whose single tests take longest: begun last, one of them would run alone at the end, on one core."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files, so that the quick suite stays within a minute on two cores; put the longest first."""
    for item in items:
        folder, file = Path(item.path).parent.name, Path(item.path).stem
        chosen = SLOW.get(folder, ())
        if chosen == "*" or file in chosen or folder in ("links", "baselines"):
            item.add_marker("slow")
    items.sort(key=lambda item: Path(item.path).parent.name not in LONGEST_FIRST)
