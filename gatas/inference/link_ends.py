"""Which nodes may be at the other end of a link: those of the types that such links have there, and not linked already."""

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.permitted_ends import PermittedEnds
from gatas.errors import GatasError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.inputs import Ints
from gatas.inference.trained import TrainedModel
from gatas.tasks.ranking import known_links

KnownLinks = Literal["train", "valid", "all"]
SPLITS_KNOWN: dict[KnownLinks, tuple[str, ...]] = {
    "train": ("train",),
    "valid": ("train", "valid"),
    "all": ("train", "valid", "test"),
}
"""Splits whose links are known, beside those of the graph, and not listed among the likeliest."""


class LinkEnds:
    """The ends that links of each type may have, over the graph of a model or that with new nodes.

    Where nodes have types, links have the types of nodes at their ends that known links have. New nodes may be at either end.

    Args:
        trained: A model of links.
    """

    def __init__(self, trained: TrainedModel) -> None:
        self.trained = trained

    @cached_property
    def permitted(self) -> PermittedEnds | None:
        """Return which types of nodes may be at the ends; None where nodes have no types."""
        dataset = self.trained.dataset
        if dataset.nodes.node_type is None:
            return None
        known = known_links(dataset)
        columns = (known.source, known.kind, known.target)
        return PermittedEnds.seen(*columns, len(dataset.names), dataset.nodes.node_type.astype(np.int64))

    def candidates(self, node: int, edge_type: int, *, backward: bool, known: KnownLinks = "valid") -> NDArray[np.bool_]:
        """Return (N,) which nodes a link from a node may lead to that are not linked yet; if `backward`, may come from."""
        free = np.ones(self.trained.graph.num_nodes, np.bool_)
        types = self._types(edge_type, "sources" if backward else "targets")
        if types is not None and self.permitted is not None:
            free[: len(self.permitted.node_type)] = types[self.permitted.node_type]
        free[node] = False
        for split in SPLITS_KNOWN[known]:
            free[self._ends_in_split(split, node, edge_type, backward)] = False
        free[self._ends_in_graph(node, edge_type, backward)] = False
        return free

    def refuse_wrong_end(self, nodes: Ints, edge_type: int, *, backward: bool) -> None:
        """Refuse nodes of types that such links never start from; if `backward`, never lead to."""
        types = self._types(edge_type, "targets" if backward else "sources")
        if types is None or self.permitted is None:
            return
        old = nodes[nodes < len(self.permitted.node_type)]
        wrong = old[~types[self.permitted.node_type[old]]]
        if len(wrong):
            names, trained = self.trained.dataset.nodes.node_type_names, self.trained
            own = names[self.permitted.node_type[wrong[0]]]
            possible = ", ".join(repr(names[kind]) for kind in np.flatnonzero(types))
            verb, other = ("lead to", "source") if backward else ("start from", "target")
            raise GatasError(
                f"links of the type {trained.names[edge_type]!r} {verb} nodes of the type {possible}, and "
                f"{trained.graph.id_of(int(wrong[0]))!r} is of the type {own!r}. Ask for another type of link, or for links "
                f"that have it as their {other}."
            )

    def _types(self, edge_type: int, end: str) -> NDArray[np.bool_] | None:
        """Which types of nodes may be at an end; None: any, as where no such link is known."""
        if self.permitted is None:
            return None
        types: NDArray[np.bool_] = getattr(self.permitted, end)[edge_type]
        return types if types.any() else None

    def _ends_in_split(self, split: str, node: int, edge_type: int, backward: bool) -> Ints:
        """Other ends of the links of a node in a split; also where these are listed under the inverse type."""
        pairs = self.trained.dataset.link_targets.splits.get(split)
        if pairs is None:
            return np.empty(0, np.int64)
        own, other = (pairs.target, pairs.source) if backward else (pairs.source, pairs.target)
        found = [other[(own == node) & (pairs.edge_type == edge_type) & (pairs.label == 1)]]
        if (turned := self._inverse(edge_type)) is not None:
            found.append(own[(other == node) & (pairs.edge_type == turned) & (pairs.label == 1)])
        return np.concatenate(found)

    def _inverse(self, edge_type: int) -> int | None:
        """Return the type of link that a type is when turned around, which may be itself; None if it is not asked for."""
        graph, names = self.trained.graph, self.trained.names
        if names[edge_type] not in graph.edge_type_names:
            return None
        inverse = graph.inverse_of[graph.edge_type_names.index(names[edge_type])]
        name = None if inverse == NO_INVERSE else graph.edge_type_names[inverse]
        return names.index(name) if name in names else None

    def _ends_in_graph(self, node: int, edge_type: int, backward: bool) -> Ints:
        """Other ends of the edges of a node that are links of a type."""
        graph, name = self.trained.graph, self.trained.names[edge_type]
        if name not in graph.edge_type_names:
            return np.empty(0, np.int64)
        kind = graph.edge_type_names.index(name)
        inverse = graph.inverse_of[kind]
        if not backward or inverse != NO_INVERSE:
            edges, wanted = graph.edges_from(np.array([node])), inverse if backward else kind
            found: Ints = edges.target[edges.edge_type == wanted].astype(np.int64)
            return found
        whole = graph if isinstance(graph, Graph) else graph.joined()
        found = whole.source[(whole.neighbour == node) & (whole.edge_type == kind)].astype(np.int64)
        return found
