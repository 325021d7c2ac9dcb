"""What is searched: the table, the user's own file, and what is refused."""

import pytest
import yaml

from gatas.errors import ConfigError
from gatas.training import Config
from gatas.training.loop import make_model
from gatas.tuning.space import TABLE, Facts, default_space
from gatas.tuning.tuning import chosen_space, described_space
from gatas.tuning.values import Choices, Range, parsed_space, read_space
from tests.tasks.toys import SMALL, camps, likes

NODES = Config.model_validate({"model": SMALL, "training": {"epochs": 2, "batch_size": 5}})
LINKS = Config.model_validate({"data": {"name": "kinship"}, "model": {"num_steps": 2}, "training": {"epochs": 2}})


def facts(dataset, config):
    return Facts.of(dataset, make_model(dataset, config, 0), config)


def test_every_row_of_the_table_is_a_setting_of_the_config():
    for row in TABLE:
        section, _, key = row.setting.partition(".")
        assert key in type(getattr(Config(), section)).model_fields, row.setting


def test_the_space_of_nodes_has_their_settings_and_the_configs_own_values():
    space = default_space(facts(camps(), NODES))
    assert {"model.dropout", "model.input_noise", "model.head_size", "training.learning_rate", "training.l2"} <= set(space)
    assert {"model.skip_connection", "model.label_inputs"} <= set(space)
    assert "model.vector_size" not in space and "training.n3" not in space
    assert space["model.head_size"] == Choices((4, 16, 32, 64, 128)) and space["training.batch_size"] == Choices((5,))
    assert space["model.node_embedding_size"] == Choices((0, 16, 64))  # by default there are none where all have features


def test_the_space_of_links_follows_from_how_they_are_scored():
    by_parts = default_space(facts(likes(), LINKS.with_settings({"model.link_score": ["vectors", "paths"]})))
    assert {"model.vector_size", "training.n3", "training.num_negatives"} <= set(by_parts)
    assert "model.head_size" not in by_parts  # no part looks at neighbourhoods
    paper = LINKS.with_settings({"model.link_score": ["pair"], "training.loss": "binary"})
    by_pairs = default_space(facts(likes(), paper))
    assert {"model.pair_hidden_size", "model.head_size"} <= set(by_pairs) and "training.n3" not in by_pairs


def test_a_range_reaches_as_far_as_the_configs_own_value():
    config = NODES.with_settings({"model.dropout": 0.95, "training.learning_rate": 0.0001})
    space = default_space(facts(camps(), config))
    assert space["model.dropout"] == Range(0.0, 0.95) and space["training.learning_rate"] == Range(0.0001, 0.03, log=True)


def test_numbers_that_are_much_the_same_are_not_both_tried():
    assert Choices((32, 64, 128)).including(50) == Choices((32, 50, 128))
    assert Choices((0.0, 1e-5)).including(0.0) == Choices((0.0, 1e-5))


def test_drawn_numbers_have_few_digits_and_stay_inside():
    assert Range(0.0, 1.0).value(0.123456) == 0.123 and Range(0.0005, 0.03, log=True).value(0.00112345) == 0.00112
    assert Range(0.12345, 1.0).value(0.12346) == 0.12345 and Range(1, 9).value(7) == 7


def test_choices_may_be_lists():
    values, _ = parsed_space({"model": {"hidden_sizes": [[], [64], [64, 32]]}}, NODES)
    choices = values["model.hidden_sizes"]
    assert isinstance(choices, Choices) and choices.values == ((), (64,), (64, 32))
    assert choices.value(choices.nearest((64,))) == (64,)


def test_a_file_is_the_whole_space_unless_it_asks_for_defaults(tmp_path):
    content = {"model": {"dropout": {"low": 0.1, "high": 0.2}, "num_heads": 2}}
    path = tmp_path / "space.yaml"
    path.write_text(yaml.safe_dump(content))
    own = facts(camps(), NODES)
    alone = chosen_space(own, read_space(path))
    assert alone == {"model.dropout": Range(0.1, 0.2), "model.num_heads": Choices((2,))}
    assert chosen_space(own, {**content, "defaults": True}) == {**default_space(own), **alone}


def test_what_is_shown_reads_back():
    shown = yaml.safe_load(described_space(NODES, camps()))
    own = facts(camps(), NODES)
    assert chosen_space(own, shown) == default_space(own)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"modle": {}}, "the search space has 'modle'; expected model, training or defaults"),
        ({"data": {"seed": [1, 2]}}, "the search space has 'data'"),
        ({"model": {"dropuot": [0.1]}}, "there is no setting 'model.dropuot'. Did you mean 'dropout'"),
        ({"model": {"dropout": [0.1, 1.5]}}, "model.dropout is 1.5"),
        ({"model": {"dropout": {"low": 0.1}}}, r"model.dropout has {'low': 0.1}; expected a list of choices, or a range"),
        ({"model": {"dropout": {"low": 0.5, "high": 0.1}}}, "the range 0.5 to 0.1; expected low < high"),
        ({"training": {"l2": {"low": 0, "high": 0.1, "log": True}}}, "expected 0 < low < high, since log is true"),
        ({"training": {"l2": {"low": 0, "high": 0.1, "log": "yes"}}}, "log: 'yes'; expected true or false"),
        ({"model": {"num_heads": []}}, "expected one or more, all different"),
        ({"model": {"num_heads": [2, 2]}}, "expected one or more, all different"),
        ({"model": [1]}, "model of the search space is"),
        ({"defaults": "no"}, "defaults is 'no'"),
        ({}, "names no setting"),
    ],
)
def test_spaces_that_say_nothing_of_use_are_refused(content, message):
    with pytest.raises(ConfigError, match=message):
        parsed_space(content, NODES)


def test_files_that_are_no_yaml_are_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"there is no file .*none\.yaml; expected a YAML file of values to try, as .*--show-space"
    ):
        read_space(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(ConfigError, match="holds a list; expected sections model and training"):
        read_space(tmp_path / "list.yaml")
