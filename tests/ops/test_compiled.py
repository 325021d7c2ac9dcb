import subprocess
import sys

CODE = """
from gatas.ops.compiled import compiled

@compiled()
def twice(x):
    return 2 * x

print(twice(21))
"""


def test_kernels_work_where_compiled_code_cannot_be_kept():
    # a function without a file has no folder to be kept in, like one of a read-only installation
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.returncode) == ("42", 0), run.stderr
