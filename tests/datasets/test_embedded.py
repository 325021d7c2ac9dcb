"""The embedded data sets: the same wherever they are made, and true."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from gatas.datasets import kinship, load_dataset
from gatas.datasets.digits import read_images
from gatas.errors import DatasetError
from gatas.graph.saved import graph_fingerprint


@pytest.fixture(scope="module")
def families():
    return kinship.grow(80, 5, np.random.default_rng(0))


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("kinship")


def triplets(graph):
    names = graph.edge_type_names
    ends = zip(graph.source.tolist(), graph.edge_type.tolist(), graph.neighbour.tolist(), strict=True)
    return {(one, names[kind], other) for one, kind, other in ends}


@pytest.mark.parametrize("name", ["digits", "kinship"])
def test_an_embedded_set_is_the_same_every_time(name):
    first, second = load_dataset(name), load_dataset(name)
    assert graph_fingerprint(first.graph) == graph_fingerprint(second.graph)
    for split in first.splits:
        columns = ("source", "edge_type", "target", "label") if name == "kinship" else ("real",)
        for column in columns:
            assert (getattr(first.splits[split], column) == getattr(second.splits[split], column)).all()


@pytest.mark.parametrize(
    ("name", "inverse_of", "expected"),
    [
        ("digits", (1, 0), "962988a7ac76b5a61d20b05494f077b6f63e3d712b8226817c023093f36ab0ab"),
        ("kinship", (1, 0, 2, 3), "5fd69b06c5952f62cb00988a3313bf611206aac6b9c3a3e41b710145b363397c"),
    ],
)
def test_the_edges_of_an_embedded_set_are_those_of_gatas_0_1_to_the_bit_and_inverses_are_known(name, inverse_of, expected):
    graph = load_dataset(name).graph
    assert [array.dtype.name for array in (graph.indptr, graph.neighbour, graph.edge_type)] == ["int64", "int32", "int16"]
    found = hashlib.sha256(b"".join(array.tobytes() for array in (graph.indptr, graph.neighbour, graph.edge_type)))
    assert found.hexdigest() == expected and graph.weight is None
    assert graph.inverse_of == inverse_of


def test_digits_are_1797_images_with_ten_labels_per_class():
    digits = load_dataset("digits")
    assert (digits.graph.num_nodes, digits.graph.num_edges, digits.graph.edge_type_names) == (
        1797,
        2 * 7 * 1797,
        ("alike", "alike⁻¹"),
    )
    assert digits.task == "node classification" and digits.names == tuple("0123456789")
    assert {name: len(split) for name, split in digits.splits.items()} == {"train": 100, "valid": 300, "test": 1397}
    assert isinstance(digits.features, np.ndarray)
    assert np.bincount(digits.node_targets.labels[digits.splits["train"]]).tolist() == [10] * 10
    assert digits.features.shape == (1797, 64) and digits.features.min() == 0 and digits.features.max() == 1
    assert not (digits.graph.source == digits.graph.neighbour).any()


def test_digits_are_the_images_of_scikit_learn():
    from sklearn.datasets import load_digits

    pixels, labels = read_images()
    assert np.array_equal(pixels, load_digits().data) and np.array_equal(labels, load_digits().target)
    assert load_dataset("digits").names == tuple(map(str, load_digits().target_names))


def test_digits_are_read_without_scikit_learn():
    code = "import sys; from gatas.datasets import load_dataset; load_dataset('digits'); print('sklearn' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_of_digits_that_are_alike_alike_the_first_are_neighbours():
    dataset = load_dataset("digits")
    digits, pixels = dataset.graph, (np.asarray(dataset.features) * 16).round().astype(int)
    for node in (0, 42, 1796):
        distance = np.square(pixels - pixels[node]).sum(1)
        order = sorted(set(range(len(pixels))) - {node}, key=lambda other: (distance[other], other))
        own = digits.neighbour[(digits.source == node) & (digits.edge_type == 0)]
        assert sorted(own.tolist()) == sorted(order[:7])


def test_kinship_has_about_a_thousand_people_with_names(dataset):
    assert (dataset.graph.num_nodes, dataset.graph.num_edges) == (985, 4942)
    assert dataset.graph.edge_type_names == ("parent", "child", "spouse", "sibling")
    assert dataset.names == ("grandparent", "uncle or aunt", "cousin", "parent-in-law")
    assert dataset.graph.index_of(dataset.graph.id_of(17)) == 17


def test_links_and_only_links_follow_from_the_complete_tree(dataset, families):
    for pairs in dataset.splits.values():
        for source, kind, target, label in zip(pairs.source, pairs.edge_type, pairs.target, pairs.label, strict=True):
            assert (target in kinship.links(families, dataset.names[kind], source)) == bool(label)
            assert source != target


def test_every_link_of_the_tree_is_asked_once(dataset, families):
    asked = [
        (source, kind, target)
        for pairs in dataset.splits.values()
        for source, kind, target, label in zip(pairs.source, pairs.edge_type, pairs.target, pairs.label, strict=True)
        if label
    ]
    expected = {
        (person, kind, other)
        for kind, relation in enumerate(dataset.names)
        for person in range(dataset.graph.num_nodes)
        for other in kinship.links(families, relation, person)
    }
    assert len(asked) == len(set(asked)) and set(asked) == expected


def test_relations_are_what_their_names_say():
    #   0 ═ 1      2 ═ 3
    #   ├── 4 ═════ 5        8 ═ 6
    #   └── 6                  7: child of 8 and 6
    families = kinship.Families()
    people = [families.born(0, None) for _ in range(4)]
    families.marry(0, 1)
    families.marry(2, 3)
    people += [families.born(1, (0, 1)), families.born(1, (2, 3)), families.born(1, (0, 1))]
    families.marry(4, 5)
    seven = families.born(2, (4, 5))
    eight = families.born(1, None)
    families.marry(6, eight)
    nine = families.born(2, (6, eight))
    assert kinship.links(families, "grandparent", seven) == {0, 1, 2, 3}
    assert kinship.links(families, "uncle or aunt", seven) == {6}
    assert kinship.links(families, "cousin", seven) == {nine} and kinship.links(families, "cousin", nine) == {seven}
    assert kinship.links(families, "parent-in-law", 4) == {2, 3} and kinship.links(families, "parent-in-law", seven) == set()


def test_every_split_asks_for_every_type_as_often_true_as_false(dataset):
    shares = {}
    for name, pairs in dataset.splits.items():
        assert set(pairs.edge_type.tolist()) == {0, 1, 2, 3}
        assert pairs.label.mean() == 0.5
        shares[name] = len(pairs)
    total = sum(shares.values())
    assert [round(count / total, 2) for count in shares.values()] == [0.7, 0.1, 0.2]


def test_known_facts_are_true_and_a_tenth_of_them_is_missing(dataset, families):
    people = range(dataset.graph.num_nodes)
    complete = {
        *((person, "parent", parent) for person in people for parent in families.parents_of(person)),
        *((parent, "child", person) for person in people for parent in families.parents_of(person)),
        *((one, "spouse", other) for one, other in families.spouse.items()),
        *((one, "sibling", other) for one in people for other in families.siblings(one)),
    }
    known = triplets(dataset.graph)
    assert known < complete
    assert 0.87 < len(known) / len(complete) < 0.93


def test_a_missing_fact_is_missing_in_both_directions(dataset):
    known = triplets(dataset.graph)
    back = {"parent": "child", "child": "parent", "spouse": "spouse", "sibling": "sibling"}
    assert all((other, back[kind], one) in known for one, kind, other in known)


def test_nobody_marries_a_sibling_or_a_cousin(families):
    for one, other in families.spouse.items():
        assert other not in families.siblings(one) and other not in kinship.links(families, "cousin", one)


def test_no_answer_leaks(dataset):
    dataset.check_leaks(strict=True)


def test_another_seed_gives_other_families():
    assert graph_fingerprint(kinship.generate(seed=1).graph) != graph_fingerprint(kinship.generate(seed=2).graph)


def test_nothing_is_missing_when_nothing_should_be():
    families = kinship.grow(10, 4, np.random.default_rng(3))
    graph = kinship.generate(num_couples=10, num_generations=4, missing=0.0, seed=3).graph
    assert sum(kind == "parent" for _, kind, _ in triplets(graph)) == sum(
        len(families.parents_of(p)) for p in range(graph.num_nodes)
    )


@pytest.mark.parametrize("options", [{"num_couples": 1}, {"num_generations": 2}, {"missing": 1.0}, {"missing": -0.1}])
def test_families_too_small_to_ask_about_are_refused(options):
    with pytest.raises(DatasetError, match="expected at least 2 couples, 3 generations"):
        kinship.generate(**options)
