"""Files of programs hold nothing of this machine; what cannot be written is refused in one line."""

import sys
import zipfile
from pathlib import Path

import pytest

import gatas
from gatas.errors import GatasError
from gatas.inference import program_formats
from tests.inference.programs import toy, written

__all__ = ["written"]


@pytest.mark.parametrize("format", ["onnx", "torch"])
def test_no_path_of_this_machine_is_in_a_program(written, format):
    path = written("classes", format)
    parts = [path.read_bytes()]
    if format == "torch":
        with zipfile.ZipFile(path) as archive:
            parts = [archive.read(name) for name in archive.namelist()]
    folder = str(Path(gatas.__file__).parent).encode()
    assert not any(folder in part or b"site-packages" in part for part in parts)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(GatasError, match=r"need onnxscript, which is not installed: pip install 'gatas\[onnx\]'"):
        toy("classes").export(tmp_path / "toy.onnx")


def test_a_model_with_an_operator_that_has_no_plain_form_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(program_formats, "plain_operators", dict)
    with pytest.raises(GatasError, match=r"computes gatas\.attend\.default, .*which has no form in plain torch"):
        toy("classes").export(tmp_path / "toy.pt2", format="torch")
    assert not list(tmp_path.iterdir())


def test_what_an_exporter_says_at_length_becomes_one_line():
    with pytest.raises(GatasError) as error, program_formats.refused_in_one_line("torch.onnx"):
        raise RuntimeError("No function for aten.unique.\nUser stack:\n  many lines")
    assert "torch.onnx said: No function for aten.unique. Use the predictor" in str(error.value)
    assert "\n" not in str(error.value)
