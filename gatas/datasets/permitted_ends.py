"""`PermittedEnds`: which nodes may stand at the ends of links, by the types of nodes that are seen there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.negatives import Ends, Pools
from gatas.graph.inputs import Ints


@dataclass(frozen=True)
class PermittedEnds:
    """The nodes that may be the source or the target of a link of each type: all nodes of the permitted node types."""

    node_type: Ints  # (N,)
    sources: NDArray[np.bool_]  # (num_link_types, num_node_types)
    targets: NDArray[np.bool_]  # (num_link_types, num_node_types)

    @classmethod
    def seen(cls, source: Ints, edge_type: Ints, target: Ints, num_link_types: int, node_type: Ints) -> "PermittedEnds":
        """Permit the node types that known links of a type have at that end; without any known link, none."""
        shape = (num_link_types, int(node_type.max(initial=-1)) + 1)
        sources, targets = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        sources[edge_type, node_type[source]] = True
        targets[edge_type, node_type[target]] = True
        return cls(node_type, sources, targets)

    @property
    def ends(self) -> Ends:
        """The nodes themselves, as pools that negatives are drawn from."""
        return self._pools(self.sources), self._pools(self.targets)

    def _pools(self, permitted: NDArray[np.bool_]) -> Pools:
        """List the nodes of each set of node types once, however many types of link permit it."""
        sets, place = np.unique(permitted, axis=0, return_inverse=True)
        pools = Pools.of([np.flatnonzero(one[self.node_type]) for one in sets])
        return Pools(pools.nodes, pools.starts[place.reshape(-1)], pools.sizes[place.reshape(-1)])
