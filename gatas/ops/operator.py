"""How an operator is made known to torch: what it takes and gives is said once, and all registrations follow.

What an operator takes is a named tuple of its contract, from which the schema is read; implementations, shapes and gradients
are given that tuple, and after it what the backward pass has in addition. Implementations are named by their places, such as
"gatas.ops.attend.cpu.forward", and imported when they are first called: numba where a CPU computes, Triton where a GPU does.

`torch.library.custom_op` would do as well, but its first call imports torch's compiler, which takes longer than torch itself.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor

from gatas.ops.models import folding_rule

KINDS = {
    Tensor: "Tensor",
    Tensor | None: "Tensor?",
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
}
LIBRARY: Any = torch.library.Library("gatas", "FRAGMENT")  # type: ignore[no-untyped-call]
Devices = Literal["both", "cpu", "triton"]
"""What has an implementation of its own: CPUs and GPUs, CPUs alone, or Triton, whose interpreter stands in on a CPU."""
MODULES: dict[Devices, dict[str, str]] = {
    "both": {"CPU": "cpu", "CUDA": "cuda"},
    "cpu": {"CPU": "cpu"},
    "triton": {"CPU": "cuda", "CUDA": "cuda"},
}
PLACES: dict[str, tuple[str, ...]] = {}
"""The places of the implementations of each operator that is registered."""


def operator(
    name: str,
    inputs: Any,  # a class made by NamedTuple
    returns: str,
    folder: str,  # of the operator, such as "gatas.ops.attend"
    function: str,  # its name in cpu.py and cuda.py
    *,
    devices: Devices = "both",
    shapes: Callable[..., Any],  # empty tensors like those that come out, of the inputs
    more: Mapping[str, Any] | None = None,  # arguments after the inputs: names and types
    setup: Callable[..., None] | None = None,  # given (ctx, inputs, output)
    backward: Callable[..., Any] | None = None,  # given (ctx, *gradients)
    shared: Sequence[int] = (),  # places of arguments that are one for all models
) -> Any:
    """Register `gatas::name` for CPUs and GPUs, for compilers, autograd and vmap; returns what is to be called."""
    arguments, count = {**inputs.__annotations__, **(more or {})}, len(inputs._fields)

    def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: function(inputs(*given[:count]), *given[count:])

    schema = ", ".join(f"{KINDS[kind]} {argument}" for argument, kind in arguments.items())
    LIBRARY.define(f"{name}({schema}) -> {returns}", tags=(torch.Tag.pt2_compliant_tag,))
    places = {key: f"{folder}.{module}.{function}" for key, module in MODULES[devices].items()}
    for key, place in places.items():
        LIBRARY.impl(name, grouped(_called_at(place)), key)
    torch.library.register_fake(f"gatas::{name}", grouped(shapes), lib=LIBRARY)
    torch.library.register_autograd(
        f"gatas::{name}", backward or _refusal(name), setup_context=setup and _grouped_setup(setup, inputs), lib=LIBRARY
    )
    overload = getattr(torch.ops.gatas, name).default
    torch.library.register_vmap(f"gatas::{name}", folding_rule(overload, shared), lib=LIBRARY)
    PLACES[name] = tuple(places.values())
    return overload


def implementation(place: str) -> Callable[..., Any]:
    """The function at a place such as "gatas.ops.attend.cpu.forward"."""
    module, _, name = place.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _called_at(place: str) -> Callable[..., Any]:
    """Calls what is at a place, out of sight of torch's compiler where that is loaded: it has nothing to gain inside."""
    return lambda *given: _implementation(place, "torch._dynamo" in sys.modules)(*given)


@cache
def _implementation(place: str, hidden: bool) -> Callable[..., Any]:
    function = implementation(place)
    return torch.compiler.disable(function) if hidden else function  # type: ignore[no-untyped-call]


def _grouped_setup(setup: Callable[..., None], record: Any) -> Callable[..., None]:
    def grouped(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # torch gives them by name
        setup(ctx, record(*inputs), output)

    return grouped


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(ctx: Any, *_: Any) -> None:
        raise RuntimeError(f"gatas::{name} has no gradient: what it gives cannot be differentiated.")

    return refuse
