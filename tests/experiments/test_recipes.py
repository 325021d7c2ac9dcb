"""Recipes: every one is a config, and those of the paper hold the numbers of its Table 5."""

import pytest

from gatas.errors import ConfigError
from gatas.experiments.recipes import names, recipe
from gatas.training import load_config

#                          transductive  inductive  links
TABLE_5 = {
    "model.num_steps":               (3, 3, 2),
    "model.sample_size":             (100, 500, 100),
    "model.hidden_size":             (50, 50, None),
    "model.neighbour_size":          (50, 50, 50),
    "model.head_size":               (50, 50, 50),
    "model.node_embedding_size":     (10, 0, 50),
    "model.relation_embedding_size": (10, 5, 50),
    "model.num_heads":               (8, 10, 10),
    "model.input_noise":             (0.9, 0, 0),
    "model.dropout":                 (0.5, 0, 0),
    "training.l2":                   (0.05, 0, 0),
    "training.learning_rate":        (0.001, 0.001, 0.001),
    "training.epochs":               (1000, 1000, 1000),
    "training.patience":             (100, 10, 5),
    "training.batch_size":           (5000, 100, 200),
}  # fmt: skip
COLUMNS = {"cora": 0, "citeseer": 0, "pubmed": 0, "ppi": 1, "twitter": 2, "youtube": 2, "youtube-lite": 2}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_papers_recipes_hold_table_5(name):
    config = recipe(name).model_dump()
    assert config["data"]["name"] == name
    for setting, columns in TABLE_5.items():
        section, key = setting.split(".")
        expected = columns[COLUMNS[name]]
        assert expected is None or config[section][key] == expected, setting


def test_the_papers_recipes_are_the_paper():
    assert recipe("ppi").model.hidden_sizes == (256, 256) and recipe("cora").model.hidden_sizes == ()
    assert recipe("twitter").model.exclude_targets is False and recipe("twitter").training.negatives == "once"
    for name in COLUMNS:
        config = recipe(name)
        assert (config.model.transition_kind, config.model.path_attention, config.model.ablation) == ("walk", "linear", "none")
        assert (config.training.max_norm, config.training.evaluation_mode) == (5, "sample")


@pytest.mark.parametrize("name", names())
def test_every_recipe_can_be_written_down_and_read_again(name, tmp_path):
    (tmp_path / "config.yaml").write_text(recipe(name).to_yaml())
    assert load_config(tmp_path / "config.yaml") == recipe(name)


def test_variants_differ_in_what_they_are_named_for():
    assert recipe("pubmed-500") == recipe("pubmed").with_settings({"model.sample_size": 500})
    assert recipe("cora-without_paths") == recipe("cora").with_settings({"model.ablation": "without_paths"})
    assert recipe("youtube-lite").data.name == "youtube-lite"
    assert "ppi-without_embeddings" not in names()  # it has none to begin with


def test_an_unknown_recipe_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"there is no recipe 'corra'\. Did you mean cora"):
        recipe("corra")
