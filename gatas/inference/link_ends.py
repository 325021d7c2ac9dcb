"""Which nodes may be at the other end of a link: those of the types that such links have there, and not linked already."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gatas.datasets.permitted_ends import PermittedEnds
from gatas.errors import GatasError
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.inputs import Ints
from gatas.inference.trained import TrainedModel
from gatas.tasks.ranking import known_links


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

    def candidates(self, node: int, edge_type: int, *, backward: bool) -> NDArray[np.bool_]:
        """Return (N,) which nodes a link from a node may lead to that are not linked yet; if `backward`, may come from."""
        free = np.ones(self.trained.graph.num_nodes, np.bool_)
        types = self._types(edge_type, "sources" if backward else "targets")
        if types is not None and self.permitted is not None:
            free[: len(self.permitted.node_type)] = types[self.permitted.node_type]
        free[self._known(node, edge_type, backward)] = False
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

    def _known(self, node: int, edge_type: int, backward: bool) -> Ints:
        """Other ends of the links of a node that are known, in the graph or from training, and the node itself."""
        trained, found = self.trained, [np.array([node])]
        train = trained.dataset.link_targets.splits.get("train")
        if train is not None:
            own, other = (train.target, train.source) if backward else (train.source, train.target)
            found.append(other[(own == node) & (train.edge_type == edge_type) & (train.label == 1)])
        graph, name = trained.graph, trained.names[edge_type]
        if name in graph.edge_type_names:
            kind = graph.edge_type_names.index(name)
            inverse = graph.inverse_of[kind]
            if not backward or inverse != NO_INVERSE:
                edges, wanted = graph.edges_from(np.array([node])), inverse if backward else kind
                found.append(edges.target[edges.edge_type == wanted])
            else:
                whole = graph if isinstance(graph, Graph) else graph.joined()
                found.append(whole.source[(whole.neighbour == node) & (whole.edge_type == kind)].astype(np.int64))
        return np.concatenate(found).astype(np.int64)
