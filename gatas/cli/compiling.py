"""A line on standard error about kernels that are compiled, since the first training waits for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatas.cli.output import stderr

if TYPE_CHECKING:
    from gatas.ops.compiling import Compilation


@contextmanager
def compilation_said(device: str) -> Iterator[None]:
    """Say for the CPU, and for a GPU if the device is one, that kernels are compiled; nothing where all were kept."""
    import torch

    from gatas.ops.compiling import watch_compilation

    gpu = device != "cpu" and torch.cuda.is_available()
    places = {"Numba": "this CPU", "Triton": torch.cuda.get_device_name() if gpu else "a GPU"}

    def say(compilation: "Compilation") -> None:
        place = places.pop(compilation.compiler, None)
        if place is not None:
            stderr.print(line_about(compilation, place), style="dim", soft_wrap=True)

    with watch_compilation(say, gpu=gpu):
        yield


def line_about(compilation: "Compilation", place: str) -> str:
    """`compiling Triton kernels for NVIDIA H200, draw_rows first (once; kept in /home/ana/.triton/cache)`."""
    kept = "with every command: there is no folder to keep them in" if compilation.folder is None else (
        f"once; kept in {compilation.folder}"
    )  # fmt: skip
    return f"compiling {compilation.compiler} kernels for {place}, {compilation.kernel} first ({kept})"
