"""Links held out of own tables: nothing in the graph gives them away, and no negative is a link of any split."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from gatas.datasets import Dataset, Pairs, read_dataset
from gatas.datasets.held_out import shares_both_ways, some_go_both_ways
from gatas.errors import GatasError, GatasWarning, GraphError
from gatas.graph import Graph
from gatas.tasks import LinkTask

LINKS: dict[str, Any] = {"task": "link prediction"}


@pytest.fixture
def edges(tmp_path):
    """Write an edge table of text."""

    def write(text, name="edges.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def random_edges(size=300, nodes=60, seed=0):
    """Repeated, reversed and self edges of two types, on purpose."""
    generator = np.random.default_rng(seed)
    rows = [f"n{a},n{b},{kind}" for a, b, kind in zip(*generator.integers(nodes, size=(2, size)), "xy" * size, strict=False)]
    rows += [f"n{b},n{a},{kind}" for a, b, kind in (row.replace("n", "").split(",") for row in rows[:80])] + rows[40:120]
    return "source,target,type\n" + "\n".join(rows) + "\n"


def known(graph):
    """Edges as (id, type, id), inverse types turned round."""
    names = graph.edge_type_names
    found = set()
    for a, kind, b in zip(graph.source, graph.edge_type, graph.neighbour, strict=True):
        name, back = names[kind].removesuffix("⁻¹"), names[kind].endswith("⁻¹")
        found.add((b, name, a) if back else (a, name, b))
    return found


def asked(dataset, split, label=1):
    pairs = dataset.splits[split]
    rows = zip(pairs.source, pairs.edge_type, pairs.target, pairs.label, strict=True)
    return [(a, dataset.names[kind], b) for a, kind, b, own in rows if own == label]


@pytest.mark.parametrize("direction", ["inverse", "undirected", "as given"])
@pytest.mark.parametrize("link_types", [None, ["x"]])
def test_held_out_links_are_gone_from_the_graph_in_both_directions(edges, direction, link_types):
    path = edges(random_edges())
    dataset = read_dataset(path, **LINKS, direction=direction, link_types=link_types)
    whole = known(read_dataset(path, **LINKS, direction=direction, ratios={"train": 1, "valid": 0, "test": 0}).graph)
    graph = known(dataset.graph)
    held = [link for split in ("valid", "test") for link in asked(dataset, split)]
    assert len(held) > 20 and len(set(held)) == len(held)
    for a, kind, b in held:
        assert (a, kind, b) in whole and a != b
        assert (a, kind, b) not in graph and (b, kind, a) not in graph
    gone = {(a, kind, b) for a, kind, b in whole if (a, kind, b) in held or (b, kind, a) in held}
    assert graph == whole - gone  # and nothing else
    assert set(asked(dataset, "train")) <= graph
    dataset.check_leaks(strict=True)


@pytest.mark.parametrize("direction", ["inverse", "undirected"])
def test_negatives_are_links_of_no_split_in_no_direction(edges, direction):
    dataset = read_dataset(edges(random_edges()), **LINKS, direction=direction)
    links = known(dataset.graph) | {link for split in dataset.splits for link in asked(dataset, split)}
    for split in ("valid", "test"):
        negatives = asked(dataset, split, label=0)
        assert len(negatives) == len(asked(dataset, split))
        assert all((a, kind, b) not in links and (b, kind, a) not in links and a != b for a, kind, b in negatives)


def test_each_link_of_an_undirected_graph_is_asked_for_once(edges):
    dataset = read_dataset(edges("source,target\na,b\nb,a\nb,c\nc,d\nd,e\n"), **LINKS, direction="undirected",
                           ratios={"train": 1, "valid": 0, "test": 0})  # fmt: skip
    assert asked(dataset, "train") == [(0, "link", 1), (1, "link", 2), (2, "link", 3), (3, "link", 4)]


def test_shares_hold_for_every_type_and_are_a_function_of_the_seed(edges):
    path = edges(random_edges(2000, 200))
    one, same, other = (read_dataset(path, **LINKS, seed=seed) for seed in (0, 0, 1))
    for kind in "xy":
        counts = [sum(name == kind for _, name, _ in asked(one, split)) for split in ("train", "valid", "test")]
        assert np.array(counts) / sum(counts) == approx([0.8, 0.1, 0.1], abs=0.02)
    for split in one.splits:
        assert all(
            (getattr(one.splits[split], name) == getattr(same.splits[split], name)).all() for name in ("source", "target")
        )
    assert asked(one, "test") != asked(other, "test")


def test_links_that_ratios_leave_stay_in_the_graph_and_are_not_asked_for(edges):
    dataset = read_dataset(edges(random_edges(1000, 100)), **LINKS, ratios={"train": 0.2, "valid": 0.1, "test": 0.1})
    assert len(asked(dataset, "train")) < 0.3 * len(known(dataset.graph))


def test_a_column_says_what_is_held_out_and_repeats_go_with_it(edges):
    text = "source,target,split\na,b,train\nb,c,test\nc,b,train\nb,c,\nc,d,valid\nd,a,train\na,c,\nd,e,train\n"
    with pytest.warns(GatasWarning, match="2 edges repeat links of valid or test, in either direction"):
        dataset = read_dataset(edges(text), **LINKS)
    assert asked(dataset, "test") == [(1, "link", 2)] and asked(dataset, "valid") == [(2, "link", 3)]
    assert asked(dataset, "train") == [(0, "link", 1), (3, "link", 0), (3, "link", 4)]
    assert known(dataset.graph) == {(0, "link", 1), (3, "link", 0), (0, "link", 2), (3, "link", 4)}


def test_files_of_pairs_say_what_is_asked_for(edges):
    path = edges("source,target,type\na,b,x\nb,c,x\nc,d,x\nd,e,y\n")
    test = edges("source,target,type,label\nc,b,x,1\na,e,x,0\n", "test.csv")
    valid = edges("source,target,type\na,d,x\n", "valid.csv")
    with pytest.warns(GatasWarning, match="1 edge repeats links of valid or test"):
        dataset = read_dataset(path, **LINKS, pairs={"valid": valid, "test": test})
    assert dataset.names == ("x",) and known(dataset.graph) == {(0, "x", 1), (2, "x", 3), (3, "y", 4)}
    assert asked(dataset, "train") == [(0, "x", 1), (2, "x", 3)]
    assert asked(dataset, "test") == [(2, "x", 1)] and asked(dataset, "test", 0) == [(0, "x", 4)]
    assert asked(dataset, "valid") == [(0, "x", 3)] and len(asked(dataset, "valid", 0)) == 1  # drawn


def test_types_that_no_edge_has_can_be_asked_for_by_files(edges):
    path = edges("source,target,type\na,b,parent\nb,c,parent\nc,d,parent\n")
    train = edges("source,target,type\na,c,elder\n", "train.csv")
    test = edges("source,target,type\nb,d,elder\n", "test.csv")
    dataset = read_dataset(path, **LINKS, pairs={"train": train, "test": test})
    assert dataset.names == ("elder",) and dataset.graph.num_edges == 6 and asked(dataset, "train") == [(0, "elder", 2)]


SHOP = "source,target,type\n" + "".join(f"c{k % 20},p{k * 7 % 30},buys\n" for k in range(150)) + "p1,p2,near\n"


def test_negatives_of_held_out_links_are_of_nodes_that_such_links_join(edges):
    dataset = read_dataset(edges(SHOP), **LINKS, link_types="buys")
    names = dataset.graph.node_ids
    assert names is not None
    negatives = [pair for split in ("valid", "test") for pair in asked(dataset, split, label=0)]
    assert all(str(names[a]).startswith("c") and str(names[b]).startswith("p") for a, _, b in negatives)


def test_training_negatives_are_of_the_node_types_that_such_links_join(edges):
    nodes = edges("id,type\n" + "".join(f"c{k},customer\n" for k in range(20)) + "".join(f"p{k},product\n" for k in range(35)),
                  "nodes.csv")  # fmt: skip
    dataset = read_dataset(edges(SHOP), nodes, **LINKS, link_types="buys")
    drawn, names = LinkTask(dataset, 10).drawn_negatives(np.random.default_rng(0)), dataset.graph.node_ids
    assert names is not None
    assert all(str(names[node]).startswith("c") for node in drawn["source"])
    assert all(str(names[node]).startswith("p") for node in drawn["target"])


def test_training_negatives_are_any_nodes_where_nodes_have_no_types(edges):
    path = edges("source,target\n" + "".join(f"c{k},p{k}\n" for k in range(8)))
    nodes = edges("id\n" + "".join(f"c{k}\np{k}\n" for k in range(20)), "nodes.csv")
    dataset = read_dataset(path, nodes, **LINKS, ratios={"train": 1, "valid": 0, "test": 0})
    task = LinkTask(dataset, 10)
    drawn = [task.drawn_negatives(np.random.default_rng(k)) for k in range(60)]
    for end in ("source", "target"):
        assert {int(node) for one in drawn for node in one[end]} == set(range(40))


def test_what_only_held_out_pairs_name_is_a_node_without_edges(edges):
    path = edges("source,target\na,c\nc,d\n")
    valid, test = edges("source,target\na,b\n", "valid.csv"), edges("source,target,label\nx,b,1\nc,y,0\n", "test.csv")
    with pytest.warns(GatasWarning, match=r"only the pairs of valid or test name 3 nodes \(the first is 'b'\)"):
        dataset = read_dataset(path, **LINKS, pairs={"valid": valid, "test": test})
    graph = dataset.graph
    assert [graph.id_of(node) for node in range(graph.num_nodes)] == ["a", "b", "c", "d", "x", "y"]
    assert np.diff(graph.indptr).tolist() == [1, 0, 2, 1, 0, 0]
    assert asked(dataset, "test") == [(4, "link", 1)] and asked(dataset, "test", 0) == [(2, "link", 5)]


def test_what_only_held_out_edges_of_a_split_column_name_is_a_node_without_edges(edges):
    with pytest.warns(GatasWarning, match=r"only the pairs of valid or test name 1 node \(the first is 'b'\)"):
        dataset = read_dataset(edges("source,target,split\na,c,train\nc,d,train\na,b,test\n"), **LINKS)
    assert np.diff(dataset.graph.indptr).tolist() == [1, 0, 2, 1] and asked(dataset, "test") == [(0, "link", 1)]


UNLISTED = r"only the pairs of valid or test name 2 nodes \(the first is 'b'\); the node table does not have them"


@pytest.mark.parametrize(
    ("table", "more", "rows"),
    [
        ("id\na\nc\nd\n", {}, None),
        ("id,age\na,1\nc,2\nd,3\n", {"missing": "fill", "encode": {"age": "unscaled"}}, [1, 2, 3, 2, 2]),
        ("id,town\na,rome\nc,oslo\nd,\n", {"missing": "fill", "features": ["town"]}, [[0, 1], [1, 0], [0, 0], [0, 0], [0, 0]]),
    ],
)
def test_what_only_held_out_pairs_name_is_a_node_although_the_node_table_lacks_it(edges, table, more, rows):
    path, nodes = edges("source,target\na,c\nc,d\n"), edges(table, "nodes.csv")
    test = edges("source,target\nx,b\n", "test.csv")
    with pytest.warns(GatasWarning, match=UNLISTED):
        dataset = read_dataset(path, nodes, **LINKS, pairs={"test": test}, **more)
    graph = dataset.graph
    assert [graph.id_of(node) for node in range(graph.num_nodes)] == ["a", "c", "d", "b", "x"]
    assert np.diff(graph.indptr).tolist() == [1, 2, 1, 0, 0] and asked(dataset, "test") == [(4, "link", 3)]
    if rows is None:
        assert dataset.features is None
    else:
        assert dataset.features == approx(np.array(rows, np.float32).reshape(5, -1))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id,age\na,1\nc,2\nd,3\n", r"test.csv, row 1, column 'target': there is no node 'b' in .*, so it has no features. "
         r"Add the node, set data.missing: fill .*, set data.features: \[\], or remove"),
        ("id,type\na,p\nc,p\nd,q\n", "which says of what type each node is. Add the node with its type, or remove the link"),
    ],
)  # fmt: skip
def test_what_a_node_table_would_have_to_say_more_of_is_refused(edges, table, message):
    path, nodes = edges("source,target\na,c\nc,d\n"), edges(table, "nodes.csv")
    with pytest.raises(GraphError, match=message):
        read_dataset(path, nodes, **LINKS, pairs={"test": edges("source,target\nx,b\n", "test.csv")})


def test_what_training_pairs_name_must_be_in_the_node_table(edges):
    path, nodes = edges("source,target\na,c\nc,d\n"), edges("id\na\nc\nd\n", "nodes.csv")
    files = {"train": edges("source,target\na,x\n", "train.csv"), "test": edges("source,target\na,d\n", "test.csv")}
    with pytest.raises(GraphError, match="there is no node 'x' in the graph, so it cannot be asked for"):
        read_dataset(path, nodes, **LINKS, pairs=files)


def test_numbers_of_pairs_are_found_in_a_node_table_of_numbers(edges):
    path, nodes = edges("source,target\n0,1\n1,3\n"), edges("id\n0\n1\n3\n", "nodes.csv")
    with pytest.warns(GatasWarning, match=r"name 1 node \(the first is 2\); the node table does not have them"):
        dataset = read_dataset(path, nodes, **LINKS, pairs={"test": edges("source,target\n0,2\n3,0\n", "test.csv")})
    assert asked(dataset, "test") == [(0, "link", 3), (2, "link", 0)]


def test_numbers_that_only_pairs_name_are_ids_as_numbers(edges):
    path, test = edges("source,target\n0,1\n1,3\n"), edges("source,target\n0,2\n", "test.csv")
    with pytest.warns(GatasWarning, match=r"name 1 node \(the first is 2\)"):
        dataset = read_dataset(path, **LINKS, pairs={"test": test})
    assert dataset.graph.node_ids is None and asked(dataset, "test") == [(0, "link", 2)]


def test_a_type_whose_ends_are_all_linked_has_negatives_of_any_nodes(edges):
    path = edges("source,target,type\n" + "".join(f"n{k},n{k * 7 % 30},x\n" for k in range(30)) + "n0,n1,rare\nn0,n2,rare\n")
    test = edges("source,target,type\nn0,n3,rare\nn5,n6,x\n", "test.csv")
    dataset = read_dataset(path, **LINKS, pairs={"test": test})
    links = known(dataset.graph) | {link for split in dataset.splits for link in asked(dataset, split)}
    negatives = asked(dataset, "test", label=0)
    assert [kind for _, kind, _ in negatives] == ["rare", "x"] and not links & set(negatives)


PUBLISHED = "source,target,type\na,b,spouse\nb,a,spouse\nb,c,spouse\nc,d,born\nd,c,born\nc,d,spouse\n"


def test_only_exact_repeats_leave_the_graph_where_reverses_are_kept(edges):
    path, test = edges(PUBLISHED), edges("source,target,type\na,b,spouse\nc,b,spouse\n", "test.csv")
    both = {(1, "spouse", 0), (1, "spouse", 2)}
    with pytest.warns(GatasWarning, match="3 edges repeat links of valid or test, in either direction, and were taken out"):
        without = read_dataset(path, **LINKS, direction="inverse", pairs={"test": test})
    with pytest.warns(GatasWarning, match="1 edge repeats links of valid or test and was taken out"):
        kept = read_dataset(path, **LINKS, direction="inverse", pairs={"test": test}, keep_reverse=True)
    assert known(kept.graph) == known(without.graph) | both
    assert set(asked(kept, "train")) == {(2, "spouse", 3)} | both
    kept.check_leaks(strict=True, directed=True)
    with pytest.raises(GraphError, match="2 links of 'test' are so in the other direction"):
        kept.check_leaks(strict=True)


def test_a_column_of_splits_and_ratios_keep_reverses_too(edges):
    path = edges("source,target,split\na,b,train\nb,a,test\nb,c,train\nc,d,train\n")
    dataset = read_dataset(path, **LINKS, keep_reverse=True)
    assert (0, "link", 1) in known(dataset.graph) and asked(dataset, "test") == [(1, "link", 0)]
    drawn = read_dataset(edges(random_edges()), **LINKS, keep_reverse=True)
    graph, held = known(drawn.graph), [link for split in ("valid", "test") for link in asked(drawn, split)]
    assert not graph & set(held) and any((b, kind, a) in graph for a, kind, b in held)
    drawn.check_leaks(strict=True, directed=True)


@pytest.mark.parametrize(("both_ways", "some"), [(0, False), (1, True), (45, True), (50, False)])
def test_some_links_go_both_ways_where_that_is_so_of_any_but_of_no_type_nearly_all(both_ways, some):
    there, back = (np.arange(50), np.arange(50) + 1), (np.arange(both_ways) + 1, np.arange(both_ways))
    source, target = np.concatenate([there, back], axis=1)
    pairs = Pairs(source, np.zeros(len(source), np.int64), target, np.ones(len(source), np.int8))
    assert shares_both_ways(pairs, 51) == approx([2 * both_ways / (50 + both_ways)])
    assert some_go_both_ways(shares_both_ways(pairs, 51)) is some
    symmetric = np.array([[3, 9], [9, 3]])
    source, target, kind = (
        np.append(one, two) for one, two in zip((source, target, pairs.edge_type), (*symmetric, [1, 1]), strict=True)
    )
    assert not some_go_both_ways(shares_both_ways(Pairs(source, kind, target, np.ones(len(source), np.int8)), 51))


def test_a_reverse_may_be_a_negative_where_reverses_are_kept(edges):
    text = "source,target\n" + "".join(f"{a},{b}\n" for a in range(6) for b in range(a + 1, 6))
    dataset = read_dataset(edges(text), **LINKS, direction="inverse", keep_reverse=True)
    assert all(a > b for split in ("valid", "test") for a, _, b in asked(dataset, split, label=0))
    with pytest.raises(GatasError, match="nearly all pairs of nodes are links"):
        read_dataset(edges(text), **LINKS, direction="inverse")


def test_reverses_of_undirected_links_cannot_be_kept(edges):
    path = edges("source,target\na,b\nb,a\n")
    with pytest.raises(GatasError, match="keep_reverse is for directed links"):
        read_dataset(path, **LINKS, keep_reverse=True, direction="undirected")


def test_links_listed_both_ways_are_directed_where_reverses_are_kept(edges):
    text = "source,target\n" + "".join(f"{a},{(a + 1) % 20}\n{(a + 1) % 20},{a}\n" for a in range(20))
    kept = read_dataset(edges(text), **LINKS, keep_reverse=True)
    assert kept.graph.num_relations == 3 and read_dataset(edges(text), **LINKS).graph.num_relations == 2  # with the self-loop


def test_negatives_may_be_any_nodes_of_the_types_that_such_links_join(edges):
    path = edges("source,target\n" + "".join(f"c{k},p{k}\n" for k in range(8)))
    nodes = edges("id,type\n" + "".join(f"c{k},customer\np{k},product\n" for k in range(40)), "nodes.csv")
    task = LinkTask(read_dataset(path, nodes, **LINKS, ratios={"train": 1, "valid": 0, "test": 0}), 10)
    targets = {
        task.dataset.graph.id_of(node) for k in range(50) for node in task.drawn_negatives(np.random.default_rng(k))["target"]
    }
    assert targets == {f"p{k}" for k in range(40)}


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("source,target\na,b\nb,c\n", {}, "the split 'valid' would be empty: a share of 0.1 of 2 links"),
        ("source,target\n", {}, "has no rows"),
        ("source,target\na,a\nb,b\n", {}, "has no edge to learn from|would be empty"),
        ("source,target,type\na,b,buys\n", {"link_types": ["buy"]}, "asks for 'buy', but .* Did you mean 'buys'"),
        ("source,target,split\na,b,test\n", {}, "has no edge to learn from"),
        ("source,target,split\na,b,tset\n", {}, "row 1, column 'split': 'tset' is not a split"),
        ("source,target\na,b\n", {"pairs": {"train": "{test}"}}, "a file for training alone"),
        ("source,target\na,b\n", {"pairs": {"test": "none.csv"}}, "none.csv does not exist"),
        ("source,target\na,c\n", {"pairs": {"train": "{test}", "test": "{known}"}},
         "test.csv, row 1, column 'target': there is no node 'b'"),
        ("source,target\na,c\n", {"nodes": "{nodes}", "pairs": {"test": "{test}"}},
         "test.csv, row 1, column 'target': there is no node 'b'"),
        ("source,target\na,b\n", {"pairs": {"test": "{blank}"}}, "blank.csv, row 1, column 'target': the id is ' c'"),
        ("source,target,type\na,b,x\nb,a,y\n", {"pairs": {"test": "{test}"}}, "has no column of types, while x, y are asked"),
        ("source,target,type\na,b,x\n", {"link_types": "x", "pairs": {"test": "{typed}"}}, "has pairs of type 'z', but only x"),
        ("source,target\na,b\n", {"pairs": {"test": "{wrong}"}}, "row 1, column 'label': the label is 2"),
        ("source,target\na,b\n", {"pairs": {"test": "{empty}"}}, "empty.csv has no rows"),
    ],
)  # fmt: skip
def test_links_that_cannot_be_asked_for_are_refused_in_one_line(edges, text, settings, message):
    files = {
        "test": edges("source,target\na,b\n", "test.csv"),
        "known": edges("source,target\nc,a\n", "known.csv"),
        "blank": edges("source,target\na, c\n", "blank.csv"),
        "nodes": edges("id,type\na,p\nc,p\n", "nodes.csv"),
        "typed": edges("source,target,type\na,b,z\n", "typed.csv"),
        "wrong": edges("source,target,label\na,b,2\n", "wrong.csv"),
        "empty": edges("source,target\n", "empty.csv"),
    }
    if "pairs" in settings:
        settings = settings | {"pairs": {split: name.format(**files) for split, name in settings["pairs"].items()}}
    if "nodes" in settings:
        settings = settings | {"nodes": settings["nodes"].format(**files)}
    with pytest.raises(GraphError, match=message) as error:
        read_dataset(edges(text), **LINKS, **settings)
    assert "\n" not in str(error.value)


def test_a_complete_graph_has_no_negatives(edges):
    text = "source,target\n" + "".join(f"{a},{b}\n" for a in range(6) for b in range(6) if a != b)
    with pytest.raises(GatasError, match="nearly all pairs of nodes are links"):
        read_dataset(edges(text), **LINKS)


def pairs(*rows):
    source, kind, target, label = np.array(rows).T
    return Pairs(source, kind, target, label)


def toy(undirected=False, **splits):
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=4, edge_type_names=["likes"], undirected=undirected)
    return Dataset.for_links(graph, splits, ["likes"], name="toy")


def test_a_link_whose_reverse_is_known_leaks_unless_links_are_directed():
    for splits in ({"test": pairs((1, 0, 0, 1))}, {"train": pairs((0, 0, 3, 1)), "test": pairs((3, 0, 0, 1))}):
        with pytest.raises(GraphError, match="1 link of 'test' is so in the other direction"):
            toy(**splits).check_leaks(strict=True)
        toy(**splits).check_leaks(strict=True, directed=True)


def test_of_a_symmetric_type_the_reverse_of_a_link_is_no_negative():
    splits = {"valid": pairs((0, 0, 3, 1)), "test": pairs((3, 0, 0, 0))}
    toy(**splits).check_leaks(strict=True)
    with pytest.raises(GraphError, match="1 negative of 'test' is a link"):
        toy(undirected=True, **splits).check_leaks(strict=True)


@given(seed=st.integers(0, 2**16), train=st.floats(0.3, 0.8))
def test_any_graph_is_split_without_leaks(tmp_path_factory, seed, train):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(random_edges(120, 40, seed))
    rest = (1 - train) / 2
    read_dataset(path, **LINKS, seed=seed, ratios={"train": train, "valid": rest, "test": rest}).check_leaks(strict=True)
