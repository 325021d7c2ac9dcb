"""`PartScores`: links scored in float64 by the parts of a model: own vectors, neighbourhoods, typed paths.

B queries of one type of link, N nodes, D numbers in a vector.
"""

from collections.abc import Iterable
from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gatas.inference.exact import ExactEncoder, gathered
from gatas.nn.link_head import LinkHead, PathPlaces, PathRows
from gatas.nn.path_weights import PathWeights
from gatas.ops.evidence import EvidenceInputs, path_evidence
from gatas.ops.pair_evidence import PairInputs, pair_evidence
from gatas.tasks import LinkPredictor
from gatas.tasks.link_paths import with_met_paths

NodeVectors = dict[str, Tensor]
"""What is known about some nodes, by name: (n, …) each."""
SOURCES = 256
"""Sources of pairs whose rows are held together."""


class PartScores:
    """Scores links between nodes given by index as the sum of parts, which is a log-odds.

    Args:
        exact: The encoder of a model with parts, over its graph or over that with new nodes.
    """

    def __init__(self, exact: ExactEncoder) -> None:
        assert isinstance(exact.model, LinkPredictor)
        self.exact, self.head = exact, in_float64(exact.model.link_head)

    @property
    def size(self) -> int:
        """Return how many numbers are known about a node."""
        return sum(self.head.widths.values())

    @torch.no_grad()
    def known_about(self, nodes: Tensor | None, encoded: Tensor | None) -> NodeVectors:
        """Return what scores need to know about nodes, or about all; `encoded` is what the encoder says, where it is needed."""
        head, new, found = self.head, self.exact.new, NodeVectors()
        if "vectors" in head.parts:
            found["vectors"] = gathered(head.vectors.weight, new.vectors, nodes)
            found["popularity"] = gathered(head.popularity.weight, new.popularity, nodes)
        if encoded is not None:
            found["neighbourhood"] = head.projection(encoded)
        return found

    @torch.no_grad()
    def of_pairs(self, source: Tensor, edge_type: Tensor, target: Tensor, sources: NodeVectors, targets: NodeVectors) -> Tensor:
        """Return (n,) log-odds of links; `sources` and `targets` are what is known about their ends."""
        found, (sources, targets) = [], map(as_float64, (sources, targets))
        for part in self.head.parts:
            if part == "paths":
                found.append(self._pair_evidence(source, edge_type, target))
                continue
            scores = self._decoder(part)(sources[part], targets[part], edge_type)
            if part == "vectors":
                scores = scores + sources["popularity"][:, 0] + targets["popularity"][:, 1]
            found.append(scores)
        return self.head.together(torch.stack(found), edge_type)

    @torch.no_grad()
    def of_all(
        self, query: Tensor, edge_type: int, own: NodeVectors, blocks: Iterable[NodeVectors], *, backward: bool
    ) -> Tensor:
        """Return (B, N) log-odds of all nodes as targets of links from the queries; as their sources if `backward`.

        `own` is what is known about the queries, `blocks` about all nodes, some at a time.
        """
        types, own = torch.full_like(query, edge_type), as_float64(own)
        parts: list[str] = [part for part in self.head.parts if part != "paths"]
        queries = {part: self._decoder(part).query(own[part], types, backward=backward) for part in parts}
        scores = [
            torch.stack([self._products(part, queries, own, block, backward) for part in parts]) for block in blocks if parts
        ]
        found = dict(zip(parts, torch.cat(scores, -1), strict=True)) if parts else {}
        if "paths" in self.head.parts:
            found["paths"] = self._evidence(query, edge_type, backward)
        return self.head.together([found[part] for part in self.head.parts], types)

    def _products(self, part: str, queries: NodeVectors, own: NodeVectors, block: NodeVectors, backward: bool) -> Tensor:
        """(B, n) scores of some nodes by their vectors."""
        scores = queries[part] @ block[part].double().T
        if part == "vectors":
            side, other = (1, 0) if backward else (0, 1)
            scores += own["popularity"][:, side, None] + block["popularity"][:, other].double()
        return scores

    def path_rows(self, nodes: Tensor) -> PathRows:
        """Return the typed paths that lead from nodes, over the graph with new nodes if there are any."""
        _, table, positions = self.exact.sampler.located(nodes)
        if "paths" in self.head.parts and self.exact.is_extended:
            self._meet(table.path)
        columns = (table.indptr, table.node, table.path, table.probability, table.num_levels)
        return PathRows(positions, *columns, self.exact.log_degree)

    def _meet(self, path: Tensor) -> None:
        """Give weights to paths that training never saw."""
        found = met_paths(self.exact, self.head, path)
        if found is not None:
            self.head.replace_paths(*found)
            self.__dict__.pop("_factors", None)

    def _evidence(self, query: Tensor, edge_type: int, backward: bool) -> Tensor:
        """(B, N) scores of all nodes by typed paths."""
        rows = self.path_rows(query)
        weights, unreached, place = self._path_weights(torch.full_like(query, edge_type))
        places = self.head.reversed_path_place if backward else self.head.path_place
        asked = (weights, unreached, place, query, rows.position, self._slot, places)
        return path_evidence(EvidenceInputs(*asked, *_table(rows), rows.num_levels, len(self._slot), backward))

    def _pair_evidence(self, source: Tensor, edge_type: Tensor, target: Tensor) -> Tensor:
        """(n,) scores of pairs by typed paths: rows of some sources at a time."""
        found = torch.empty(len(source), dtype=torch.float64, device=source.device)
        for pairs in self._pairs_by_source(source):
            rows = self.path_rows(source[pairs])
            weights, unreached, place = self._path_weights(edge_type[pairs])
            asked = (weights, unreached, place, source[pairs], target[pairs], rows.position, self.head.path_place)
            found[pairs] = pair_evidence(PairInputs(*asked, *_table(rows), rows.num_levels, False))
        return found

    def _pairs_by_source(self, source: Tensor) -> list[Tensor]:
        """Cut pairs into parts with few sources each, whose rows are held together."""
        place = torch.unique(source, return_inverse=True)[1]
        sizes = torch.bincount(place // SOURCES).tolist()
        return list(place.argsort(stable=True).split(sizes))

    def _path_weights(self, edge_type: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of paths, and of none, for the types that occur; and which of these each link has."""
        types, place = torch.unique(edge_type, return_inverse=True)
        return self.head.paths.of_types(types, self._factors), self.head.paths.unreached[types], place

    @cached_property
    def _factors(self) -> Tensor | None:
        with torch.no_grad():
            return None if self.head.paths.is_table else self.head.paths.factors()

    @cached_property
    def _slot(self) -> Tensor:
        """Every node is a candidate."""
        return torch.arange(self.exact.num_nodes, dtype=torch.int32, device=self.exact.device)

    def _decoder(self, part: str) -> Any:
        return self.head.vector_decoder if part == "vectors" else self.head.neighbourhood_decoder


def met_paths(exact: ExactEncoder, head: LinkHead, path: Tensor) -> tuple[PathWeights, PathPlaces] | None:
    """Return the weights of a head with those of paths that new edges make and training never saw; None without any."""
    model = exact.model
    if not exact.is_extended or not isinstance(model, LinkPredictor):
        return None
    return with_met_paths(head, torch.unique(path).long().cpu().numpy(), model.graph, model.edge_types)


def _table(rows: PathRows) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return rows.log_degree, rows.indptr, rows.node, rows.path, rows.probability


def in_float64(head: LinkHead) -> LinkHead:
    """Return a head with weights in float64, but for the vectors of nodes: these stay the model's own, which are many."""
    kept = [head.vectors, head.popularity] if "vectors" in head.parts else []
    memo: dict[int, Any] = {id(module): module for module in kept}
    exact = deepcopy(head, memo)
    for module in exact.children():
        if not any(module is one for one in kept):
            module.double()
    exact.part_weights, exact.type_bias = head.part_weights.double(), head.type_bias.double()
    return exact


def as_float64(known: NodeVectors) -> NodeVectors:
    """Return what is known about nodes in float64."""
    return {name: tensor.double() for name, tensor in known.items()}
