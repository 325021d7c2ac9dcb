"""What an exported program takes and gives, in words: the JSON beside it."""

from importlib.metadata import version
from typing import Any, NamedTuple

from gatas import __version__
from gatas.inference.program_formats import TABLES
from gatas.inference.program_inputs import Arrays, ProgramSizes
from gatas.inference.trained import TrainedModel


class InputWords(NamedTuple):
    """What an array means, and how to fill it."""

    meaning: str
    fill: str


INPUTS = {
    "nodes": InputWords(
        "Index of each of the V nodes that the batch speaks of: targets and their neighbours.",
        "The place of each node's id in ids.parquet of the run's folder, counted from 0. Each node once, in any order. V may "
        "be another number in each batch.",
    ),
    "features": InputWords(
        "Features of the V nodes, a row each.",
        "As they were in training, after columns became numbers. The rows have the order of all other tables of V rows.",
    ),
    "labels": InputWords(
        "Known labels of the V nodes, a row each.",
        "The number of the class, its place in names, or -1 where it is not known; with any number of labels a node, 1 for "
        "each that is known and 0 for others. Labels that were not in the training split are not known.",
    ),
    "targets": InputWords(
        "The nodes that are asked for.",
        "Rows of the tables of V rows, from 0 on: each id's row. Where fewer are asked for, 0, and leave out what comes of it.",
    ),
    "node": InputWords("Neighbours of each target.", "Rows of the tables of V rows; 0 in unused slots."),
    "path": InputWords(
        "Typed path that leads from the target to each neighbour.",
        "Start at path = -1, and for each step path = (path + 1) * len(relations) + the relation's place in relations. The "
        "target itself is its own neighbour by path 0, the self-loop. 0 in unused slots.",
    ),
    "log_probability": InputWords(
        "ln P of each neighbour and path.",
        "P is the probability of the step, normalised over the candidates of this target and step, times "
        "depth_coefficients[step]; steps count from 0, the self-loop. -inf in unused slots.",
    ),
    "mask": InputWords("Which slots are used.", "True in used slots, which may be fewer than there are."),
    "label_spreading": InputWords(
        "What labels spread over the whole graph add to the logits of each target.",
        "Where the node is not of the run's graph: 0. Predictor.program_inputs has it for those that are.",
    ),
    "edge_type": InputWords("Type of each link that is asked for.", "Its place in names. Where fewer are asked for, 0."),
    "path_probability": InputWords(
        "Probability of each typed path from a link's source to its target.",
        "A column for each id in paths, which are made as those of path; the probability of the step, without the depth "
        "coefficient. 0 where the path does not lead there.",
    ),
    "log_degree": InputWords(
        "ln of the total weight of the edges of each end of a link.",
        "All sources of links, then all targets; an edge counts 1 if it has no weight.",
    ),
}
ENDS = "Rows of the tables of V rows, from 0 on: of all sources of links, then of all targets. Where fewer are asked for, 0."
OUTPUTS = {
    "representations": "Representation of each target, as gatas embed writes it; of links, all sources, then all targets.",
    "probabilities": "Probability of each class, in the order of names.",
    "values": "Predicted numbers, in the units of the data, in the order of names.",
}
OF_LINKS = "Probability of each link that is asked for."
DRAWS = " The first dimension is over draws of neighbours: answers are the mean over them."


def description(trained: TrainedModel, name: str, sizes: ProgramSizes, inputs: Arrays, outputs: Arrays) -> dict[str, Any]:
    """Return what a program is of, its sizes, its inputs and its outputs."""
    graph, setting = trained.dataset.graph, trained.sampler.transitions.setting
    return {
        "run": name,
        "data": trained.dataset.name,
        "task": trained.task,
        "names": list(trained.names),
        "model": trained.fingerprint,
        "gatas": __version__,
        "torch": version("torch"),
        "batch_size": sizes.batch_size,
        "sample_size": sizes.sample_size,
        "draws": sizes.draws,
        "relations": list(graph.relation_names),
        "depth_coefficients": trained.sampler.depth_coefficients.detach().cpu().tolist(),
        **({"paths": _weighted_paths(trained)} if "path_probability" in inputs else {}),
        "inputs": [_input(trained, key, array) for key, array in inputs.items()],
        "outputs": [_output(trained, key, array) for key, array in outputs.items()],
        "neighbours": trained.mode,
        "transitions": {
            "num_steps": setting.num_steps,
            "kind": setting.kind,
            "max_candidates": setting.max_candidates,
            "max_degree": setting.max_degree,
            "revisits": setting.revisits,
        },
    }


def _input(trained: TrainedModel, name: str, array: Any) -> dict[str, Any]:
    words = INPUTS[name]
    meaning = words.meaning + (DRAWS if array.ndim == 3 else "")
    if trained.predicts_links and name == "targets":
        words = InputWords("The ends of the links that are asked for.", ENDS)
        meaning = words.meaning
    shape = ["V" if name in TABLES else array.shape[0], *array.shape[1:]]
    return {"name": name, "dtype": str(array.dtype), "shape": shape, "meaning": meaning, "fill": words.fill}


def _output(trained: TrainedModel, name: str, array: Any) -> dict[str, Any]:
    meaning = OF_LINKS if trained.predicts_links and name == "probabilities" else OUTPUTS[name]
    return {"name": name, "dtype": str(array.dtype), "shape": list(array.shape), "meaning": meaning}


def _weighted_paths(trained: TrainedModel) -> list[int]:
    paths: list[int] = trained.model.link_head.path_ids.tolist()  # type: ignore[operator, union-attr]
    return paths
