"""Programs as files that other software runs: ONNX, or torch.export's .pt2."""

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch.export import ExportedProgram

from gatas.errors import GatasError
from gatas.inference.program_inputs import Arrays
from gatas.ops.plain import plain_operators

ProgramFormat = Literal["onnx", "torch"]
ENDINGS = {"onnx": ".onnx", "torch": ".pt2"}
TABLES = ("nodes", "features", "labels")
"""Inputs with a row for each node that a batch speaks of, however many these are."""
ONNX_BYTES = 2_000_000_000
"""Weights that fit in one ONNX file."""
METADATA = "gatas"
"""Key of an ONNX file's metadata, and name without .json of a .pt2 file's extra file, that holds the description."""


def check_onnx_is_installed() -> None:
    """Refuse to export where a package for it is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise GatasError(f"ONNX files need {error.name}, which is not installed: pip install 'gatas[onnx]'") from None


def traced(program: torch.nn.Module, inputs: Arrays) -> ExportedProgram:
    """Return a program as a graph of torch's own operations, for tables of any number of rows."""
    rows = torch.export.Dim("rows", min=1)
    shapes = {name: {0: rows} if name in TABLES else None for name in inputs}
    with torch.no_grad(), quiet(), refused_in_one_line("torch.export"):
        exported: ExportedProgram = torch.export.export(program, (), tensors_of(inputs), dynamic_shapes=shapes)
        exported = exported.run_decompositions(plain_operators())
    _refuse_own_operators(exported)
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)  # lines of our source, with paths of this machine
    return exported


def _refuse_own_operators(exported: ExportedProgram) -> None:
    """Refuse a program that would need gatas where it runs."""
    own = {str(node.target) for node in exported.graph.nodes if str(node.target).startswith("gatas.")}
    if own:
        raise GatasError(f"the model computes {', '.join(sorted(own))}, which has no form in plain torch. Use the predictor.")


def program_bytes(exported: ExportedProgram, format: ProgramFormat, inputs: Arrays, about: dict[str, Any]) -> bytes:
    """Return the content of a program's file, with its description inside."""
    return _onnx_bytes(exported, inputs, about) if format == "onnx" else _torch_bytes(exported, about)


def _torch_bytes(exported: ExportedProgram, about: dict[str, Any]) -> bytes:
    content = io.BytesIO()
    with quiet():
        torch.export.save(exported, content, extra_files={f"{METADATA}.json": json.dumps(about)})
    return content.getvalue()


def _onnx_bytes(exported: ExportedProgram, inputs: Arrays, about: dict[str, Any]) -> bytes:
    weights = sum(tensor.nbytes for tensor in exported.state_dict.values())
    if weights > ONNX_BYTES:
        raise GatasError(f"the weights take {weights / 1e9:.1f} GB, and an ONNX file holds 2 GB. Export the format torch.")
    names = [output["name"] for output in about["outputs"]]
    given: Any = {"kwargs": tensors_of(inputs), "output_names": names, "dynamo": True, "verbose": False}
    with torch.no_grad(), quiet(), refused_in_one_line("torch.onnx"):
        found = torch.onnx.export(exported, (), **given)
    assert found is not None
    for node in found.model.graph.all_nodes():
        node.metadata_props.clear()
    found.model.metadata_props[METADATA] = json.dumps(about)
    proto = found.model_proto
    _name_rows(proto.graph)
    return bytes(proto.SerializeToString())


def _name_rows(graph: Any) -> None:
    """Call the number of rows V, as the description does; the exporter has a name of its own for it."""
    values = [*graph.input, *graph.value_info, *graph.output]
    sizes = [size for value in values for size in value.type.tensor_type.shape.dim if size.dim_param]
    given = next((size.dim_param for size in sizes), "")  # that of the first table
    for size in sizes:
        size.dim_param = size.dim_param.replace(given, "V")


def runner(format: ProgramFormat, content: bytes) -> Callable[[Arrays], Arrays]:
    """Return what runs a program, from the bytes of its file, as a stranger would run it."""
    if format == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))
    with quiet():
        module = torch.export.load(io.BytesIO(content)).module()

    def run(inputs: Arrays) -> Arrays:
        with torch.no_grad():
            return {name: tensor.numpy() for name, tensor in module(**tensors_of(inputs)).items()}

    return run


@contextmanager
def refused_in_one_line(exporter: str) -> Iterator[None]:
    """Turn what an exporter says of a model that it cannot write, which is pages, into one line."""
    try:
        yield
    except (RuntimeError, torch.onnx.OnnxExporterError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise GatasError(
            f"the model cannot be written as a program; {exporter} said: {first} Use the predictor itself, "
            "or train a model with other settings."
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what torch's exporters say of themselves from the user."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def tensors_of(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Return arrays as tensors, by name."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
