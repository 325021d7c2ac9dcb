"""What the package needs of torch's private interfaces. A test that fails says what a new version of torch has taken away."""

import pytest
import torch

from gatas.ops.torch_private import assert_on_device, is_mapped, unwrapped
from tests.transitions.test_properties import no_gpu


def test_a_tensor_inside_vmap_is_mapped():
    """Without `is_batchedtensor`, models under vmap would count distinct nodes, whose number differs from model to model."""
    seen = []

    def look(own):
        seen.append(is_mapped(own))
        return own

    torch.vmap(look)(torch.arange(3))
    assert seen == [True] and not is_mapped(torch.arange(3))


def test_all_models_of_a_vmap_are_beneath_its_wrappers():
    """Without `get_unwrapped`, the targets of many models could not be checked, nor rows be made for them."""
    seen, values = [], torch.arange(6).view(3, 2)

    def look(own):
        seen.append(unwrapped(own))
        return own

    torch.vmap(torch.vmap(look))(values)
    assert torch.equal(seen[0], values)
    assert unwrapped(values) is values


def test_what_does_not_hold_is_raised_where_the_host_need_not_wait():
    """Without `_assert_async`, a target without a row would have no neighbours on a GPU, in silence."""
    assert_on_device(torch.tensor(True), "this holds")
    with pytest.raises(RuntimeError, match="this does not"):
        assert_on_device(torch.tensor(False), "this does not")


@no_gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_a_condition_on_a_gpu_does_not_wait():
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert_on_device(torch.ones((), dtype=torch.bool, device="cuda"), "this holds")
    finally:
        torch.cuda.set_sync_debug_mode("default")
