"""Ray, started once for the tests of a file: on loopback, small, and ended after them."""

import warnings

import pytest

from tests.scale.toys import ENGINES


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine, which engines find running."""
    found = pytest.importorskip("ray", reason="pip install 'gatas[ray]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own
        found.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=80 << 20,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
        )
        yield found
        found.shutdown()


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "ray":
        request.getfixturevalue("ray")
    return request.param
