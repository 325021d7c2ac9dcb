"""What is compiled is reported by name, and what was kept is not."""

import os
import runpy
import subprocess
import sys
from textwrap import dedent

from numba import njit

from gatas.ops.compiling import Compilation, watch_compilation


def test_a_numba_kernel_is_reported_when_it_is_compiled_and_not_again():
    @njit
    def twice(number):
        return 2 * number

    seen: list[Compilation] = []
    with watch_compilation(seen.append, gpu=False):
        assert seen == [] and twice(2) == 4 and twice(3) == 6
    assert seen == [Compilation("twice", "Numba", None)]
    assert twice(1.5) == 3.0 and len(seen) == 1  # compiled for another type, while nobody watches


def test_a_kernel_that_was_kept_is_not_reported(tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text("from numba import njit\n@njit(cache=True)\ndef twice(n):\n    return 2 * n\n")
    seen: list[Compilation] = []
    with watch_compilation(seen.append, gpu=False):
        for _ in range(2):  # the second time as a process would that finds the first one's
            assert runpy.run_path(str(file))["twice"](2) == 4
    assert seen == [Compilation("twice", "Numba", str(tmp_path / "__pycache__"))]


def test_a_triton_kernel_is_reported_when_it_is_compiled_and_not_when_it_was_kept(tmp_path):
    code = """
        import sys, triton
        from triton import knobs
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from gatas.ops.compiling import watch_compilation
        knobs.cache.dir = sys.argv[1] + "/cache"
        sys.path.insert(0, sys.argv[1])
        from kernels import fill
        source = ASTSource(fill, {"out": "*fp32"}, {})
        with watch_compilation(lambda seen: print(seen.compiler, seen.kernel, seen.folder), gpu=True):
            for _ in range(2):
                triton.compile(source, target=GPUTarget("cuda", 90, 32))
        assert knobs.compilation.listener is None
    """
    (tmp_path / "kernels.py").write_text(
        "import triton, triton.language as tl\n@triton.jit\ndef fill(out):\n    tl.store(out, 1.0)\n"
    )
    compiled = {**os.environ, "TRITON_INTERPRET": "0"}
    said = subprocess.check_output([sys.executable, "-c", dedent(code), tmp_path], text=True, env=compiled)
    assert said == f"Triton fill {tmp_path / 'cache'}\n"
