"""`load`: a predictor from the folder of a finished run."""

from pathlib import Path

from gatas.inference.predictor import Predictor
from gatas.nn.ablations import ABLATIONS
from gatas.sampling.sampler import Mode
from gatas.training.folder import read_run
from gatas.training.loop import chosen_device
from gatas.transitions import Nearby
from gatas.transitions.build import Walks
from gatas.transitions.table import Setting


def load(folder: str | Path, *, device: str = "auto", mode: Mode | None = None, draws: int | None = None) -> Predictor:
    """Return the predictor of a finished run.

    The folder holds all that is needed: no table of the user's is read again. Transitions are computed for the nodes that are
    asked for; `Predictor.prepare` computes those of all nodes at once.

    Args:
        folder: What `gatas train` or `Run.save` wrote, of one seed.
        device: `"cpu"`, `"cuda"`, or `"auto"` for what there is.
        mode: Which neighbours answers look at; as in the run's evaluation if left out.
        draws: Over how many drawn neighbourhoods answers are averaged; as in its evaluation if left out.
    """
    where, run = chosen_device(device), read_run(Path(folder))
    dataset, config = run.open_data(), run.config.model
    steps = ABLATIONS[config.ablation].transitions(config.num_steps)["num_steps"]
    walks = Walks(steps, config.transition_kind, config.max_candidates, config.max_degree, config.revisits)
    rows = Nearby(dataset.graph, Setting.made(walks, dataset.graph, fingerprint=""))
    model, training = run.make_model(dataset, rows).to(where), run.config.training
    return Predictor(model, dataset, mode=mode or training.evaluation_mode, draws=draws or training.evaluation_draws)
