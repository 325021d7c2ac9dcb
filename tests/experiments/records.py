"""Results that were never run, to render tables of."""

from gatas.experiments.results import ResultRecord

SESSION = {"seeds": [0], "date": "2026-01-01", "hardware": "none"}


def record(model="gcn", data="camps", *, runs=(), sessions=(SESSION,), **more):
    """A result with what matters to a test."""
    given = [{"best_epoch": 0, **run} for run in runs]
    about = {"task": "node classification", "settings": {"data": {"name": data}}, **more}
    return ResultRecord.model_validate(
        {"model": model, "data": data, "runs": given, "sessions": [{**SESSION, **one} for one in sessions], **about}
    )
