"""Typed arguments of methods that pass them on agree with what they are passed on to."""

from inspect import signature
from typing import get_type_hints

import pytest

from gatas.datasets import Dataset
from gatas.datasets.networkx import dataset_from_networkx
from gatas.datasets.pyg import dataset_from_pyg
from gatas.datasets.python_settings import NetworkxSettings, PygSettings
from gatas.inference import Predictor
from gatas.inference.new_nodes import NewNodeSettings


@pytest.mark.parametrize(
    ("settings", "passed_on_to", "documented"),
    [
        (PygSettings, dataset_from_pyg, Dataset.from_pyg),
        (NetworkxSettings, dataset_from_networkx, Dataset.from_networkx),
        (NewNodeSettings, Predictor.with_new_nodes, Predictor.with_new_nodes),
    ],
)
def test_typed_arguments_are_those_that_are_taken_and_documented(settings, passed_on_to, documented):
    parameters = signature(passed_on_to).parameters
    taken = {name: one.annotation for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
    assert get_type_hints(settings) == taken
    listed = documented.__doc__.partition("Args:\n")[2]
    assert all(f"            {name}: " in listed for name in taken)
