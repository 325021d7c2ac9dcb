"""`ExactEncoder`: a trained model's encoder and head in float64: an answer does not depend on what else is asked for."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.nn.sparse_rows import is_sparse, join_rows, select_rows
from gatas.ops.threads import settle_threads
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.sampling.sampler import Mode
from gatas.tasks import LinkPredictor, Model, NodeClassifier
from gatas.tasks.label_spreading import weighted_evidence

SLOTS = 1 << 16
"""Neighbours that are represented together, about: what memory is needed for."""
EMBEDDINGS = "inputs.embeddings.weight"


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Features, learned embeddings, and what links are scored by, of nodes: a row for each."""

    features: Tensor | None = None
    embeddings: Tensor | None = None
    vectors: Tensor | None = None
    popularity: Tensor | None = None


class ExactEncoder:
    """Represents nodes in float64, to be rounded to float32 once.

    How a product or a sum is split into blocks depends on what else is in a batch, and moves the last digits. Here these are
    the sixteenth, so that what is left after rounding is the same for a node in any batch and alone. Not by construction: one
    number in some 10⁸ may lie so close to the middle between two float32 that it becomes either (none of 2.7 million did).
    """

    def __init__(self, model: Model, sampler: NeighbourSampler | None = None) -> None:
        settle_threads()
        self.model, self.sampler = model.eval(), sampler or model.sampler
        self.new = NodeRows()  # rows of nodes after the model's last
        self.device = self.sampler.depth_logits.device
        self.encoder_weights = in_float64(model.encoder, skip=EMBEDDINGS)
        self.parts = model.parts if isinstance(model, LinkPredictor) else ()
        self.head_weights = {} if self.parts else in_float64(model.head)
        self.log_degree = model.log_degree if isinstance(model, LinkPredictor) else torch.empty(0)

    @property
    def is_extended(self) -> bool:
        """Whether the graph is the model's with new nodes or edges."""
        return self.sampler is not self.model.sampler

    @property
    def num_nodes(self) -> int:
        """Return how many nodes there are, the new ones among them."""
        return self.sampler.transitions.setting.num_nodes

    @property
    def encodes(self) -> bool:
        """Whether the encoder is trained: where links are scored without neighbourhoods, it is not."""
        return not self.parts or "neighbourhood" in self.parts

    @property
    def size(self) -> int:
        """Return the width of a representation; 0 where nodes have none."""
        if self.encodes:
            return self.model.encoder.output_size
        return int(self._vectors.shape[1]) if "vectors" in self.parts else 0

    @property
    def _vectors(self) -> Tensor:
        assert isinstance(self.model, LinkPredictor)
        return self.model.link_head.vectors.weight

    @torch.no_grad()
    def represent(self, nodes: Ints, mode: Mode, draw: int = -1) -> Tensor:
        """Return float64 representations of nodes given by index: (B, K·F''), or their own vectors where no others are trained.

        A model that scores links by typed paths alone has none.
        """
        targets = torch.from_numpy(nodes).to(self.device)
        if not self.encodes:
            if "vectors" not in self.parts:
                raise GatasError(
                    "the model scores links by typed paths alone, so nodes have no representations. Train one whose link_score "
                    "has vectors or neighbourhood."
                )
            return gathered(self._vectors, self.new.vectors, targets).double()
        neighbourhood = self.sampler(targets, draw=draw, mode=mode)
        found = [self.encode(targets[part], part_of(neighbourhood, part)) for part in parts_of(neighbourhood.mask)]
        return torch.cat(found) if found else torch.empty(0, self.size, dtype=torch.float64, device=self.device)

    @torch.no_grad()
    def apply_head(self, *representations: Tensor) -> Tensor:
        """Return float64 logits of representations, of one node each or of both ends of a link."""
        logits: Tensor = torch.func.functional_call(self.model.head, self.head_weights, representations)
        return logits

    @torch.no_grad()
    def spread_labels(self, nodes: Tensor) -> Tensor | None:
        """Return float64 (B, classes) of what labels spread over the graph add to logits; zeros for new nodes."""
        spread = self.model.spread
        if spread is None or not isinstance(self.model, NodeClassifier) or self.model.spreading_weights is None:
            return None
        known = nodes < spread.shape[1]
        rows = spread[:, torch.where(known, nodes, 0)].double() * known[:, None]
        return weighted_evidence(self.model.spreading_weights.double(), rows)

    @torch.no_grad()
    def represent_output(self, output: Tensor, inputs: Tensor) -> Tensor:
        """Return (G, size) from what heads and means of one target give to σ, (G, …), and from its inputs, all in float64."""
        weights = {name: weight for name, weight in self.encoder_weights.items() if name.startswith("output.")}
        weights = {name.removeprefix("output."): weight for name, weight in weights.items()}
        given = (F.elu(output), inputs.expand(len(output), -1))
        representations: Tensor = torch.func.functional_call(self.model.encoder.output, weights, given)
        return representations

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
        given = (place[: len(targets)], here, rows.features, self.known_labels(nodes))
        representations: Tensor = torch.func.functional_call(self.model.encoder, weights, given)
        return representations

    def known_labels(self, nodes: Tensor) -> Tensor | None:
        """Return known labels, where they are inputs; of new nodes none is known."""
        labels = self.model.labels
        if labels is None:
            return None
        unknown = labels.new_full((max(0, self.num_nodes - len(labels)), *labels.shape[1:]), -1 if labels.ndim == 1 else 0)
        return gathered(labels, unknown, nodes)

    def _rows(self, nodes: Tensor) -> NodeRows:
        embeddings = self.model.encoder.inputs.embeddings
        features = self.model.features if self.model.num_features else None
        return NodeRows(
            None if features is None else gathered(features, self.new.features, nodes).double(),
            None if embeddings is None else gathered(embeddings.weight, self.new.embeddings, nodes).double(),
        )


def in_float64(module: nn.Module, skip: str = "") -> dict[str, Tensor]:
    """Return all weights and constants of a module in float64, but for the one that is skipped."""
    given = [*module.named_parameters(), *module.named_buffers()]
    return {name: tensor.detach().double() for name, tensor in given if name != skip and tensor.is_floating_point()}


def gathered(known: Tensor, new: Tensor | None, nodes: Tensor | None) -> Tensor:
    """Return rows of the model's nodes, and of new nodes after them: of some, or of all."""
    if is_sparse(known):
        return _gathered_sparse(known, new, nodes)
    if nodes is None:
        return known.detach() if new is None else torch.cat([known.detach(), new.to(known.dtype)])
    rows = known.detach().index_select(0, nodes.clamp_max(len(known) - 1))
    later = nodes >= len(known)
    if new is not None:
        rows[later] = new[nodes[later] - len(known)].to(rows.dtype)
    return rows


def _gathered_sparse(known: Tensor, new: Tensor | None, nodes: Tensor | None) -> Tensor:
    if new is None:
        return known if nodes is None else select_rows(known, nodes)
    if nodes is None:
        return join_rows(known, new)
    later = nodes >= len(known)
    apart = join_rows(select_rows(known, nodes[~later]), select_rows(new, nodes[later] - len(known)))
    place = torch.where(later, later.cumsum(0) + (~later).sum(), (~later).cumsum(0)) - 1
    return select_rows(apart, place)


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
