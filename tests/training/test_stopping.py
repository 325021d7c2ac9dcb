from gatas.training.stopping import EarlyStopping


def test_each_model_stops_when_it_has_not_improved_for_a_while():
    stopping = EarlyStopping(num_models=2, patience=2, larger_is_better=True)
    reports = [[0.5, 0.1], [0.4, 0.2], [0.5, 0.2], [0.9, 0.3], [0.9, 0.3], [0.9, 0.2]]
    improved = [stopping.report(epoch, values) for epoch, values in enumerate(reports[:3])]
    assert improved == [[True, True], [False, True], [False, False]]
    assert stopping.last_epoch == [2, -1] and not stopping.done
    assert stopping.report(3, reports[3]) == [False, True]  # the first has stopped, so nothing is better for it
    assert [stopping.report(epoch, reports[epoch]) for epoch in (4, 5)] == [[False, False]] * 2
    assert (stopping.best, stopping.best_epoch, stopping.last_epoch) == ([0.5, 0.3], [0, 3], [2, 5]) and stopping.done


def test_a_loss_improves_by_becoming_smaller():
    stopping = EarlyStopping(num_models=1, patience=1, larger_is_better=False)
    assert [stopping.report(epoch, [loss])[0] for epoch, loss in enumerate((3.0, 2.0, 2.0))] == [True, True, False]
    assert stopping.done and stopping.best == [2.0]


def test_what_is_no_number_is_no_improvement():
    for larger in (True, False):
        stopping = EarlyStopping(num_models=1, patience=2, larger_is_better=larger)
        assert [stopping.report(epoch, [float("nan")])[0] for epoch in range(2)] == [False, False] and stopping.done
