"""Programs say what the predictor says, where gatas is not, and come with an example."""

import numpy as np
import pytest

from gatas.errors import GatasError, StoreError
from gatas.inference import export as export_module
from tests.inference.programs import (
    KINDS,
    close,
    description_of,
    differences_without_gatas,
    example_of,
    run_onnx,
    toy,
    written,
)

__all__ = ["written"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_says_what_the_predictor_says(written, kind):
    path = written(kind)
    given = example_of(path)
    found = run_onnx(path, given)
    assert set(found) == {output["name"] for output in description_of(path)["outputs"]}
    assert all(close(answers, given[name]) for name, answers in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["all settings", "three parts"])
def test_torch_without_gatas_says_what_the_predictor_says(written, kind):
    path = written(kind, "torch")
    found = differences_without_gatas(path, f"{path}.npz")
    assert set(found) == {output["name"] for output in description_of(path)["outputs"]}
    assert all(difference <= 1e-5 for difference in found.values())


def test_the_example_names_the_nodes_that_it_is_about(written):
    given = example_of(written("classes"))
    assert given["asked_ids"].tolist() == ["a0", "a7", "a14", "a21", "a29"]
    assert given["row_ids"][given["targets"]].tolist() == given["asked_ids"].tolist()
    assert len(given["row_ids"]) == len(given["features"])
    links = example_of(written("paths"))
    assert links["asked_ids"].tolist() == [0, 3, 0, 3, 6, 2, 5, 7, 10, 1] and "row_ids" not in links


def test_a_program_whose_answers_are_others_is_not_written(monkeypatch, tmp_path):
    monkeypatch.setattr(export_module, "CLOSE", 0.0)
    with pytest.raises(GatasError, match=r"differ from the predictor's by .*; nothing was written"):
        toy("classes").export(tmp_path / "toy.pt2", format="torch")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("toy.pt2", {}, "ending that is not that of the format onnx; expected .onnx"),
        ("toy.onnx", {"format": "torch"}, "format torch; expected .pt2"),
        ("toy.onnx", {"format": "tflite"}, "'tflite' is not known; expected onnx or torch"),
        ("away/toy.onnx", {}, "away is not a folder"),
        ("folder.onnx", {}, "is a folder; expected a file"),
        ("there.onnx", {}, "there.onnx.npz exists already. Choose another name, or pass overwrite"),
    ],
)
def test_files_that_cannot_be_written_are_refused(tmp_path, name, options, message):
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "there.onnx.npz").touch()
    with pytest.raises(StoreError, match=message):
        toy("classes").export(tmp_path / name, **options)


def test_a_predictor_with_new_nodes_is_refused(tmp_path):
    larger = toy("labels").with_new_nodes(np.zeros((1, 4), np.float32), ([20], [3]), ids=[20])
    with pytest.raises(GatasError, match=r"has new nodes\. Export the one without them"):
        larger.export(tmp_path / "toy.onnx")
