"""Settings for tests of link peers."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Toy graphs gain nothing from threads, which wait for each other where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
