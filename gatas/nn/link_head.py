"""`LinkHead`: the score of a typed link as a sum of parts, each of which is learned by itself."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from gatas.nn.link_decoders import DecoderName, VectorDecoder
from gatas.nn.path_weights import PathWeights
from gatas.ops.evidence import EvidenceInputs, path_evidence
from gatas.ops.pair_evidence import PairInputs, pair_evidence

PartName = Literal["vectors", "neighbourhood", "paths"]
SMALL = 1e-3
"""Vectors start that small: what a link is scored by grows from its own examples alone."""


class PathRows(NamedTuple):
    """Rows of typed paths that lead from nodes, and what turns their probabilities around."""

    position: Tensor  # (B,) the row of each query
    indptr: Tensor
    node: Tensor
    path: Tensor
    probability: Tensor
    num_levels: int
    log_degree: Tensor  # (N,) ln of the total weight of a node's edges


class PathPlaces(NamedTuple):
    """Which paths have weights: the place of every path id among them, or -1; and that of the path turned around."""

    forward: Tensor  # (path ids,) int32
    backward: Tensor  # (path ids,) int32

    @property
    def ids(self) -> Tensor:
        """Return (P,) ids of the paths with weights, in the order of their places: ascending, but for those that were added."""
        known = (self.forward >= 0).nonzero()[:, 0]
        return known[self.forward[known].argsort()]


class LinkHead(nn.Module):
    """Scores typed links by up to three parts: vectors of the nodes' own, what their neighbourhoods say, and paths between.

    Each part learns to tell links apart alone. A part with a vector for each node can learn its training links by heart;
    added up in training, it would leave the others nothing to learn. How much each part counts is fitted afterwards, to links
    that none of them was trained on: `part_weights`, and `type_bias`, which makes sums into log-odds.

    Args:
        parts: Which parts.
        num_nodes: N.
        num_types: T, types of link.
        encoder_size: Width of what the encoder says about a node.
        decoder: How vectors are compared.
        vector_size: D, numbers in a vector.
        paths: Weights of paths, where these are a part.
        places: Which paths have weights.
    """

    part_weights: Tensor
    type_bias: Tensor
    path_ids: Tensor
    path_place: Tensor
    reversed_path_place: Tensor

    def __init__(
        self,
        parts: Sequence[PartName],
        num_nodes: int,
        num_types: int,
        encoder_size: int,
        *,
        decoder: DecoderName = "complex",
        vector_size: int = 256,
        paths: PathWeights | None = None,
        places: PathPlaces | None = None,
    ) -> None:
        super().__init__()
        self.parts = tuple(parts)
        if "vectors" in parts:
            self.vectors = nn.Embedding(num_nodes, vector_size)
            self.popularity = nn.Embedding(num_nodes, 2)  # as a source, and as a target
            nn.init.normal_(self.vectors.weight, std=SMALL)
            nn.init.zeros_(self.popularity.weight)
            self.vector_decoder = VectorDecoder(decoder, num_types, vector_size)
        if "neighbourhood" in parts:
            self.projection = nn.Linear(encoder_size, vector_size)
            self.neighbourhood_decoder = VectorDecoder(decoder, num_types, vector_size)
        if "paths" in parts:
            assert paths is not None and places is not None
            self.paths = paths
            self.register_buffer("path_place", places.forward, persistent=False)
            self.register_buffer("reversed_path_place", places.backward, persistent=False)
            self.register_buffer("path_ids", places.ids)
        self.register_buffer("part_weights", torch.ones(len(self.parts)))
        self.register_buffer("type_bias", torch.zeros(num_types))

    @property
    def path_places(self) -> PathPlaces:
        return PathPlaces(self.path_place, self.reversed_path_place)

    def replace_paths(self, paths: PathWeights, places: PathPlaces) -> None:
        """Give weights to other paths; what was learned about those before is lost."""
        device = self.type_bias.device
        self.paths, self.path_ids = paths.to(device), places.ids.to(device)
        self.path_place, self.reversed_path_place = places.forward.to(device), places.backward.to(device)

    def node_vectors(self, nodes: Tensor, encoded: Tensor | None) -> dict[str, Tensor]:
        """Return what the parts know about (n,) nodes: (n, D) vectors, by part."""
        found = {}
        if "vectors" in self.parts:
            found["vectors"] = self.vectors(nodes)
            found["popularity"] = self.popularity(nodes)
        if "neighbourhood" in self.parts:
            found["neighbourhood"] = self.projection(encoded)
        return found

    @property
    def widths(self) -> dict[str, int]:
        """Return how many numbers of each kind the parts need of a node."""
        size = {"vectors": self.vectors.embedding_dim, "popularity": 2} if "vectors" in self.parts else {}
        return {**size, "neighbourhood": self.projection.out_features} if "neighbourhood" in self.parts else size

    def joined(self, vectors: dict[str, Tensor], nodes: Tensor) -> Tensor:
        """Return (n, …) all that is known about nodes, side by side."""
        empty = self.type_bias.new_empty(len(nodes), 0)
        return torch.cat([vectors[name] for name in self.widths] or [empty], dim=-1)

    def split(self, joined: Tensor) -> dict[str, Tensor]:
        """Return what `joined` put side by side, by name."""
        return (
            dict(zip(self.widths, torch.split(joined, list(self.widths.values()), dim=-1), strict=True)) if self.widths else {}
        )

    def candidate_scores(
        self,
        query: Tensor,
        edge_type: Tensor,
        own: dict[str, Tensor],
        candidates: dict[str, Tensor],
        rows: PathRows | None,
        slot: Tensor,
        num_candidates: int,
        *,
        backward: bool,
    ) -> list[Tensor]:
        """Return (B, C) scores of all candidates by each part; `backward` if queries are the targets of links.

        `own` and `candidates` are `node_vectors` of queries and of candidates; `rows` are needed where paths are a part.
        """
        found = []
        for part in self.parts:
            if part == "paths":
                assert rows is not None
                found.append(self._path_scores(query, edge_type, rows, slot, num_candidates, backward))
                continue
            decoder = self._decoder(part)
            scores = decoder.query(own[part], edge_type, backward=backward) @ candidates[part].T
            if part == "vectors":
                side, other = (1, 0) if backward else (0, 1)
                scores = scores + own["popularity"][:, side, None] + candidates["popularity"][:, other]
            found.append(scores)
        return found

    def pair_scores(
        self,
        source: Tensor,
        target: Tensor,
        edge_type: Tensor,
        sources: dict[str, Tensor],
        targets: dict[str, Tensor],
        rows: PathRows | None,
    ) -> Tensor:
        """Return (parts, B) scores of single links; `rows` are those of the sources."""
        found = []
        for part in self.parts:
            if part == "paths":
                assert rows is not None
                found.append(self._pair_evidence(source, target, edge_type, rows))
                continue
            scores = self._decoder(part)(sources[part], targets[part], edge_type)
            if part == "vectors":
                scores = scores + sources["popularity"][:, 0] + targets["popularity"][:, 1]
            found.append(scores)
        return torch.stack(found)

    def together(self, scores: Tensor | list[Tensor], edge_type: Tensor) -> Tensor:
        """Return log-odds of links: the parts' scores (parts, B, …), weighted, and the bias of the type asked for."""
        stacked = scores if isinstance(scores, Tensor) else torch.stack(scores)
        weights, bias = self.part_weights.to(stacked.dtype), self.type_bias.to(stacked.dtype)[edge_type]
        total = torch.einsum("p,p...->...", weights, stacked)
        return total + bias.view(-1, *[1] * (total.ndim - 1))

    def cubes(self, sources: dict[str, Tensor], targets: dict[str, Tensor], edge_type: Tensor) -> Tensor:
        """Return (B,) the cubed moduli that N3 regularisation keeps small."""
        parts = [part for part in self.parts if part != "paths"]
        found = [self._decoder(part).cubes(sources[part], targets[part], edge_type) for part in parts]
        return torch.stack(found).sum(0) if found else torch.zeros_like(edge_type, dtype=torch.float32)

    def _decoder(self, part: str) -> VectorDecoder:
        return self.vector_decoder if part == "vectors" else self.neighbourhood_decoder

    def _path_scores(self, query: Tensor, edge_type: Tensor, rows: PathRows, slot: Tensor, size: int, backward: bool) -> Tensor:
        given = EvidenceInputs(
            weights=self.paths(),
            unreached=self.paths.unreached,
            link_type=edge_type,
            query=query,
            row=rows.position,
            slot=slot,
            path_place=self.reversed_path_place if backward else self.path_place,
            log_degree=rows.log_degree,
            indptr=rows.indptr,
            node=rows.node,
            path=rows.path,
            probability=rows.probability,
            num_levels=rows.num_levels,
            num_slots=size,
            backward=backward,
        )
        return path_evidence(given)

    def _pair_evidence(self, source: Tensor, target: Tensor, edge_type: Tensor, rows: PathRows) -> Tensor:
        given = PairInputs(
            weights=self.paths(),
            unreached=self.paths.unreached,
            link_type=edge_type,
            query=source,
            other=target,
            row=rows.position,
            path_place=self.path_place,
            log_degree=rows.log_degree,
            indptr=rows.indptr,
            node=rows.node,
            path=rows.path,
            probability=rows.probability,
            num_levels=rows.num_levels,
            backward=False,
        )
        return pair_evidence(given)
