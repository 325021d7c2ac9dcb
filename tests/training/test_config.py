"""A run as YAML: written and read back the same, and refused with the key that is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatas.errors import ConfigError
from gatas.tasks import ModelConfig
from gatas.tasks.config import checked
from gatas.training import Config, TrainingConfig, load_config
from gatas.training.config import parsed_setting

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
        ("training: {epochs: many}", r"training.epochs is 'many'; input should be a valid integer"),
        ("training: {learning_rate: .nan}", r"training.learning_rate is nan"),
        ("training: {monitor: f1}", r"training.monitor is 'f1'; input should be 'loss', 'metric', 'either' or 'both'"),
        ("model: {dropout: 1}", r"model.dropout is 1; input should be less than 1"),
        ("model: {hidden_sizes: [8, 0]}", r"model.hidden_sizes.1 is 0; input should be greater than 0"),
        ("model: {num_steps: 0, sample_size: -1}", r"num_steps is 0; .*\. model.sample_size is -1; "),
        ("model: 3", r"model is 3; "),
        ("- 1", r"holds a list; expected sections data, model, training"),
        ("", r"holds a NoneType; expected sections"),
        ("a: [", r"could not be read as YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_key(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as error:
        loaded(tmp_path, text)
    assert str(tmp_path / "config.yaml") in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"picture.yaml could not be read as YAML"):
        load_config(tmp_path / "picture.yaml")


def test_what_a_file_leaves_out_is_as_usual(tmp_path):
    assert loaded(tmp_path, "training: {epochs: 7}") == Config(training=TrainingConfig(epochs=7))


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
    assert config == Config(model=ModelConfig(num_steps=2), training=TrainingConfig(learning_rate=0.001))
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
