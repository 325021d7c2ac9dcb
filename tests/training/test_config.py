"""A run as YAML: written and read back the same, and refused with the key that is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.datasets import LinkTableData, NamedData, NodeTableData, StoreData, load_dataset
from gatas.errors import ConfigError
from gatas.inference import fit, fit_many
from gatas.tasks import LinkPredictor, ModelConfig, NodeClassifier
from gatas.tasks.config import checked
from gatas.training import Config, TrainingConfig, load_config
from gatas.training.config import parsed_setting
from tests.tasks.toys import camps, likes

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=120)


@settings(max_examples=40)
@given(
    name=NAMES,
    learning_rate=st.floats(1e-12, 1e3),
    hidden_sizes=st.lists(st.integers(1, 999), max_size=30),
    candidates=st.none() | st.integers(1, 10**12),
    monitor=st.sampled_from(["loss", "metric"]),
    by_graph=st.booleans(),
)
def test_a_config_reads_back_as_it_was_written(
    tmp_path_factory, name, learning_rate, hidden_sizes, candidates, monitor, by_graph
):
    config = Config.model_validate(
        {
            "data": {"name": name},
            "model": {"hidden_sizes": hidden_sizes, "max_candidates": candidates},
            "training": {"learning_rate": learning_rate, "monitor": monitor, "by_graph": by_graph},
        }
    )
    path = tmp_path_factory.getbasetemp() / "config.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    assert load_config(path) == config


@pytest.mark.parametrize("name", ["a long name of my own data, " * 9, "yes", "3", "# none", "a: b", "…"])
def test_an_odd_name_reads_back_as_it_was_written(tmp_path, name):
    config = Config.model_validate({"data": {"name": name}})
    assert loaded(tmp_path, config.to_yaml()) == config


def test_every_setting_is_explained_where_it_is_written():
    lines = [line for line in Config().to_yaml().splitlines() if line.strip()]
    assert len(lines) == 3 + 1 + sum(len(type(part).model_fields) for part in (Config().model, Config().training))
    assert all("  # " in line for line in lines)


def loaded(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return load_config(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training: {learning_rat: 1}", r"there is no setting 'training.learning_rat'\. Did you mean 'learning_rate'\?"),
        ("model: {num_step: 1}", r"there is no setting 'model.num_step'\. Did you mean 'num_steps'\?"),
        ("modle: {}", r"there is no setting 'modle'\. Did you mean 'model'\?"),
        ("data: {xyz: 1}", r"there is no setting 'data.xyz'\. Known: name"),
        ("training: {epochs: 0}", r"training.epochs is 0; input should be greater than or equal to 1"),
        ("training: {epochs: many}", r"training.epochs is 'many'; expected a whole number\.$"),
        ("model: {num_steps: null}", r"model.num_steps: null came; expected a whole number from 1 on, or auto\.$"),
        ("training: {batch_size: null}", r"training.batch_size: null came; expected a whole number from 1 on, or auto\.$"),
        (
            "model: {max_degree: 0}",
            r"model.max_degree: 0 came; expected a whole number from 1 on, auto, or null for no limit\.$",
        ),
        ("data: {edges: e.csv, nodes: n.csv, label: {a: 1}}", r"data.label is {'a': 1}; expected a list\.$"),
        ("data: {edges: e.csv, nodes: n.csv, label: [1]}", r"data.label.0 is 1; expected text\.$"),
        (
            "data: {edges: e.csv, nodes: n.csv, ratios: [1, 2]}",
            r"data.ratios is \[1, 2\]; expected a value by name, as {train: …, valid",
        ),
        ("data: {edges: e.csv, nodes: n.csv, indices: {1: a}}", r"data.indices has the name 1; expected text\.$"),
        ("data: {edges: [1]}", r"data.edges is \[1\]; expected the path of a file\.$"),
        ("training: {calibrate: null}", r"training.calibrate is null; expected true or false\.$"),
        ("training: {learning_rate: .nan}", r"training.learning_rate is nan"),
        ("training: {monitor: f1}", r"training.monitor is 'f1'; input should be 'loss', 'metric', 'either' or 'both'"),
        ("model: {dropout: 1}", r"model.dropout is 1; input should be less than 1"),
        ("model: {hidden_sizes: [8, 0]}", r"model.hidden_sizes.1 is 0; input should be greater than 0"),
        ("model: {num_steps: 0, sample_size: -1}", r"num_steps: 0 came; expected .*, or auto\. model.sample_size is -1; "),
        ("- 1", r"holds a list; expected sections data, model, training"),
        ("", r"is empty; expected sections data, model, training"),
        ("data: [a, b]", r"data is \['a', 'b'\]; expected a section of settings, a line `key: value` for each\.$"),
        ("model: 3", r"model is 3; expected a section of settings"),
        ("a: [", r"could not be read as YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_key(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as error:
        loaded(tmp_path, text)
    assert str(tmp_path / "config.yaml") in str(error.value) and "\n" not in str(error.value)


OLD_NAMED = """
data: {name: cora, store: null, transitions: null, edges: null, nodes: null, task: node classification, source: source,
       target: target, edge_type: null, weight: null, direction: inverse, id: id, node_type: null, graph: null, features: null,
       categorical: [], standardise: true, missing: refuse, label: null, link_types: null, split: null,
       ratios: {train: 0.8, valid: 0.1, test: 0.1}, pairs: {train: null, valid: null, test: null}, seed: 0}
"""


@pytest.mark.parametrize(
    ("text", "kind", "task"),
    [
        ("data: {name: cora}", NamedData, "node classification"),
        ("data: {name: kinship}", NamedData, "link prediction"),
        ("training: {epochs: 1}", NamedData, "node classification"),
        (OLD_NAMED, NamedData, "node classification"),
        ("data: {store: s}", StoreData, "node classification"),
        ("data: {store: s, transitions: t, edges: null, label: null}", StoreData, "node classification"),
        ("data: {edges: e.csv, nodes: n.csv, store: null}", NodeTableData, "node classification"),
        (
            "data: {edges: e.csv, nodes: n.csv, task: node classification, link_types: null}",
            NodeTableData,
            "node classification",
        ),
        ("data: {edges: e.csv, task: link prediction, label: null, split_by: null}", LinkTableData, "link prediction"),
    ],
)
def test_data_is_of_the_kind_that_its_settings_describe_and_says_its_task(tmp_path, text, kind, task):
    config = loaded(tmp_path, text)
    assert type(config.data) is kind and config.data.task == task
    (tmp_path / "again.yaml").write_text(config.to_yaml())
    assert load_config(tmp_path / "again.yaml") == config == checked(Config, config.model_dump(mode="json"))
    written = config.to_yaml().split("\nmodel:")[0].splitlines()[1:]
    assert [line.split(":")[0].strip() for line in written] == list(config.data.written)
    assert not {"label", "split_by", "link_types", "pairs"} & set(config.data.written) - set(kind.model_fields)


@pytest.mark.parametrize("name", ["digits", "kinship"])
def test_named_data_says_the_task_of_the_data_set(name):
    assert NamedData(name=name).task == load_dataset(name).task


def test_a_setting_may_change_what_kind_of_data_is_meant():
    tables = Config().with_settings({"data.edges": "e.csv", "data.nodes": "n.csv"})
    assert isinstance(tables.data, NodeTableData) and tables.data.name == "digits"
    with pytest.raises(ConfigError, match="nodes belongs to own files, but there is no edge table"):
        Config().with_settings({"data.nodes": "n.csv"})
    links = checked(Config, {"data": {"edges": "e.csv", "nodes": "n.csv"}}).with_settings({"data.task": "link prediction"})
    assert isinstance(links.data, LinkTableData) and links.data.name == "e"


def test_files_are_found_below_a_folder_wherever_they_are_named(tmp_path):
    config = loaded(tmp_path, "data: {edges: e.csv, task: link prediction, pairs: {test: t.csv}}").data
    assert isinstance(config, LinkTableData) and (config.edges, config.nodes) == (tmp_path / "e.csv", None)
    assert (config.pairs.test, config.pairs.valid) == (tmp_path / "t.csv", None)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file .*none\.yaml; expected a YAML file of settings, as `gatas init`"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"could not be read as YAML \(\[Errno 21\] Is a directory"):
        load_config(tmp_path)
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"picture.yaml could not be read as YAML"):
        load_config(tmp_path / "picture.yaml")


def test_what_a_file_leaves_out_is_as_usual(tmp_path):
    assert loaded(tmp_path, "training: {epochs: 7}") == Config(training={"epochs": 7})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.epochs=200", ("training.epochs", 200)),
        ("model.hidden_sizes=[256, 256]", ("model.hidden_sizes", [256, 256])),
        ("model.max_candidates=null", ("model.max_candidates", None)),
        ("training.learning_rate = 1e-3", ("training.learning_rate", "1e-3")),  # text in YAML 1.1; checking makes it a number
        ("data.name=a=b", ("data.name", "a=b")),
    ],
)
def test_settings_are_read_from_a_command_line(text, expected):
    assert parsed_setting(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("training.epochs", "'training.epochs' sets nothing; expected section.key=value"), ("a.b=[1", "a.b is .* no YAML")],
)
def test_what_sets_nothing_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parsed_setting(text)


def test_settings_replace_single_values():
    config = Config().with_settings(dict([parsed_setting("training.learning_rate=1e-3"), parsed_setting("model.num_steps=2")]))
    assert config == Config(model={"num_steps": 2}, training={"learning_rate": 0.001})
    for wrong, message in [
        ("epochs", r"'epochs' names no setting; expected data\.…, model\.…, training\.…"),
        ("trainin.epochs", "'trainin.epochs' names no setting"),
        ("training.epoch", r"there is no setting 'training.epoch'\. Did you mean 'epochs'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            Config().with_settings({wrong: 3})


def test_settings_of_a_model_are_checked_where_it_is_made():
    with pytest.raises(ConfigError, match=r"there is no setting 'sample_sise'\. Did you mean 'sample_size'"):
        checked(ModelConfig, {"sample_sise": 3})


@pytest.mark.parametrize(("data", "make", "dataset"), [("digits", NodeClassifier, camps), ("kinship", LinkPredictor, likes)])
def test_defaults_are_the_same_wherever_they_are_reached_from(tmp_path, data, make, dataset):
    own = dataset()
    by_hand = make(own)
    by_name = Config.model_validate({"data": {"name": data}})
    assert by_name.model == loaded(tmp_path, f"data: {{name: {data}}}").model
    suited = by_name.for_data(own)
    assert by_hand.config == make(own, **suited.model.model_dump()).config  # with numbers in place of `auto`
    run = fit(by_hand, own, epochs=1, device="cpu")
    assert run.config.training == suited.training.model_copy(update={"epochs": 1})
    (by_config,) = fit_many(by_name.with_settings({"training.epochs": 1}), [0], dataset=own, device="cpu")
    assert by_config.config.model_copy(update={"data": run.config.data}) == run.config
    by_parts = Config.model_validate({"data": {"name": data}, "model": {"num_heads": 7}, "training": {"l2": 0.5}})
    assert by_parts.model == by_name.model.model_copy(update={"num_heads": 7})
    assert by_parts.training == by_name.training.model_copy(update={"l2": 0.5})


@pytest.mark.parametrize(
    ("asked", "count", "size"), [("auto", 30, 100), ("auto", 5216, 208), ("auto", 10**6, 1000), (7, 5216, 7)]
)
def test_batches_follow_from_what_there_is_to_learn(asked, count, size):
    assert TrainingConfig(batch_size=asked).batch_of(count, links=True) == size
    assert TrainingConfig(batch_size="auto").batch_of(17_776) == 355


@pytest.mark.parametrize("given", [["vectors", "foo"], "foo", 3, [["pair"]]])
def test_unknown_parts_of_links_are_refused(given):
    with pytest.raises(ConfigError, match=r"link_score: .* came; expected auto, or a list of some of pair, vectors"):
        checked(ModelConfig, {"link_score": given})


def test_a_single_part_of_links_needs_no_list():
    assert checked(ModelConfig, {"link_score": "vectors"}).link_score == ("vectors",)
    config = Config.model_validate({"data": {"name": "kinship"}, "model": {"link_score": "pair"}})
    assert config.model.link_score == ("pair",) and config.training.loss == "binary"
