"""Maps of representations: which nodes, coloured by what, and as which files."""

import numpy as np
import pyarrow.csv
import pytest

from gatas.errors import GatasError, StoreError
from gatas.inference import embedding_map
from gatas.inference.embedding_map import embedding_map as mapped
from tests.inference.conftest import trained
from tests.tasks.toys import camps, classifier, heights, labelled_graphs, likes, predictor, regressor


@pytest.fixture(scope="module")
def camp_predictor():
    return trained(classifier(camps()), camps()).predictor


def test_every_node_has_a_place_and_its_class(camp_predictor):
    found = camp_predictor.map_embeddings(method="t-sne")
    assert found.coordinates.shape == (30, 2) and np.isfinite(found.coordinates).all()
    assert found.values[:2] == ["even", "odd"] and found.known_as == "class" and found.method == "t-SNE"
    again = camp_predictor.map_embeddings(method="t-sne")
    assert np.array_equal(found.coordinates, again.coordinates)


def test_of_many_nodes_some_are_drawn(camp_predictor):
    found = mapped(camp_predictor, method="t-sne", most=12)
    assert len(found.coordinates) == 12 and found.num_nodes == 30 and len(set(found.ids.to_pylist())) == 12


def test_nodes_may_be_chosen(camp_predictor):
    assert camp_predictor.map_embeddings([3, 5, 9, 11, 2], method="t-sne").ids.to_pylist() == [3, 5, 9, 11, 2]
    with pytest.raises(GatasError, match="a map of 2 nodes was asked for; it takes 4"):
        camp_predictor.map_embeddings([3, 5])


@pytest.mark.parametrize("ending", ["png", "svg", "csv", "parquet"])
def test_maps_are_pictures_or_tables(camp_predictor, tmp_path, ending):
    path = tmp_path / f"map.{ending}"
    camp_predictor.map_embeddings(method="t-sne").write(path)
    assert path.stat().st_size > 500
    if ending == "csv":
        assert pyarrow.csv.read_csv(path).column_names == ["id", "x", "y", "class"]


def test_other_files_are_refused_before_the_work(camp_predictor, tmp_path):
    with pytest.raises(StoreError, match="ending that is not known"):
        camp_predictor.map_embeddings(method="t-sne").write(tmp_path / "map.pdf")


@pytest.mark.parametrize(
    ("make", "dataset", "known_as"),
    [(regressor, heights(), "metres"), (classifier, labelled_graphs(), "class"), (predictor, likes(), "type")],
)
def test_what_is_known_of_nodes_is_a_number_a_label_or_a_type(make, dataset, known_as):
    found = trained(make(dataset), dataset).predictor.map_embeddings(method="t-sne")
    assert found.known_as == known_as and found.draw().axes


def test_umap_is_named_where_it_is_missing(camp_predictor, monkeypatch):
    monkeypatch.setattr(embedding_map, "import_module", _missing)
    with pytest.raises(GatasError, match="UMAP is not installed: pip install umap-learn"):
        camp_predictor.map_embeddings(method="umap")


def _missing(name):
    raise ImportError(name)
