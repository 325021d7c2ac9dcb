"""`fit` begins with weights of its own, and never silently writes over those that a caller set."""

import pytest
import torch

from gatas import TrainingError, fit, load
from tests.tasks.toys import camps, classifier


def trained(model, dataset, **settings):
    return fit(model, dataset, seed=1, device="cpu", epochs=1, batch_size=5, **settings)


def weights(model):
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def dataset():
    return camps()


@pytest.fixture(scope="module")
def fresh(dataset):
    """The weights of a run whose model was made for it."""
    return weights(trained(classifier(dataset, seed=7), dataset).model)


def test_a_fresh_model_begins_with_the_seed_of_the_fit(dataset, fresh):
    assert same(weights(trained(classifier(dataset), dataset).model), fresh)


def test_a_second_fit_draws_weights_anew(dataset, fresh):
    model = classifier(dataset)
    trained(model, dataset, learning_rate=0.05)
    assert same(weights(trained(model, dataset).model), fresh)


def test_a_fit_after_one_that_failed_draws_weights_anew(dataset, fresh):
    model = classifier(dataset)
    with pytest.raises(TrainingError, match="Try a smaller learning_rate"):
        trained(model, dataset, learning_rate=1e30, max_norm=None)
    assert same(weights(trained(model, dataset).model), fresh)


def test_a_fit_after_one_that_was_cut_short_draws_weights_anew(dataset, fresh):
    model = classifier(dataset)

    def end(entry):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fit(model, dataset, seed=4, device="cpu", epochs=3, batch_size=5, report=end)
    assert same(weights(trained(model, dataset).model), fresh)


def loaded_weights(model, dataset):
    model.load_state_dict(classifier(dataset, seed=9).state_dict())


def changed_in_place(model, dataset):
    with torch.no_grad():
        model.head.output.bias.add_(1)


def trained_then_changed(model, dataset):
    trained(model, dataset)
    changed_in_place(model, dataset)


BY_HAND = [loaded_weights, changed_in_place, trained_then_changed]


@pytest.mark.parametrize("change", BY_HAND)
def test_weights_that_were_set_by_hand_are_not_overwritten_unasked(dataset, change):
    model = classifier(dataset)
    change(model, dataset)
    before = weights(model)
    with pytest.raises(TrainingError, match=r"set by hand. Pass warm_start=True .* or warm_start=False") as error:
        trained(model, dataset)
    assert same(before, weights(model)) and "\n" not in str(error.value)


def test_the_weights_of_a_folder_are_not_overwritten_unasked(dataset, tmp_path):
    trained(classifier(dataset), dataset).save(tmp_path / "run")
    predictor = load(tmp_path / "run")
    with pytest.raises(TrainingError, match="warm_start"):
        trained(predictor.model, predictor.dataset)


@pytest.mark.parametrize("change", BY_HAND)
def test_a_warm_start_begins_with_them_and_a_cold_one_does_not(dataset, fresh, change):
    model, other = classifier(dataset), classifier(dataset)
    change(model, dataset)
    other.load_state_dict(model.state_dict())
    warm = trained(model, dataset, warm_start=True, learning_rate=1e-30)  # so that nothing is learned
    for name, tensor in weights(warm.model).items():
        torch.testing.assert_close(tensor, dict(other.named_parameters())[name])
    assert same(weights(trained(other, dataset, warm_start=False).model), fresh)
