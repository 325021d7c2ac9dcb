"""A trained model as a program that runs without gatas, what it takes and gives, and an example, as three files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatas.datasets import LinkTargets
from gatas.errors import GatasError, StoreError
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.inference.files import results_file
from gatas.inference.ids import ids_of
from gatas.inference.program import program_of
from gatas.inference.program_description import description
from gatas.inference.program_formats import (
    ENDINGS,
    ProgramFormat,
    check_onnx_is_installed,
    program_bytes,
    runner,
    traced,
)
from gatas.inference.program_inputs import Arrays, ProgramInputs, ProgramSizes, link_inputs, node_inputs, program_sizes

if TYPE_CHECKING:
    from gatas.inference.predictor import Predictor

CLOSE = 1e-5
"""How far a program's answers may be from the predictor's; of representations and numbers, relative to the largest."""


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """What was written: a program, what it takes and gives, and an example."""

    path: Path
    sizes: ProgramSizes
    description: dict[str, Any]

    @property
    def difference(self) -> float:
        """Return how far the program's answers of the example are from the predictor's, at most."""
        return float(self.description["largest_difference"])


@dataclass(frozen=True, eq=False)
class Example:
    """A batch of the run's own nodes or links: inputs of the program, and the predictor's answers."""

    inputs: ProgramInputs
    outputs: Arrays
    asked: Ints  # (B,) nodes; or (2B,) all sources of links, then all of their targets


def export_model(
    predictor: "Predictor",
    path: Path,
    format: ProgramFormat,
    *,
    batch_size: int | None,
    sample_size: int | None,
    overwrite: bool,
    name: str | None,
) -> ExportedModel:
    """Write a program, its description and an example; nothing if its answers are not the predictor's."""
    check_files(path, format, overwrite=overwrite)
    if isinstance(predictor.graph, ExtendedGraph):
        raise GatasError("the predictor has new nodes. Export the one without them: programs take new nodes as inputs.")
    if format == "onnx":
        check_onnx_is_installed()
    sizes = program_sizes(predictor, batch_size, sample_size)
    example = example_of(predictor, sizes)
    inputs = example.inputs.arrays
    about = {"format": format, **description(predictor, name or predictor.dataset.name, sizes, inputs, example.outputs)}
    content = program_bytes(traced(program_of(predictor), inputs), format, inputs, about)
    about["largest_difference"] = largest_difference(runner(format, content)(inputs), example.outputs)
    with results_file(path) as file:
        file.write(content)
    with results_file(description_path(path)) as file:
        file.write((json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
    with results_file(example_path(path)) as file:
        np.savez_compressed(file, allow_pickle=False, **example_arrays(predictor, example))
    return ExportedModel(path, sizes, about)


def description_path(path: Path) -> Path:
    """Return the name of the description beside a program: model.onnx.json."""
    return path.with_name(f"{path.name}.json")


def example_path(path: Path) -> Path:
    """Return the name of the example beside a program: model.onnx.npz."""
    return path.with_name(f"{path.name}.npz")


def check_files(path: Path, format: ProgramFormat, *, overwrite: bool) -> None:
    """Refuse files that cannot be written, before the work rather than after it."""
    if format not in ENDINGS:
        raise StoreError(f"the format {format!r} is not known; expected onnx or torch.")
    if path.suffix.lower() != ENDINGS[format]:
        raise StoreError(f"{path} has an ending that is not that of the format {format}; expected {ENDINGS[format]}.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path.parent} is not a folder, so {path.name} cannot be written there. Make it first.")
    for file in (path, description_path(path), example_path(path)):
        if file.is_dir():
            raise StoreError(f"{file} is a folder; expected a file to write.")
        if file.exists() and not overwrite:
            raise StoreError(f"{file} exists already. Choose another name, or pass overwrite (--overwrite).")


def example_of(predictor: "Predictor", sizes: ProgramSizes) -> Example:
    """Return a full batch of nodes from all over the graph, or of held-out links, with the predictor's answers.

    Where there are fewer than a batch takes, they repeat.
    """
    if predictor.predicts_links:
        return _example_links(predictor, sizes)
    count, size = predictor.graph.num_nodes, sizes.batch_size
    nodes = np.resize(np.linspace(0, count - 1, min(size, count)).astype(np.int64), size)
    found = predictor.predict_indices(nodes)
    answers = {"values": found.values} if predictor.predicts_numbers else {"probabilities": found.probabilities}
    representations = predictor.embed_indices(nodes)
    return Example(node_inputs(predictor, nodes, sizes), {"representations": representations, **answers}, nodes)


def _example_links(predictor: "Predictor", sizes: ProgramSizes) -> Example:
    targets = predictor.dataset.targets
    assert isinstance(targets, LinkTargets)
    links = next(targets.splits[name] for name in ("valid", "test", "train") if name in targets.splits)
    columns = (links.source, links.edge_type, links.target)
    source, edge_type, target = (np.resize(np.asarray(column, np.int64), sizes.batch_size) for column in columns)
    ends = np.concatenate([source, target])
    outputs: Arrays = {"probabilities": predictor.score_indices(source, edge_type, target).probabilities}
    if predictor.embedding_size:
        outputs = {"representations": predictor.embed_indices(ends), **outputs}
    return Example(link_inputs(predictor, source, edge_type, target, sizes), outputs, ends)


def example_arrays(predictor: "Predictor", example: Example) -> Arrays:
    """Return what an example's file holds: inputs, answers, and the ids of what they are about."""
    ids = {"asked_ids": example.asked, "row_ids": example.inputs.rows}
    about = {name: _id_array(predictor, nodes) for name, nodes in ids.items() if len(nodes)}
    return {**example.inputs.arrays, **example.outputs, **about}


def _id_array(predictor: "Predictor", nodes: Ints) -> NDArray[Any]:
    """Ids as numbers or text, which a file without pickled objects holds."""
    ids = np.array(ids_of(predictor.graph, nodes).to_pylist())
    return ids.astype(str) if ids.dtype == object else ids


def largest_difference(found: Arrays, wanted: Arrays) -> float:
    """Return how far a program's answers are from the predictor's, and refuse one whose answers are others."""
    worst = 0.0
    for name, answers in wanted.items():
        scale = 1.0 if name == "probabilities" else max(1.0, float(abs(answers).max(initial=0)))
        distance = float(abs(found[name] - answers).max(initial=0)) / scale
        if not distance <= CLOSE:
            raise GatasError(
                f"the program's {name} differ from the predictor's by {distance:.1e}, more than {CLOSE:g}; nothing was "
                "written. It computes in float32, which is too coarse for these weights or features. Use the predictor instead."
            )
        worst = max(worst, distance)
    return worst
