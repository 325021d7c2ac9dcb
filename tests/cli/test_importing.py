"""No garbage is collected while the libraries of a command are imported, and it is afterwards."""

import gc
import sys

import pytest

from gatas.cli.importing import quick_imports


@pytest.fixture
def counted(monkeypatch):
    """Permanent objects are those of other tests too, and are given back."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    yield
    gc.unfreeze()


def test_garbage_is_collected_after_imports_not_during(counted):
    with quick_imports():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() > 0


def test_an_import_that_fails_leaves_the_collector_on(counted):
    with pytest.raises(ImportError), quick_imports():
        raise ImportError
    assert gc.isenabled()


def test_nothing_changes_where_torch_is_there_already():
    import torch

    before = gc.get_freeze_count()
    with quick_imports():
        assert gc.isenabled() and torch is sys.modules["torch"]
    assert gc.get_freeze_count() == before
