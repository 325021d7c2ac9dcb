"""`View`: a model and the graph that it is asked about, its own or one with new nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatas.graph import Graph
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.tasks import Model
from gatas.transitions.ahead import ReadAhead

if TYPE_CHECKING:
    from gatas.inference import Explanation
    from gatas.inference.predict import Prediction

BATCH_SIZE, GPU_BATCH_SIZE = 256, 1024
"""Nodes at a time. A GPU waits for the host to begin each operation, however little is in it."""
SLOTS = 1 << 16
"""Neighbours that are looked at together, about: what memory is needed for."""
EMBEDDINGS = "inputs.embeddings.weight"


@dataclass(frozen=True, slots=True)
class NodeRows:
    """What is known of nodes, a row for each."""

    features: Tensor | None
    embeddings: Tensor | None


class View:
    """Represents nodes in float64, to be rounded to float32 once.

    How a product or a sum is split into blocks depends on what else is in a batch, and moves the last digits. Here these are
    the sixteenth, so that what is left after rounding is the same for a node in any batch and alone. Not by construction: one
    number in some 10⁸ may lie so close to the middle between two float32 that it becomes either (none of 2.7 million did).
    """

    def __init__(self, model: Model, graph: ExtendedGraph | None = None, sampler: NeighbourSampler | None = None) -> None:
        self.model, self.sampler = model.eval(), sampler or model.sampler
        self.graph: Graph | ExtendedGraph = graph or model.graph
        self.new = NodeRows(None, None)  # of nodes from the model's last on
        self.device = self.sampler.depth_logits.device
        self.encoder_weights = in_float64(model.encoder, skip=EMBEDDINGS)
        self.head_weights = in_float64(model.head)

    @property
    def draws(self) -> range:
        """The numbers of the draws that answers are averaged over; below zero, as none that was trained on."""
        return range(-1, -1 - self.model.answer_draws, -1)

    @torch.no_grad()
    def represent(self, nodes: Ints, draw: int = -1) -> Tensor:
        """(B, K·F'') float64."""
        targets = torch.from_numpy(nodes).to(self.device)
        neighbourhood = self.sampler(targets, draw=draw, mode=self.model.answer_mode)
        found = [self.encoded(targets[part], part_of(neighbourhood, part)) for part in parts_of(neighbourhood.mask)]
        return torch.cat(found) if found else torch.empty(0, self.model.encoder.output_size, dtype=torch.float64)

    def batches(self, nodes: Ints, batch_size: int | None = None) -> Iterator[Ints]:
        """So many nodes at a time, in their order. Where rows can be made ahead, those of the next are, in the meantime."""
        size = batch_size or batch_size_on(self.device.type)
        source, cut = self.sampler.transitions, list(batches(nodes, size))
        for number, batch in enumerate(cut):
            if isinstance(source, ReadAhead):
                for told in cut[number : number + 2]:
                    source.ahead(told)
            yield batch

    def embed(self, ids: Any) -> NDArray[np.float32]:
        """Representations of nodes by their ids, old or new."""
        from gatas.inference.embed import embed

        return embed(self, ids)

    def predict(self, ids: Any) -> "Prediction":
        """Classes and their probabilities, of nodes by their ids, old or new."""
        from gatas.inference.predict import predict

        return predict(self, ids)

    def predict_links(self, sources: Any, edge_types: Any, targets: Any) -> NDArray[np.float32]:
        """Probabilities of links between nodes by their ids, old or new; one type for all, or one for each."""
        from gatas.inference.links import predict_links

        return predict_links(self, sources, edge_types, targets)

    def explain(self, asked: int | str | tuple[int | str, str, int | str], **options: Any) -> "Explanation":
        """What an answer rests on: of a node's id, or of a link (source, type, target); see `gatas.inference.explain`."""
        from gatas.inference.explain import explain

        return explain(self, asked, **options)

    @torch.no_grad()
    def headed(self, *representations: Tensor) -> Tensor:
        """Logits, float64."""
        logits: Tensor = torch.func.functional_call(self.model.head, self.head_weights, representations)
        return logits

    def encoded(self, targets: Tensor, neighbourhood: Neighbourhood) -> Tensor:
        """(B, K·F'') float64. The encoder sees the nodes of this batch only, numbered anew."""
        nodes, place = torch.unique(torch.cat([targets, neighbourhood.node.flatten()]), return_inverse=True)
        here = Neighbourhood(
            place[len(targets) :].view_as(neighbourhood.node),
            neighbourhood.path,
            neighbourhood.log_probability.double(),
            neighbourhood.mask,
        )
        rows = self._rows(nodes)
        weights = {**self.encoder_weights, **({} if rows.embeddings is None else {EMBEDDINGS: rows.embeddings})}
        given = (place[: len(targets)], here, rows.features)
        representations: Tensor = torch.func.functional_call(self.model.encoder, weights, given)
        return representations

    def _rows(self, nodes: Tensor) -> NodeRows:
        embeddings = self.model.encoder.inputs.embeddings
        return NodeRows(
            _gathered(self.model.features if self.model.num_features else None, self.new.features, nodes),
            _gathered(None if embeddings is None else embeddings.weight, self.new.embeddings, nodes),
        )


def batch_size_on(device: str) -> int:
    """Where no other is asked for."""
    return BATCH_SIZE if device == "cpu" else GPU_BATCH_SIZE


def batches(nodes: Ints, batch_size: int) -> Iterator[Ints]:
    """So many nodes at a time, in their order."""
    for start in range(0, len(nodes), batch_size):
        yield nodes[start : start + batch_size]


def in_float64(module: nn.Module, skip: str = "") -> dict[str, Tensor]:
    """All weights and constants of a module."""
    given = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach().double() for name, tensor in given if name != skip and tensor.is_floating_point()}


def _gathered(known: Tensor | None, new: Tensor | None, nodes: Tensor) -> Tensor | None:
    """Rows of the model's nodes, and of those after them."""
    if known is None:
        return None
    rows = known.detach().index_select(0, nodes.clamp_max(len(known) - 1)).double()
    later = nodes >= len(known)
    if new is not None:
        rows[later] = new[nodes[later] - len(known)].double()
    return rows


def parts_of(mask: Tensor) -> list[slice]:
    """Targets after one another, as many as make some `SLOTS`; a target with more than these is alone."""
    sizes, parts, first, longest = mask.sum(1).tolist(), list[slice](), 0, 1
    for place, size in enumerate(sizes):
        if place > first and max(longest, size) * (place - first + 1) > SLOTS:
            parts.append(slice(first, place))
            first, longest = place, 1
        longest = max(longest, size)
    return [*parts, slice(first, len(sizes))] if sizes else []


def part_of(neighbourhood: Neighbourhood, part: slice) -> Neighbourhood:
    """Of some targets, without the slots that none of them uses."""
    longest = max(1, int(neighbourhood.mask[part].sum(1).max()))
    columns = (neighbourhood.node, neighbourhood.path, neighbourhood.log_probability, neighbourhood.mask)
    return Neighbourhood(*(column[part, :longest].contiguous() for column in columns))


def all_nodes(graph: Graph | ExtendedGraph) -> Ints:
    return np.arange(graph.num_nodes)
