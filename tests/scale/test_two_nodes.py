"""Ray with two nodes on one machine, one of which is lost."""

import warnings

import pytest

from gatas.scale import open_engine, run_job
from tests.scale.toys import expected, squares


@pytest.fixture
def cluster():
    pytest.importorskip("ray", reason="pip install 'gatas[ray]'")
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own
        cluster = Cluster(initialize_head=True, head_node_args=small)
        yield cluster
        cluster.shutdown()


@pytest.mark.slow
def test_a_lost_node_loses_no_part(cluster, tmp_path):
    lost = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    task, alive = squares(tmp_path, 120, seconds=0.2), [lost]

    def kill_one(state):
        if state.done >= 12 and alive:
            cluster.remove_node(alive.pop(), allow_graceful=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_engine("ray", ray_address=cluster.address) as engine:
            assert engine.num_workers == 2
            run_job(task, tmp_path / "job", tmp_path / "out", engine, num_parts=40, report=kill_one)
    assert not alive and (tmp_path / "out").read_bytes() == expected(task)
    assert len(set(task.marks())) == 40
