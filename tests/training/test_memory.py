import subprocess
import sys

from gatas.training import keep_freed_memory

FAULTS = """
import resource, torch
from gatas.training import keep_freed_memory
if {keep}: keep_freed_memory()
for _ in range(3): torch.ones(8_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5): torch.ones(8_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep):
    return int(subprocess.check_output([sys.executable, "-c", FAULTS.format(keep=keep)], text=True))


def test_freed_memory_is_used_again():
    if not keep_freed_memory():
        assert not sys.platform.startswith("linux") or "musl" in sys.version.lower()
        return
    assert faults(True) < faults(False) / 10
