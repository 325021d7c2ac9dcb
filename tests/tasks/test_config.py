"""Settings of models."""

import pytest

from gatas.errors import ConfigError
from gatas.tasks.config import ModelConfig, checked


def test_candidates_are_capped_for_all_steps_or_for_each():
    assert checked(ModelConfig, {"max_candidates": 64}).max_candidates == 64
    assert checked(ModelConfig, {"max_candidates": [64, 256, 9]}).max_candidates == (64, 256, 9)
    assert ModelConfig().max_candidates is None


@pytest.mark.parametrize("given", [0, True, "many", [], [64, 0], [64, None]])
def test_other_caps_are_refused(given):
    with pytest.raises(ConfigError, match=r"came; expected a whole number from 1 on, a list with one for each step, or null"):
        checked(ModelConfig, {"max_candidates": given})
