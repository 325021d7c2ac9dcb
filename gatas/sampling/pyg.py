"""PyG's loaders over our samples: `NodeLoader` and `LinkLoader`, without pyg-lib.

>>> sampler = TransitionSampler(gatas.NeighbourSampler(transitions, sample_size=20))
>>> paths = EdgePaths()
>>> NodeLoader(data, sampler, batch_size=64, transform_sampler_output=paths.take, transform=paths.put)
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gatas.graph.pyg import import_pyg
from gatas.sampling.sampler import NeighbourSampler

pyg = import_pyg("sampler")
SamplerOutput: Any = pyg.SamplerOutput
BaseSampler: Any = pyg.BaseSampler


@dataclass
class SampledPaths(SamplerOutput):  # type: ignore[misc]
    """PyG's record, and for each edge the path that it stands for and ln P."""

    path: Tensor | None = None
    log_probability: Tensor | None = None


class TransitionSampler(BaseSampler):  # type: ignore[misc]
    """Samples of typed multi-step neighbours: an edge from every neighbour that was drawn to its target.

    Targets come first among the nodes. A node that is reached over two paths has two edges; a target is its own neighbour
    over the self-loop. Nodes of `data` are numbered as in the transitions, and its edges are not looked at.
    """

    def __init__(self, sampler: NeighbourSampler) -> None:
        self.sampler = sampler

    def sample_from_nodes(self, index: Any, **_: Any) -> SampledPaths:
        """Sample for a `NodeLoader`."""
        out = self._sampled(index.node)
        out.metadata = (index.input_id, index.time)
        return out

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> Any:
        """Sample for a `LinkLoader`, with PyG's own negative sampling."""
        num_nodes = self.sampler.transitions.setting.num_nodes
        return pyg.neighbor_sampler.edge_sample(index, self._sampled, num_nodes, disjoint=False, neg_sampling=neg_sampling)

    @torch.no_grad()
    def _sampled(self, targets: Tensor, _: Any = None) -> SampledPaths:
        drawn = self.sampler(targets)
        neighbour, target = drawn.node[drawn.mask], drawn.mask.nonzero()[:, 0]
        others = torch.unique(neighbour[~torch.isin(neighbour, targets)])
        nodes = torch.cat([targets, others])
        order = torch.argsort(nodes, stable=True)
        row = order[torch.searchsorted(nodes[order], neighbour)]
        return SampledPaths(
            node=nodes,
            row=row,
            col=target,
            edge=None,
            num_sampled_nodes=[len(targets), len(others)],
            num_sampled_edges=[len(row)],
            path=drawn.path[drawn.mask],
            log_probability=drawn.log_probability[drawn.mask],
        )


class EdgePaths:
    """Carries paths and ln P past PyG's loaders, which know no such thing, as `path` and `log_probability` of edges."""

    def take(self, out: SampledPaths) -> SampledPaths:
        self.out = out
        return out

    def put(self, data: Any) -> Any:
        data.path, data.log_probability = self.out.path, self.out.log_probability
        return data
