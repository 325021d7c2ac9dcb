"""Generated graphs: the same from the same recipe, whoever writes them; hubs, types and classes as asked for."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from gatas.datasets.generating import BLOCK, GraphRecipe, generate_graph
from gatas.datasets.settings import checked
from gatas.errors import ConfigError, GraphError

SMALL = {"nodes": 1000, "edges": 300_000, "classes": 4, "edge_types": 2, "features": 8}


def generated(folder, part_rows=1 << 24, threads=1, **settings):
    generate_graph(folder, GraphRecipe(**{**SMALL, **settings}), part_rows=part_rows, threads=threads)
    return pq.read_table(folder / "nodes"), pq.read_table(folder / "edges")


def test_the_rows_do_not_depend_on_portions_or_threads(tmp_path):
    whole = generated(tmp_path / "whole")
    parts = generated(tmp_path / "parts", part_rows=BLOCK // 3 + 7, threads=2)
    assert len(list((tmp_path / "parts" / "edges").iterdir())) == 7
    assert all(one.equals(other) for one, other in zip(whole, parts, strict=True))


def test_another_seed_gives_another_graph(tmp_path):
    one, other = (generated(tmp_path / str(seed), seed=seed, edges=1000) for seed in (0, 1))
    assert not one[0].equals(other[0]) and not one[1].equals(other[1])


def test_a_hub_has_as_many_distinct_neighbours_as_asked_for(tmp_path):
    _, edges = generated(tmp_path / "g", hub=700, edges=0)
    assert len(set(edges["source"].to_pylist())) == 1
    assert len(set(edges["target"].to_pylist())) == 700


def test_degrees_follow_the_power_law(tmp_path):
    _, edges = generated(tmp_path / "g", nodes=100_000, exponent=2.5)
    degree = np.sort(np.bincount(edges["source"].to_numpy(), minlength=100_000))[::-1]
    expected = 300_000 * 100_000 ** (-1 / 3)  # of rank 0: the share of the first of N is N^(1/1.5 - 1)
    assert degree[0] == pytest.approx(expected, rel=0.1)
    assert np.median(degree) <= 3


def test_a_type_leads_from_a_class_to_the_one_it_stands_for(tmp_path):
    nodes, edges = generated(tmp_path / "g", homophily=0.8)
    label = nodes["label"].to_numpy()
    assert nodes["id"].to_pylist() == list(range(1000)) and np.bincount(label).tolist() == [250] * 4
    source, target = (label[edges[name].to_numpy()] for name in ("source", "target"))
    kind = np.array([int(name.removeprefix("type ")) for name in edges["type"].to_pylist()])
    followed = (target - source) % 4 == kind
    assert followed.mean() == pytest.approx(0.8 + 0.2 / 4, abs=0.01)
    assert not (edges["source"].to_numpy() == edges["target"].to_numpy()).any()


def test_features_lie_around_the_centre_of_their_class(tmp_path):
    nodes, _ = generated(tmp_path / "g", nodes=4000, edges=0, signal=1.0)
    features = nodes["features"].combine_chunks().flatten().to_numpy().reshape(4000, 8)
    label = nodes["label"].to_numpy()
    centres = np.stack([features[label == kind].mean(0) for kind in range(4)])
    nearest = ((features[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == label).mean() > 0.8


def test_splits_have_their_shares(tmp_path):
    nodes, _ = generated(tmp_path / "g", nodes=20_000, edges=0, train=0.5, valid=0.25, test=0.1)
    splits = nodes["split"].to_pylist()
    shares = [splits.count(name) / 20_000 for name in ("train", "valid", "test", "")]
    assert shares == pytest.approx([0.5, 0.25, 0.1, 0.15], abs=0.02)


def test_ids_can_be_text(tmp_path):
    nodes, edges = generated(tmp_path / "g", text_ids=True, edges=10)
    assert nodes["id"][7].as_py() == "n007" and set(edges["source"].to_pylist()) <= set(nodes["id"].to_pylist())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nodes": 3}, "too few"),
        ({"hub": 1000}, "hub of degree 1000 needs 1001 nodes"),
        ({"train": 0.9, "valid": 0.2}, "add up to"),
        ({"exponent": 2.0}, "greater than 2"),
        ({"nods": 3}, "Did you mean 'nodes'"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        checked(GraphRecipe, {**SMALL, **settings})


def test_a_folder_that_is_there_is_kept(tmp_path):
    tmp_path.joinpath("mine").write_text("precious")
    with pytest.raises(GraphError, match="exists already"):
        generate_graph(tmp_path, GraphRecipe(**SMALL))
    assert tmp_path.joinpath("mine").read_text() == "precious"
