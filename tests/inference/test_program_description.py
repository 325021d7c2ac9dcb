"""The description beside a program is true of it, and enough to fill its inputs."""

import json

import numpy as np
import pytest

from tests.inference.programs import description_of, example_of, toy, written

__all__ = ["written"]


def test_the_description_has_the_names_types_and_shapes_of_what_onnxruntime_asks_for(written):
    import onnxruntime

    path = written("classes")
    session, about = onnxruntime.InferenceSession(path), description_of(path)
    kinds = {"int64": "tensor(int64)", "float32": "tensor(float)", "bool": "tensor(bool)"}
    said = {one["name"]: (kinds[one["dtype"]], [str(size) for size in one["shape"]]) for one in about["inputs"]}
    rows = {"rows": "V"}
    asked = {one.name: (one.type, [rows.get(size, str(size)) for size in one.shape]) for one in session.get_inputs()}
    assert said == asked
    outputs = {one["name"]: one["shape"] for one in about["outputs"]}
    assert outputs == {one.name: list(one.shape) for one in session.get_outputs()}
    assert about["names"] == ["even", "odd"] and (about["batch_size"], about["sample_size"]) == (5, 6)
    inside = json.loads(session.get_modelmeta().custom_metadata_map["gatas"])
    assert inside == {name: value for name, value in about.items() if name != "largest_difference"}


def test_inputs_can_be_filled_by_what_the_description_says(written):
    predictor, path = toy("pairs"), written("pairs")
    about, given = description_of(path), example_of(path)
    first = int(given["nodes"][given["targets"][0]])
    row, relations = predictor.sampler.transitions.row(first), about["relations"]
    expected = {}
    for node, last, step, probability in zip(row.node, row.path, row.step, row.probability, strict=True):
        names, at = [], int(last)
        while at >= 0:
            names.append(at % len(relations))
            at = at // len(relations) - 1
        built = -1
        for relation in reversed(names):
            built = (built + 1) * len(relations) + relation
        assert built == last and (step == 0) == (last == 0)
        expected[int(node), built] = np.log(about["depth_coefficients"][step] * probability)
    used = given["mask"][0]
    found = zip(given["nodes"][given["node"][0, used]], given["path"][0, used], given["log_probability"][0, used], strict=True)
    assert {(int(node), int(last)): value for node, last, value in found} == pytest.approx(expected, abs=1e-5)
