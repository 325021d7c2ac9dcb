"""`gatas export` on runs of digits and kinship."""

import json
import sys

import numpy as np
import pytest

from gatas import load
from tests.inference.conftest import digits_folder, kinship_parts_folder
from tests.inference.programs import differences_without_gatas, run_onnx

__all__ = ["digits_folder", "kinship_parts_folder"]


@pytest.mark.slow
def test_export_writes_a_program_with_what_it_takes_and_an_example(gatas, digits_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = gatas("export", digits_folder, "--batch-size", 8)
    name = f"{digits_folder.name}.onnx"
    assert code == 0 and f"{name}: 8 nodes at a time, 10 neighbours each; within" in out
    example = np.load(f"{name}.npz")
    found = run_onnx(name, example)["probabilities"]
    np.testing.assert_allclose(found, load(digits_folder).predict(example["asked_ids"]).probabilities, atol=1e-5)
    code, _, err = gatas("export", digits_folder)
    assert code == 1 and "exists already" in err and err.count("\n") == 1


@pytest.mark.slow
def test_export_writes_links_for_torch_alone(gatas, kinship_parts_folder, tmp_path):
    file = tmp_path / "kinship.pt2"
    code, out, _ = gatas("export", kinship_parts_folder, "--format", "torch", "--out", file, "--json")
    about = json.loads(out)
    assert code == 0 and about["file"] == str(file) and about["names"] == list(load(kinship_parts_folder).names)
    assert {one["name"] for one in about["inputs"]} == {"edge_type", "nodes", "targets", "path_probability", "log_degree"}
    assert max(differences_without_gatas(file, f"{file}.npz").values()) <= 1e-5


def test_export_names_the_extra_that_is_missing(gatas, digits_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = gatas("export", digits_folder, "--out", tmp_path / "digits.onnx")
    assert code == 1 and "need onnxruntime, which is not installed: pip install 'gatas[onnx]'" in " ".join(err.split())
