import subprocess
import sys

NO_FOLDER = """
from numba.core import caching
caching._CacheImpl._locator_classes = []  # what numba finds in a read-only installation without a home
from gatas.transitions.kernels import compiled

@compiled()
def twice(x):
    return 2 * x

print(twice(21))
"""


def test_kernels_work_where_compiled_code_cannot_be_kept():
    run = subprocess.run([sys.executable, "-c", NO_FOLDER], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.returncode) == ("42", 0), run.stderr
