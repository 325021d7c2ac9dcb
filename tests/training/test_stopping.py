from gatas.training.stopping import EarlyStopping, Score


def test_each_model_stops_when_it_has_not_improved_for_a_while():
    stopping = EarlyStopping(num_models=2, patience=2)
    columns = (0.5, 0.4, 0.5, 0.9, 0.9, 0.9), (0.1, 0.2, 0.2, 0.3, 0.3, 0.2)
    reports: list[dict[int, Score]] = [{0: (one,), 1: (other,)} for one, other in zip(*columns, strict=True)]
    improved = [stopping.report(epoch, scores) for epoch, scores in enumerate(reports[:3])]
    assert improved == [[True, True], [False, True], [False, False]]
    assert stopping.last_epoch == [2, -1] and not stopping.done
    assert stopping.report(3, reports[3]) == [False, True]  # the first has stopped, so nothing is better for it
    assert [stopping.report(epoch, reports[epoch]) for epoch in (4, 5)] == [[False, False]] * 2
    assert (stopping.best, stopping.best_epoch, stopping.last_epoch) == ([(0.5,), (0.3,)], [0, 3], [2, 5]) and stopping.done


def test_between_equals_the_later_numbers_decide():
    stopping = EarlyStopping(num_models=1, patience=1)
    scores: list[Score] = [(0.5, -2.0), (0.5, -1.0), (0.4, 0.0)]
    assert [stopping.report(epoch, {0: score})[0] for epoch, score in enumerate(scores)] == [True, True, False]


def test_what_is_no_number_is_no_improvement():
    stopping = EarlyStopping(num_models=1, patience=2)
    scores: list[Score] = [(float("nan"),), (float("nan"), 1.0)]
    assert [stopping.report(epoch, {0: score})[0] for epoch, score in enumerate(scores)] == [False, False] and stopping.done


def test_models_are_left_behind_when_half_of_those_at_work_have_stopped():
    stopping = EarlyStopping(num_models=5, patience=1)
    assert stopping.at_work == [0, 1, 2, 3, 4]
    for last_epoch, at_work in (
        ([7, -1, -1, 9, -1], [0, 1, 2, 3, 4]),  # two of five
        ([7, -1, -1, 9, 9], [1, 2]),
        ([7, -1, 12, 9, 9], [1]),
        ([7, -1, 9, 9, 9], [1]),
        ([3, 4, 5, -1, -1], [3, 4]),
    ):
        stopping.last_epoch = last_epoch
        assert stopping.at_work == at_work


def test_only_the_models_that_are_told_of_can_improve_or_stop():
    stopping = EarlyStopping(num_models=3, patience=1)
    stopping.report(0, {0: (0.5,), 1: (0.5,), 2: (0.5,)})
    assert stopping.report(1, {0: (0.4,), 2: (0.6,)}) == [False, True]
    assert stopping.last_epoch == [1, -1, -1] and stopping.best_epoch == [0, 0, 1]


def test_with_either_a_number_as_good_as_ever_keeps_a_model_going():
    #   accuracy   0.5   0.6   0.4   0.6   0.5   0.5        best: epoch 1, the loss decides against epoch 3
    #   −loss     −2.0  −1.0  −0.9  −1.5  −1.0  −1.0        as good as ever: epochs 0 to 3, so that 5 is the last
    scores: list[Score] = [(0.5, -2.0), (0.6, -1.0), (0.4, -0.9), (0.6, -1.5), (0.5, -1.0), (0.5, -1.0)]
    stopping, strict = EarlyStopping(1, patience=2, rule="either"), EarlyStopping(1, patience=2)
    for epoch, score in enumerate(scores):
        assert not stopping.done
        stopping.report(epoch, {0: score})
        strict.report(epoch, {0: score})
    assert (stopping.best_epoch, stopping.last_epoch) == ([1], [5])
    assert (strict.best_epoch, strict.last_epoch) == ([1], [3])
    assert stopping.waits_since(0) == 3 and strict.waits_since(0) == 1


def test_with_both_the_last_epoch_is_kept_whose_numbers_are_all_as_good_as_ever():
    #   accuracy   0.5   0.7   0.6   0.7   0.8
    #   −loss     −2.0  −1.0  −0.5  −0.5  −0.9        kept: epochs 0, 1 and 3; 4 has the best accuracy, but not the best loss
    scores: list[Score] = [(0.5, -2.0), (0.7, -1.0), (0.6, -0.5), (0.7, -0.5), (0.8, -0.9)]
    stopping = EarlyStopping(1, patience=2, rule="both")
    kept = [stopping.report(epoch, {0: score})[0] for epoch, score in enumerate(scores)]
    assert kept == [True, True, False, True, False]
    assert stopping.best_epoch == [3] and stopping.waits_since(0) == 4
