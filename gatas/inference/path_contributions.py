"""What each typed path between two nodes adds to the log-odds of a link, in float64: a constant, and two terms of ln P."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gatas.graph.inputs import Ints
from gatas.inference.part_scores import met_paths
from gatas.inference.trained import TrainedModel
from gatas.ops.evidence.contract import CENTRE, SMALLEST, SPREAD, entry_places
from gatas.ops.pair_evidence import pair_entries
from gatas.tasks import LinkPredictor


@dataclass(frozen=True, slots=True)
class PathTerms:
    """E typed paths of B pairs, those of each pair by path; the path that is the link itself is left out.

    The terms add up to what the path contributes to the log-odds: weights of the part and of the path are in them.
    """

    pair: Tensor  # (E,)
    path: Tensor  # (E,) path ids
    forth: Tensor  # (E,) ln P of the target from the source
    back: Tensor  # (E,) ln of P forth times the ratio of both nodes' degrees, an estimate of P of the source from the target
    terms: Tensor  # (E, 3)  constant, of ln P forth, of ln P back
    itself: Tensor  # (B,) whether the link's own path leads there: an edge of the graph
    unreached: Tensor  # (B,) what is added where no path leads there at all, not even the link's own; else 0

    @property
    def contributions(self) -> Tensor:
        """Return (E,) the sums of the terms."""
        return self.terms.sum(1)


@torch.no_grad()
def path_terms(trained: TrainedModel, source: Ints, edge_type: Ints, target: Ints) -> PathTerms:
    """Return the paths of pairs given by index, and what each adds to the log-odds; for models that score by paths."""
    model = trained.model
    assert isinstance(model, LinkPredictor) and "paths" in model.parts
    head, nodes = model.link_head, (torch.from_numpy(source), torch.from_numpy(target))
    pair, path, probability = _entries(trained, source, nodes[1])
    weights_of, places = met_paths(trained.exact, head, path) or (head.paths, head.path_places)
    place = entry_places(path, places.forward.cpu())
    kind = torch.from_numpy(edge_type)[pair]
    own_path = weights_of.own_path.cpu()[kind]
    itself = torch.zeros(len(source), dtype=torch.bool)
    itself[pair[(place >= 0) & (place == own_path)]] = True
    kept = (place >= 0) & (place != own_path)
    pair, path, place, kind = pair[kept], path[kept], place[kept], kind[kept]
    forth = probability[kept].double().clamp(min=SMALLEST).log()
    degree = [trained.exact.log_degree.cpu()[one].double() for one in nodes]
    back = forth + degree[0][pair] - degree[1][pair]
    weight = head.part_weights[head.parts.index("paths")].double().cpu()
    types, own_type = torch.unique(kind, return_inverse=True)  # of all types they would be too many
    weights = weight * weights_of.of_types(types.to(trained.device)).double().cpu()[own_type, place]
    scaled = torch.stack([torch.ones_like(forth), (forth + CENTRE) / SPREAD, (back + CENTRE) / SPREAD], 1)
    reached = itself.clone()
    reached[pair] = True
    unreached = weight * weights_of.unreached.double().cpu()[torch.from_numpy(edge_type)]
    return PathTerms(pair, path, forth, back, weights * scaled, itself, unreached.masked_fill(reached, 0.0))


def _entries(trained: TrainedModel, source: Ints, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return pair, path id and probability of all paths, from the rows of the sources alone: a table may be on a GPU."""
    wanted, row = np.unique(source, return_inverse=True)
    table = trained.sampler.transitions.rows(wanted)
    columns = (table.indptr, table.node, table.path, table.probability)
    indptr, node, path, probability = (torch.tensor(column) for column in columns)
    num_levels = trained.sampler.transitions.setting.num_steps + 1
    return pair_entries(target, torch.from_numpy(row), indptr, node, path, probability, num_levels)
