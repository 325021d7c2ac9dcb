"""A model's answers as one function of arrays, in operations that torch can export: no sampler, no graph, no ids.

B targets, or B links with 2B ends; S neighbours each, R draws of them, V nodes that a batch speaks of.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from gatas.inference.trained import TrainedModel, mean_probabilities
from gatas.nn import Encoder
from gatas.nn.link_head import LinkHead
from gatas.ops.evidence.contract import CENTRE, SMALLEST, SPREAD
from gatas.sampling import Neighbourhood
from gatas.tasks import LinkPredictor, NodeRegressor

Outputs = dict[str, Tensor]


def program_of(trained: TrainedModel) -> nn.Module:
    """Return what answers for a trained model, of given arrays."""
    return LinkProgram(trained) if trained.predicts_links else NodeProgram(trained)


class Representations(nn.Module):
    """Represents targets by their neighbourhoods, for each draw of these."""

    def __init__(self, encoder: Encoder, draws: int) -> None:
        super().__init__()
        self.encoder, self.draws = encoder, draws

    def forward(
        self,
        targets: Tensor,
        neighbourhood: tuple[Tensor, Tensor, Tensor, Tensor],
        nodes: Tensor | None,
        features: Tensor | None,
        labels: Tensor | None,
    ) -> Tensor:
        """(R, B, size) from (B,) targets and (B, S) or (R, B, S) neighbours."""
        slots = Neighbourhood(*(part.flatten(0, -2) for part in neighbourhood))
        found: Tensor = self.encoder.encode_rows(targets.repeat(self.draws), slots, nodes, features, labels)
        return found.view(self.draws, targets.shape[0], -1)


class NodeProgram(nn.Module):
    """Classes or numbers of given nodes; what is learned is inside, what is known about nodes comes with them."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, trained: TrainedModel) -> None:
        super().__init__()
        model = trained.model
        self.represent = Representations(on_cpu(model.encoder), len(trained.draws))
        self.head = on_cpu(model.head)
        self.temperature = trained.temperature
        self.multi_label = not trained.predicts_numbers and trained.dataset.node_targets.multi_label
        self.numbers = isinstance(model, NodeRegressor)
        if isinstance(model, NodeRegressor):
            self.register_buffer("mean", model.target_mean.detach().double().cpu())
            self.register_buffer("deviation", model.target_deviation.detach().double().cpu())

    def forward(
        self,
        targets: Tensor,
        node: Tensor,
        path: Tensor,
        log_probability: Tensor,
        mask: Tensor,
        nodes: Tensor | None = None,
        features: Tensor | None = None,
        labels: Tensor | None = None,
        label_spreading: Tensor | None = None,
    ) -> Outputs:
        """(B, size) representations, and (B, classes) probabilities or (B, numbers) values."""
        found = self.represent(targets, (node, path, log_probability, mask), nodes, features, labels)  # (R, B, size)
        said: Tensor = self.head(found)  # (R, B, classes)
        if label_spreading is not None:
            said = said + label_spreading
        if self.numbers:
            return {"representations": found.mean(0), "values": (said.double() * self.deviation + self.mean).mean(0)}
        chances = mean_probabilities(said, self.multi_label, self.temperature)
        return {"representations": found.mean(0), "probabilities": chances}


class LinkProgram(nn.Module):
    """Probabilities of links between given nodes; the first B of 2B targets are sources, the others the links' targets."""

    def __init__(self, trained: TrainedModel) -> None:
        super().__init__()
        model = trained.model
        assert isinstance(model, LinkPredictor)
        self.parts, self.head = model.parts, on_cpu(model.head)
        encodes = trained.exact.encodes
        self.represent = Representations(on_cpu(model.encoder), len(trained.draws)) if encodes else None

    def forward(
        self,
        edge_type: Tensor,
        targets: Tensor | None = None,
        node: Tensor | None = None,
        path: Tensor | None = None,
        log_probability: Tensor | None = None,
        mask: Tensor | None = None,
        nodes: Tensor | None = None,
        features: Tensor | None = None,
        path_probability: Tensor | None = None,
        log_degree: Tensor | None = None,
    ) -> Outputs:
        """(2B, size) representations of both ends, where nodes have any, and (B,) probabilities."""
        found = None
        if self.represent is not None:
            slots: Any = (node, path, log_probability, mask)
            found = self.represent(targets, slots, nodes, features, None)  # (R, 2B, size)
        own = None if nodes is None or targets is None else nodes[targets]
        if isinstance(self.head, LinkHead):
            evidence = None
            if path_probability is not None and log_degree is not None:
                evidence = path_scores(self.head, edge_type, path_probability, log_degree)
            chances = [
                self._parts_score(self.head, edge_type, own, one, evidence) for one in ([None] if found is None else found)
            ]
        else:
            assert found is not None
            chances = [self._pair_score(edge_type, one) for one in found]
        if found is None and "vectors" in self.parts:
            assert isinstance(self.head, LinkHead) and own is not None
            found = self.head.vectors(own)[None]
        outputs = {} if found is None else {"representations": found.mean(0)}
        return {**outputs, "probabilities": torch.stack(chances).sigmoid().mean(0)}

    def _pair_score(self, edge_type: Tensor, ends: Tensor) -> Tensor:
        """(B,) log-odds by the paper's head."""
        count = edge_type.shape[0]
        logits: Tensor = self.head(ends[:count], ends[count:])
        return logits.gather(1, edge_type[:, None]).squeeze(1)

    def _parts_score(
        self, head: LinkHead, edge_type: Tensor, own: Tensor | None, ends: Tensor | None, evidence: Tensor | None
    ) -> Tensor:
        """(B,) log-odds as the sum of parts; `own` are the indices of the ends, `ends` their representations."""
        count, known = edge_type.shape[0], {} if own is None else head.node_vectors(own, ends)
        if own is None and ends is not None:
            known = {"neighbourhood": head.projection(ends)}
        scores = []
        for part in self.parts:
            if part == "paths":
                assert evidence is not None
                scores.append(evidence)
                continue
            decoder = head.vector_decoder if part == "vectors" else head.neighbourhood_decoder
            score = decoder(known[part][:count], known[part][count:], edge_type)
            if part == "vectors":
                score = score + known["popularity"][:count, 0] + known["popularity"][count:, 1]
            scores.append(score)
        return head.together(torch.stack(scores), edge_type)


def path_scores(head: LinkHead, edge_type: Tensor, probability: Tensor, log_degree: Tensor) -> Tensor:
    """(B,) what typed paths between both ends say: Σ w₀ + w₁ s(ln P forth) + w₂ s(ln P back), as `pair_evidence` has it.

    `probability` is (B, P): of each path with weights, from the source to the target, and 0 where it does not lead there.
    """
    paths, count = head.paths, edge_type.shape[0]
    if paths.is_table:
        weights = paths.table[edge_type]  # (B, P, 3)
    else:
        weights = torch.einsum("pk,tjk->tpj", paths.factors(), paths.of_type[edge_type])
    forth = probability.clamp_min(SMALLEST).log()  # (B, P)
    back = forth + (log_degree[:count] - log_degree[count:])[:, None]
    terms = weights[..., 0] + weights[..., 1] * (forth + CENTRE) / SPREAD + weights[..., 2] * (back + CENTRE) / SPREAD
    there = probability > 0
    own = torch.arange(probability.shape[1]) == paths.own_path[edge_type][:, None]  # the link itself, which is no evidence
    sums = torch.where(there & ~own, terms, 0.0).sum(1)
    return torch.where(there.any(1), sums, paths.unreached[edge_type])


def on_cpu(module: Any) -> Any:
    """Return a copy of a module in evaluation, on the CPU, whose answers carry no gradients."""
    return deepcopy(module).cpu().eval().requires_grad_(False)
