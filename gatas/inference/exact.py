"""`ExactEncoder`: a trained model's encoder and head in float64: an answer does not depend on what else is asked for."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gatas.graph.inputs import Ints
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.sampling.sampler import Mode
from gatas.tasks import Model

SLOTS = 1 << 16
"""Neighbours that are represented together, about: what memory is needed for."""
EMBEDDINGS = "inputs.embeddings.weight"


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Features and learned embeddings of nodes, a row for each."""

    features: Tensor | None
    embeddings: Tensor | None


class ExactEncoder:
    """Represents nodes in float64, to be rounded to float32 once.

    How a product or a sum is split into blocks depends on what else is in a batch, and moves the last digits. Here these are
    the sixteenth, so that what is left after rounding is the same for a node in any batch and alone. Not by construction: one
    number in some 10⁸ may lie so close to the middle between two float32 that it becomes either (none of 2.7 million did).
    """

    def __init__(self, model: Model, sampler: NeighbourSampler | None = None) -> None:
        self.model, self.sampler = model.eval(), sampler or model.sampler
        self.new = NodeRows(None, None)  # rows of nodes after the model's last
        self.device = self.sampler.depth_logits.device
        self.encoder_weights = in_float64(model.encoder, skip=EMBEDDINGS)
        self.head_weights = in_float64(model.head)

    @property
    def size(self) -> int:
        """Return the width of a representation."""
        return self.model.encoder.output_size

    @torch.no_grad()
    def represent(self, nodes: Ints, mode: Mode, draw: int = -1) -> Tensor:
        """Return (B, K·F'') float64 representations of nodes given by index."""
        targets = torch.from_numpy(nodes).to(self.device)
        neighbourhood = self.sampler(targets, draw=draw, mode=mode)
        found = [self.encode(targets[part], part_of(neighbourhood, part)) for part in parts_of(neighbourhood.mask)]
        return torch.cat(found) if found else torch.empty(0, self.size, dtype=torch.float64)

    @torch.no_grad()
    def apply_head(self, *representations: Tensor) -> Tensor:
        """Return float64 logits of representations, of one node each or of both ends of a link."""
        logits: Tensor = torch.func.functional_call(self.model.head, self.head_weights, representations)
        return logits

    def encode(self, targets: Tensor, neighbourhood: Neighbourhood) -> Tensor:
        """Encode targets as (B, K·F'') float64. The encoder sees the nodes of this batch only, numbered anew."""
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


def in_float64(module: nn.Module, skip: str = "") -> dict[str, Tensor]:
    """Return all weights and constants of a module in float64, but for the one that is skipped."""
    given = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach().double() for name, tensor in given if name != skip and tensor.is_floating_point()}


def _gathered(known: Tensor | None, new: Tensor | None, nodes: Tensor) -> Tensor | None:
    """Return rows of the model's nodes, and of new nodes after them."""
    if known is None:
        return None
    rows = known.detach().index_select(0, nodes.clamp_max(len(known) - 1)).double()
    later = nodes >= len(known)
    if new is not None:
        rows[later] = new[nodes[later] - len(known)].double()
    return rows


def parts_of(mask: Tensor) -> list[slice]:
    """Cut targets, in their order, into parts of about `SLOTS` neighbours; a target with more than these is alone."""
    sizes, parts, first, longest = mask.sum(1).tolist(), list[slice](), 0, 1
    for place, size in enumerate(sizes):
        if place > first and max(longest, size) * (place - first + 1) > SLOTS:
            parts.append(slice(first, place))
            first, longest = place, 1
        longest = max(longest, size)
    return [*parts, slice(first, len(sizes))] if sizes else []


def part_of(neighbourhood: Neighbourhood, part: slice) -> Neighbourhood:
    """Return the neighbourhoods of some targets, without the slots that none of them uses."""
    longest = max(1, int(neighbourhood.mask[part].sum(1).max()))
    columns = (neighbourhood.node, neighbourhood.path, neighbourhood.log_probability, neighbourhood.mask)
    return Neighbourhood(*(column[part, :longest].contiguous() for column in columns))
