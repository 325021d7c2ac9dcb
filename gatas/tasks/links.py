"""Typed link prediction: is there a link of this type between these two nodes?"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from gatas.datasets import Dataset
from gatas.errors import ConfigError, GatasWarning
from gatas.graph import NO_INVERSE, Graph
from gatas.graph.inputs import Ints
from gatas.nn import PairHead
from gatas.nn.encoder import shapes_are_fixed
from gatas.nn.link_head import LinkHead, PathPlaces, PathRows
from gatas.nn.path_weights import PathWeights
from gatas.ops.distinct import distinct
from gatas.sampling import Neighbourhood
from gatas.sampling.sampler import Mode
from gatas.tasks.link_lists import Links
from gatas.tasks.link_paths import log_degrees, path_weights, walked_paths, walks_both_ways, with_met_paths
from gatas.tasks.model import Model
from gatas.tasks.settings import ModelSettings
from gatas.transitions import OnDemand, Transitions, TransitionSource
from gatas.transitions.build import Walks
from gatas.transitions.hidden import HiddenFolds


class LinkPredictor(Model):
    """Predicts whether there are typed links between nodes.

    Args:
        dataset: The data that it is made for.
        transitions: Transition probabilities, where they exist already; computed if left out.
        seed: Weights are a function of it.
        paths: Ids of the typed paths that have weights, ascending, where these are known from an earlier training; all that
            the transitions have if left out.
        settings: Those of `ModelConfig`, all optional. People change most often: `link_score` (vectors and paths, and
            neighbourhood where nodes have features or few edges), `num_steps` (C, the longest path; 3, or fewer where walks or
            typed paths are many), `vector_size` (512), `decoder` (of vectors; complex), `dropout` (0.3), `max_degree` and
            `max_candidates` (what is kept of large neighbourhoods; all that fits). Where neighbourhoods are looked at, also
            `sample_size` (50), `num_heads` (4), `head_size` and `neighbour_size` (50), and `node_embedding_size` (50 where
            nodes have no features, else 0). `link_score="pair"` is the paper's way, over two steps. `config` has what was
            taken, `choices` says why.

    >>> model = LinkPredictor(dataset, num_steps=3)
    >>> run = gatas.fit(model, dataset, seed=0)
    """

    asked_of_path: Tensor
    log_degree: Tensor

    def __init__(
        self,
        dataset: Dataset,
        *,
        transitions: TransitionSource | None = None,
        seed: int = 0,
        paths: Ints | None = None,
        **settings: Unpack[ModelSettings],
    ) -> None:
        self.given_paths = paths
        super().__init__(dataset, transitions=transitions, seed=seed, **settings)
        self.register_buffer("asked_of_path", torch.from_numpy(asked_of_path(dataset)), persistent=False)
        self.register_buffer("log_degree", log_degrees(dataset.graph), persistent=False)
        if transitions is None:  # others were told when rows were made
            self._warn_of_parts_left_out()
        self.hidden: HiddenFolds | None = None
        self.degrees_without: dict[int, Tensor] = {}  # `log_degree` of the graph without a fold

    @property
    def parts(self) -> tuple[str, ...]:
        """Return what a link's score is the sum of; nothing where it is the paper's head alone."""
        return self.head.parts if isinstance(self.head, LinkHead) else ()

    def _make_head(self) -> nn.Module:
        config = self.config
        if config.link_score == ("pair",):
            sizes = (self.encoder.output_size, len(self.names), config.pair_hidden_size)
            return PairHead(*sizes, products=config.pair_products)
        parts: Any = config.link_score
        if "paths" in parts and not walks_both_ways(self.graph):
            parts = tuple(part for part in parts if part != "paths")
            if not parts:
                raise ConfigError("link_score is paths alone, but some edges cannot be walked back. Add vectors to it.")
        weights, places = None, None
        if "paths" in parts:
            given = (self.edge_types, config.path_factors, self.given_paths)
            weights, places = path_weights(self.graph, self.transitions, *given)
        sizes = (self.graph.num_nodes, len(self.names), self.encoder.output_size)
        settings: Any = {"decoder": config.decoder, "vector_size": config.vector_size}
        return LinkHead(parts, *sizes, **settings, paths=weights, places=places)

    def _warn_of_parts_left_out(self) -> None:
        if "paths" in self.config.link_score and "paths" not in self.parts:
            warnings.warn(
                "some edges cannot be walked back, so paths between nodes say nothing about links here and are left out. "
                "Read the graph with direction: inverse to use them.",
                GatasWarning,
                stacklevel=3,
            )

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take weights, and with them the paths that have any: a table that was not built here may have others."""
        paths = state_dict.get("head.path_ids")
        if paths is not None and "paths" in self.parts and not torch.equal(paths.cpu(), self.link_head.path_ids.cpu()):
            ids = paths.cpu().numpy()
            known = path_weights(self.graph, self.transitions, self.edge_types, self.config.path_factors, ids)
            self.link_head.replace_paths(*known)
        return super().load_state_dict(state_dict, strict, assign)

    @property
    def link_head(self) -> LinkHead:
        """Return the head of a model whose score is a sum of parts."""
        assert isinstance(self.head, LinkHead)
        return self.head

    @property
    def edge_types(self) -> Ints:
        """Return the graph's edge type of each type of link, or -1."""
        known = self.graph.edge_type_names
        return np.array([known.index(name) if name in known else -1 for name in self.names], np.int64)

    def hide_links(self, links: Links, fold: Ints, *, reverse: bool) -> None:
        """Get ready to hide the links of one fold at a time from the graph that nodes are represented from."""
        walks = Walks(**{name: getattr(self.transitions.setting, name) for name in Walks.__dataclass_fields__})
        columns = (links.source, links.edge_type, links.target, fold, self.edge_types)
        settings: Any = {"reverse": reverse, "on_demand": not isinstance(self.transitions, Transitions)}
        self.hidden, self.degrees_without = HiddenFolds(self.graph, walks, *columns, **settings), {}

    def stop_hiding(self) -> None:
        """Represent nodes from all of the graph from now on, and let go of the tables of all folds."""
        if self.hidden is not None:
            self.hide(None)
            self.hidden.close()
        self.hidden, self.degrees_without = None, {}

    def hide(self, fold: int | None, following: int | None = None) -> None:
        """Represent nodes from the graph without the links of a fold, or from all of it; the `following` fold is made ready."""
        device = self.log_degree.device
        if fold is None or self.hidden is None:
            self.sampler.transitions, self.log_degree = self.transitions, log_degrees(self.graph).to(device)
            return
        self.sampler.transitions = self.hidden.table(fold)
        if fold not in self.degrees_without:
            self.degrees_without[fold] = log_degrees(self.hidden.graph_without(fold))
        self.log_degree = self.degrees_without[fold].to(device)
        if following is not None:
            self.hidden.ahead(following)

    @contextmanager
    def looking_at(self, graph: Graph) -> Iterator[None]:
        """Represent nodes from another graph of the same nodes and types for a while, such as one with more edges."""
        walks, setting = self.transitions, self.transitions.setting
        limits: Any = {name: getattr(setting, name) for name in ("max_candidates", "max_degree", "revisits")}
        make = Transitions.build if isinstance(walks, Transitions) else OnDemand
        self.transitions = make(graph, setting.num_steps, setting.kind, **limits)
        self.graph, before = graph, self.graph
        self.hide(None)
        known = self._meet_paths()
        try:
            yield
        finally:
            self.transitions, self.graph = walks, before
            if known is not None:
                self.link_head.replace_paths(*known)
            self.hide(None)

    def _meet_paths(self) -> tuple[PathWeights, PathPlaces] | None:
        """Give weights to paths that rows have and training never saw; return what there was before, where there are any."""
        if "paths" not in self.parts or not isinstance(self.transitions, Transitions):  # on demand all paths have weights
            return None
        head = self.link_head
        found = with_met_paths(head, walked_paths(self.transitions, self.graph), self.graph, self.edge_types)
        if found is None:
            return None
        before = head.paths, head.path_places
        head.replace_paths(*found)
        return before

    def forward(
        self,
        source: Tensor,
        edge_type: Tensor,
        target: Tensor,
        label: Tensor,
        whole: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Return (B,) logits in training, where `label` says which pairs are links that neighbourhoods must not give away.

        Where the pairs are a part of a batch, the links of the `whole` are hidden.
        """
        both = torch.cat([source, target])
        if isinstance(self.head, LinkHead):
            distinct_nodes, own = distinct(both)
            seen = self.represent(distinct_nodes).index_select(0, own)
            return self.score(seen[: len(source)], seen[len(source) :], edge_type, (source, target))
        nodes, place = (both, None) if shapes_are_fixed(both) else distinct(both)  # a node of several pairs is seen once
        neighbourhood = self.sampler(nodes)
        if self.config.exclude_targets:
            asked = whole or {"source": source, "edge_type": edge_type, "target": target, "label": label}
            neighbourhood = self._without(nodes, neighbourhood, self._links(**asked))
        representations = self._encoded(nodes, neighbourhood)
        representations = representations if place is None else representations.index_select(0, place)
        return self.score(representations[: len(source)], representations[len(source) :], edge_type)

    def represent(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """Return what links of (B,) nodes are scored by: (B, K·F'') representations, or what the parts of the score need."""
        if not isinstance(self.head, LinkHead):
            return super().represent(target, draw=draw, mode=mode, first_node=first_node)
        return self.head.joined(self.head.node_vectors(target, self._encoded_if_needed(target, draw, mode)), target)

    def depth_of(self, parameters: Mapping[str, Tensor]) -> Tensor | None:
        """Return q, where neighbourhoods are looked at; nothing else learns it."""
        return super().depth_of(parameters) if not self.parts or "neighbourhood" in self.parts else None

    def _encoded_if_needed(self, nodes: Tensor, draw: Tensor | None = None, mode: Mode | None = None) -> Tensor | None:
        """Encode nodes, if what their neighbourhoods say is a part of the score."""
        return super().represent(nodes, draw=draw, mode=mode) if "neighbourhood" in self.parts else None

    def score(self, source: Tensor, target: Tensor, edge_type: Tensor, nodes: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return (B,) logits of the types asked for, from what `represent` returns; `nodes` are the sources and targets."""
        if isinstance(self.head, LinkHead):
            return self.head.together(self.part_scores(source, target, edge_type, nodes), edge_type)
        logits: Tensor = self.head(source, target)  # (B, num_types)
        return logits.gather(1, edge_type[:, None]).squeeze(1)

    def part_scores(self, source: Tensor, target: Tensor, edge_type: Tensor, nodes: tuple[Tensor, Tensor] | None) -> Tensor:
        """Return (parts, B) scores of links by each part, from what `represent` returns."""
        assert isinstance(self.head, LinkHead) and nodes is not None
        rows = self.path_rows(nodes[0]) if "paths" in self.parts else None
        return self.head.pair_scores(*nodes, edge_type, self.head.split(source), self.head.split(target), rows)

    def candidate_scores(
        self, query: Tensor, edge_type: Tensor, own: Tensor, candidates: Tensor, slot: Tensor, *, backward: bool
    ) -> list[Tensor]:
        """Return (B, C) scores by each part of candidates as targets of links from the queries; as their sources if `backward`.

        `own` and `candidates` are what `represent` returns for both; `slot` is the place of each node among the candidates,
        or -1.
        """
        assert isinstance(self.head, LinkHead)
        rows = self.path_rows(query) if "paths" in self.parts else None
        vectors = self.head.split(own), self.head.split(candidates)
        return self.head.candidate_scores(query, edge_type, *vectors, rows, slot, len(candidates), backward=backward)

    def path_rows(self, nodes: Tensor) -> PathRows:
        """Return the typed paths that lead from nodes."""
        _, table, positions = self.sampler.located(nodes)
        columns = (table.indptr, table.node, table.path, table.probability, table.num_levels)
        return PathRows(positions, *columns, self.log_degree)

    def _links(self, source: Tensor, edge_type: Tensor, target: Tensor, label: Tensor, **_: Tensor) -> Tensor:
        return torch.where(label > 0, self._numbered(source, target, edge_type), -1)

    def _numbered(self, one: Tensor, other: Tensor, asked: Tensor) -> Tensor:
        """Give a link of a type one number, whichever its direction."""
        low, high = torch.minimum(one, other), torch.maximum(one, other)
        return (low * self.graph.num_nodes + high) * len(self.names) + asked

    def _without(self, target: Tensor, neighbourhood: Neighbourhood, links: Tensor) -> Neighbourhood:
        """Empty the slots of neighbours whose path is one of the links alone, in either direction."""
        asked = self.asked_of_path[neighbourhood.path.clamp_max(len(self.asked_of_path) - 1)]  # (B, S)
        number = torch.where(asked >= 0, self._numbered(target[:, None], neighbourhood.node, asked), -2)
        links = links.sort().values
        found = links[torch.searchsorted(links, number).clamp_max(len(links) - 1)] == number
        mask = neighbourhood.mask & ~found
        log_probability = neighbourhood.log_probability.masked_fill(~mask, -torch.inf)
        return Neighbourhood(neighbourhood.node, neighbourhood.path, log_probability, mask)


def asked_of_path(dataset: Dataset) -> Ints:
    """Return the type of link that each path of one step is, forwards or backwards; -1 for none and for all longer paths."""
    graph, asked = dataset.graph, [link_type_of(name, dataset) for name in dataset.graph.edge_type_names]
    backwards = [asked[inverse] if inverse != NO_INVERSE else NO_INVERSE for inverse in graph.inverse_of]
    return np.array([-1, *(max(pair) for pair in zip(asked, backwards, strict=True)), -1])


def link_type_of(name: str, dataset: Dataset) -> int:
    return dataset.names.index(name) if name in dataset.names else -1
