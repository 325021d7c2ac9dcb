"""How operators are made known to torch."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import gatas.ops
from gatas.ops.operator import PLACES, implementation, operator

FOLDERS = sorted(path.parent.name for path in Path(gatas.ops.__file__).parent.glob("*/contract.py"))
FIRST_CALL = """
import sys, torch
from gatas.ops.attend import attend
from gatas.ops.elu_dropout import elu_dropout
assert "numba" not in sys.modules and "triton" not in sys.modules
given = [torch.ones(*shape, requires_grad=True) for shape in ((1, 2, 3), (4, 2, 3), (2, 3), (4, 2, 5))]
slots = (torch.zeros(1, 6, dtype=torch.int64), torch.zeros(1, 6), torch.ones(1, 6, dtype=torch.bool))
attend(*given, *slots).sum().backward()
torch.vmap(attend)(*(tensor[None].detach() for tensor in (*given, *slots)))
print(sorted({"torch._dynamo", "torch._inductor", "triton"} & set(sys.modules)))
"""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_implementation_is_where_its_operator_says(folder):
    import_module(f"gatas.ops.{folder}")
    for name, places in PLACES.items():
        assert all(callable(implementation(place)) for place in places), name


def test_the_first_call_imports_neither_a_compiler_nor_what_other_devices_need():
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


class TwiceInputs(NamedTuple):
    """What the operator of these tests takes."""

    values: Tensor
    others: Tensor | None
    factor: float


def twice(given, *more):
    return given.values * given.factor


@pytest.fixture(scope="module")
def twice_operator():
    sys.modules["tests_twice_folder"] = sys.modules["tests_twice_folder.cpu"] = ModuleType("cpu")
    sys.modules["tests_twice_folder.cpu"].twice = twice  # type: ignore[attr-defined]
    like: Any = {"devices": "cpu", "shapes": lambda given: torch.empty_like(given.values)}
    return operator("tests_twice", TwiceInputs, "Tensor", "tests_twice_folder", "twice", **like)


def test_the_schema_is_read_from_the_inputs(twice_operator):
    expected = "gatas::tests_twice(Tensor values, Tensor? others, float factor) -> Tensor"
    assert str(twice_operator._schema) == expected
    assert torch.equal(twice_operator(torch.ones(2), None, 2.0), torch.full((2,), 2.0))
    torch.library.opcheck(twice_operator, (torch.ones(2, 3), None, 2.0))


def test_what_has_no_gradient_says_so(twice_operator):
    out = twice_operator(torch.ones(2, requires_grad=True), None, 2.0)
    with pytest.raises(RuntimeError, match="gatas::tests_twice has no gradient"):
        out.sum().backward()


def test_one_argument_for_all_models_cannot_be_mapped_over():
    from gatas.ops.noisy_linear import noisy_linear
    from gatas.ops.random import NoiseSource

    noise = NoiseSource(torch.tensor(0), torch.tensor(0))
    nodes, weight = torch.arange(2), torch.ones(3)
    dense, bias = torch.ones(5, 3), torch.ones(5)
    with pytest.raises(ValueError, match="for all models; it cannot be mapped over"):
        torch.vmap(lambda x: noisy_linear(x, nodes, weight, weight, dense, bias, noise, 2, 0.5, 1e-5))(torch.ones(4, 2, 3))
