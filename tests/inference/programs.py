"""Toy models of every kind that answers can rest on, and programs of them that are run as a stranger runs them."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gatas.inference import Predictor
from tests.inference.conftest import trained, with_ids
from tests.tasks.toys import camps, classifier, heights, labelled_graphs, likes, predictor, regressor

CHECK = """
import sys
sys.modules["gatas"] = None  # an import of it fails
import numpy as np, torch
example = np.load(sys.argv[2])
program = torch.export.load(sys.argv[1]).module()
names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
found = program(**{name: torch.from_numpy(example[name]) for name in names})
for name, answers in found.items():
    print(name, abs(answers.numpy() - example[name]).max() / max(1, abs(example[name]).max()))
"""
EVERYTHING = {
    "label_inputs": True, "path_mean_size": 4, "skip_connection": True, "output_norm": True, "label_spreading": True,
    "node_embedding_size": 3, "hide_own_embedding": True, "hidden_sizes": (6,),
}  # fmt: skip


def _classes():
    dataset = with_ids(camps())
    return trained(classifier(dataset, node_embedding_size=3), dataset)


def _labels():
    dataset = labelled_graphs()
    return trained(classifier(dataset), dataset)


def _numbers():
    dataset = heights()
    return trained(regressor(dataset), dataset)


def _all_settings():
    dataset = camps()
    return trained(classifier(dataset, **EVERYTHING), dataset, calibrate=True)


def _drawn_thrice():
    dataset = camps()
    return trained(classifier(dataset, path_attention="mlp"), dataset, evaluation_draws=3)


def _pairs():
    dataset = likes()
    return trained(predictor(dataset), dataset, evaluation_mode="all")


def _parts(*parts, **settings):
    dataset = likes()
    model = predictor(dataset, link_score=parts, vector_size=6, revisits=True, **settings)
    return trained(model, dataset, loss="list", hidden_folds=2, l2=0)


KINDS = {
    "classes": _classes,
    "labels": _labels,
    "numbers": _numbers,
    "all settings": _all_settings,
    "drawn thrice": _drawn_thrice,
    "pairs": _pairs,
    "three parts": lambda: _parts("vectors", "neighbourhood", "paths", decoder="bilinear"),
    "paths": lambda: _parts("paths"),
}


@cache
def toy(kind: str) -> Predictor:
    """Return a predictor of a toy model, trained once."""
    found: Predictor = KINDS[kind]().predictor
    return found


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Export a toy of `tests.inference.programs` once; gives the program's path."""
    done = {}

    def write(kind, format="onnx"):
        if (kind, format) not in done:
            path = tmp_path_factory.mktemp("programs") / ("toy.onnx" if format == "onnx" else "toy.pt2")
            toy(kind).export(path, format=format, batch_size=5)
            done[kind, format] = path
        return done[kind, format]

    return write


def differences_without_gatas(program, example) -> dict[str, float]:
    """Run a .pt2 file in a process that cannot import gatas; return how far answers are from the example's, relatively."""
    done = subprocess.run([sys.executable, "-c", CHECK, program, example], capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def run_onnx(path, inputs) -> dict[str, np.ndarray]:
    """Run an ONNX file by onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = [given.name for given in session.get_inputs()]
    return dict(zip(names, session.run(names, {name: inputs[name] for name in wanted}), strict=True))


def example_of(path):
    """Return the arrays of the example beside a program."""
    return np.load(f"{path}.npz")


def description_of(path):
    """Return the description beside a program."""
    return json.loads(Path(f"{path}.json").read_text())


def close(found, wanted):
    """Whether answers differ by at most 1e-5; of numbers and representations above 1, of the largest."""
    return bool(abs(found - wanted).max() <= 1e-5 * max(1.0, abs(wanted).max()))
