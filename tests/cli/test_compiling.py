"""The line about kernels that are being compiled."""

from numba import njit

from gatas.cli.compiling import compilation_said, line_about
from gatas.ops.compiling import Compilation


def test_the_first_kernel_is_named_and_others_are_not(capsys):
    @njit
    def twice(number):
        return 2 * number

    with compilation_said("cpu"):
        twice(2)
        twice(1.5)
    line = "compiling Numba kernels for this CPU, twice first (with every command: there is no folder to keep them in)\n"
    assert capsys.readouterr() == ("", line)


def test_nothing_is_said_where_nothing_is_compiled(capsys):
    with compilation_said("cpu"):
        pass
    assert capsys.readouterr() == ("", "")


def test_the_line_says_where_kernels_are_kept():
    line = line_about(Compilation("draw_rows", "Triton", "/cache"), "NVIDIA H200")
    assert line == "compiling Triton kernels for NVIDIA H200, draw_rows first (once; kept in /cache)"
