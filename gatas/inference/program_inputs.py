"""Arrays that an exported program takes, of nodes or links given by index.

B targets, or B links with 2B ends; S neighbours each, R draws of them, V nodes that a batch speaks of.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.inference.exact import gathered
from gatas.inference.ids import ids_of
from gatas.inference.trained import TrainedModel
from gatas.nn.sparse_rows import is_sparse
from gatas.ops.evidence.contract import SMALLEST
from gatas.ops.pair_evidence import pair_entries
from gatas.sampling import Neighbourhood
from gatas.tasks import LinkPredictor
from gatas.tasks.model import EVALUATED_SLOTS

MOST_TARGETS = 64
"""Targets of a batch where no other number is asked for; fewer where neighbourhoods are large."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ProgramSizes:
    """What is fixed when a program is exported."""

    batch_size: int  # B
    sample_size: int  # S; 0 where no neighbourhoods are looked at
    draws: int  # R

    @property
    def slots(self) -> tuple[int, ...]:
        """The shape of neighbourhoods without their last dimension, of B targets."""
        return (self.batch_size,) if self.draws == 1 else (self.draws, self.batch_size)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramInputs:
    """What a program takes, by name, and the node that each row of its tables is about."""

    arrays: Arrays
    rows: Ints  # (V,) indices, ascending; empty where a program has no such tables


def program_sizes(trained: TrainedModel, batch_size: int | None, sample_size: int | None) -> ProgramSizes:
    """Return the sizes asked for, or those that suit the model: S as it was trained, or of the largest neighbourhood."""
    for name, size in (("batch_size", batch_size), ("sample_size", sample_size)):
        if size is not None and size < 1:
            raise GatasError(f"{name} is {size}; expected a whole number from 1 on.")
    if not trained.exact.encodes:
        return ProgramSizes(batch_size or MOST_TARGETS, 0, 1)
    slots = sample_size or (_largest(trained) if trained.mode == "all" else trained.sampler.sample_size)
    return ProgramSizes(batch_size or max(1, min(MOST_TARGETS, EVALUATED_SLOTS["cpu"] // slots)), slots, len(trained.draws))


def _largest(trained: TrainedModel) -> int:
    """Candidates of the node that has most."""
    batches = trained.batches(np.arange(trained.graph.num_nodes))
    return max((int(trained.sampler.num_candidates(torch.from_numpy(batch)).max()) for batch in batches), default=1)


def node_inputs(trained: TrainedModel, nodes: Ints, sizes: ProgramSizes) -> ProgramInputs:
    """Return the inputs of a program that classifies nodes, of up to B of them; the rest of the batch is empty."""
    _check_count(len(nodes), sizes.batch_size, "nodes")
    found = _encoder_inputs(trained, nodes, sizes)
    added = trained.exact.spread_labels(torch.from_numpy(nodes).to(trained.device))
    if added is not None:
        found.arrays["label_spreading"] = _padded(added.float(), 0, (sizes.batch_size, added.shape[1]))
    return found


def link_inputs(trained: TrainedModel, source: Ints, edge_type: Ints, target: Ints, sizes: ProgramSizes) -> ProgramInputs:
    """Return the inputs of a program that scores links, of up to B of them; the rest of the batch is empty."""
    _check_count(len(source), sizes.batch_size, "links")
    model, size = trained.model, sizes.batch_size
    assert isinstance(model, LinkPredictor)
    empty = np.zeros(size - len(source), np.int64)
    ends = np.concatenate([source, empty, target, empty])  # of which those that stand for nothing are node 0
    found = ProgramInputs({}, empty[:0])
    if trained.exact.encodes:
        found = _encoder_inputs(trained, ends, ProgramSizes(2 * size, sizes.sample_size, sizes.draws))
    elif "vectors" in model.parts:
        found, place = _tables(trained, ends)
        found.arrays["targets"] = place
    arrays: Arrays = {"edge_type": np.concatenate([edge_type, empty]), **found.arrays}
    if "paths" in model.parts:
        arrays["path_probability"] = _path_probabilities(trained, model, source, target, size)
        arrays["log_degree"] = trained.exact.log_degree.cpu().numpy()[ends].astype(np.float32)
    return ProgramInputs(arrays, found.rows)


def _encoder_inputs(trained: TrainedModel, targets: Ints, sizes: ProgramSizes) -> ProgramInputs:
    """Neighbourhoods of targets, and what is known about the nodes in them, each of which has one row."""
    drawn = [_drawn(trained, targets, draw, sizes) for draw in trained.draws]
    columns = {name: np.stack([one[name] for one in drawn]) for name in drawn[0]}
    found, place = _tables(trained, np.concatenate([targets, columns["node"].ravel()]))
    columns["node"] = place[len(targets) :].reshape(columns["node"].shape)
    found.arrays["targets"] = np.resize(place[: len(targets)], sizes.batch_size)
    found.arrays["targets"][len(targets) :] = 0
    found.arrays.update({name: column.reshape(*sizes.slots, sizes.sample_size) for name, column in columns.items()})
    return found


def _drawn(trained: TrainedModel, targets: Ints, draw: int, sizes: ProgramSizes) -> Arrays:
    """(B, S) columns of the neighbourhoods that the predictor looks at."""
    with torch.no_grad():
        found: Neighbourhood = trained.sampler(torch.from_numpy(targets).to(trained.device), draw=draw, mode=trained.mode)
    used = int(found.mask.sum(-1).max()) if len(targets) else 0
    if used > sizes.sample_size:
        largest = ids_of(trained.graph, targets[[int(found.mask.sum(-1).argmax())]])[0].as_py()
        raise GatasError(
            f"the neighbourhood of {largest!r} has {used} neighbours, but the program takes {sizes.sample_size}. Export it "
            f"with a sample_size of {used} or more."
        )
    unused = {"node": 0, "path": 0, "log_probability": -np.inf, "mask": False}
    shape = (sizes.batch_size, sizes.sample_size)
    return {name: _padded(getattr(found, name)[:, : sizes.sample_size], value, shape) for name, value in unused.items()}


def _tables(trained: TrainedModel, nodes: Ints) -> tuple[ProgramInputs, Ints]:
    """Tables of the V distinct ones among some nodes, and the row of each."""
    model, exact = trained.model, trained.exact
    rows, place = np.unique(nodes, return_inverse=True)
    distinct, arrays = torch.from_numpy(rows).to(trained.device), Arrays()
    if needs_indices(trained):
        _refuse_new(trained, rows)
        arrays["nodes"] = rows
    if exact.encodes and model.features is not None and model.num_features:
        features = gathered(model.features, exact.new.features, distinct)
        arrays["features"] = (features.to_dense() if is_sparse(features) else features).float().cpu().numpy()
    labels = exact.known_labels(distinct) if exact.encodes else None
    if labels is not None:
        arrays["labels"] = labels.cpu().numpy()
    return ProgramInputs(arrays, rows), place


def needs_indices(trained: TrainedModel) -> bool:
    """Whether something was learned of each node by itself, so that a program must be told which node is meant."""
    return "vectors" in trained.exact.parts or (trained.exact.encodes and trained.model.encoder.inputs.embeddings is not None)


def _refuse_new(trained: TrainedModel, nodes: Ints) -> None:
    known = trained.dataset.graph.num_nodes
    if len(nodes) and nodes[-1] >= known:
        new = ids_of(trained.graph, nodes[-1:])[0].as_py()
        raise GatasError(
            f"node {new!r} is new, and the program has learned embeddings of the {known:,} nodes trained on alone. Ask the "
            "predictor, or train with node_embedding_size: 0."
        )


def _path_probabilities(trained: TrainedModel, model: LinkPredictor, source: Ints, target: Ints, size: int) -> NDArray[Any]:
    """(B, P) of each typed path with weights from sources to targets; 0 where it does not lead there."""
    head = model.link_head
    found = np.zeros((size, len(head.path_ids)), np.float32)
    if not len(source):
        return found
    _, table, row = trained.sampler.located(torch.from_numpy(source).to(trained.device))
    columns = (row, table.indptr, table.node, table.path, table.probability)
    of_pair, indptr, node, of_entry, chance = (column.cpu() for column in columns)
    pair, path, probability = pair_entries(torch.from_numpy(target), of_pair, indptr, node, of_entry, chance, table.num_levels)
    known = path < len(head.path_place)
    place = torch.where(known, head.path_place.cpu()[torch.where(known, path, 0)].long(), -1)
    weighted = place >= 0
    found[pair[weighted].numpy(), place[weighted].numpy()] = probability[weighted].clamp_min(SMALLEST).numpy()
    return found


def _check_count(count: int, batch_size: int, what: str) -> None:
    if count > batch_size:
        raise GatasError(f"{count} {what} were given, but the program takes {batch_size} at a time. Give it some at a time.")


def _padded(values: Tensor, value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Values in the corner of an array that has another value elsewhere."""
    given = values.detach().cpu().numpy()
    found = np.full(shape, value, given.dtype)
    found[tuple(map(slice, given.shape))] = given
    return found
