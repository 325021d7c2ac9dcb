"""`gatas demo`, with less to learn than a person would want."""

import pytest

from gatas.experiments import recipes


@pytest.fixture
def quick(monkeypatch):
    """Recipes cut down to an epoch or two."""
    full = recipes.recipe
    few = {
        "model.num_steps": 2,
        "model.sample_size": 5,
        "model.num_heads": 1,
        "training.epochs": 2,
        "training.batch_size": 2000,
    }
    monkeypatch.setattr(recipes, "recipe", lambda name: full(name).with_settings(few))


def test_the_demo_needs_nothing_and_shows_what_answers_rest_on(gatas, tmp_path, quick):
    code, out, err = gatas("demo", "--out", tmp_path / "demo")
    assert code == 0 and "epoch 2/2" in err
    assert "Test accuracy: " in out and "Test ROC-AUC, mean of the four relations: 0." in out
    assert "Candidates of image 42" in out and "alike⁻¹ → alike" in out
    assert "The model says" in out and "parent → parent" in out and "Depth q: itself" in out
    pictures = ("neighbourhood.png", "digits/node-42.png", "digits/curve.png", "digits/depth.png", "kinship/curve.png")
    for picture in pictures:
        assert (tmp_path / "demo" / picture).read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "demo" / "kinship" / "depth.png").exists()  # links told by paths learn no depth


@pytest.mark.long
def test_the_demo_can_be_repeated_into_the_same_folder(gatas, tmp_path, quick):
    assert gatas("demo", "--out", tmp_path)[0] == 0
    code, out, _ = gatas("demo", "--out", tmp_path)
    assert code == 0 and "All in" in out
