"""`Predictor`: a trained model over a graph, the one thing that embeds, predicts, ranks, explains and takes new nodes."""

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray

from gatas.errors import GatasError, TooLargeError
from gatas.graph import Graph
from gatas.graph.counts import counted
from gatas.graph.extended import ExtendedGraph
from gatas.graph.inputs import Ints
from gatas.inference.all_nodes import AllNodes
from gatas.inference.exact import ExactEncoder
from gatas.inference.final_test import nodes_in_final_test
from gatas.inference.ids import ids_of, indices_of, types_of
from gatas.inference.link_ends import LinkEnds
from gatas.inference.links import rank_ends, score_pairs, share_of
from gatas.inference.new_nodes import EmbeddingRule, NewNodeSettings, extended
from gatas.inference.prediction import LinkPrediction, cut_short
from gatas.inference.ranking import evaluate_ranking
from gatas.inference.trained import TrainedModel, silent
from gatas.progress import ProgressCallback
from gatas.sampling.sampler import Mode
from gatas.tasks.link_paths import walks_both_ways
from gatas.training.final_test import VALIDATION_EDGES
from gatas.transitions import Nearby, Transitions

if TYPE_CHECKING:
    from gatas.inference.embedding_map import EmbeddingMap
    from gatas.inference.explanation import Explanation
    from gatas.inference.export import ExportedModel
    from gatas.inference.link_explanation import LinkExplanation
    from gatas.inference.program_formats import ProgramFormat
    from gatas.inference.strongest_paths import StrongPath

MapMethod = Literal["auto", "t-sne", "umap"]
Id = int | str
Link = tuple[Id, str, Id]


class Predictor(TrainedModel):
    """A trained model over the graph that it was trained on, or over that graph with new nodes.

    `gatas.load(folder)` and `run.predictor` return one. Answers for some nodes compute the transitions of these nodes only,
    and are the same for a node alone and among others.

    >>> predictor = gatas.load("runs/digits")
    >>> predictor.predict([42]).labels
    ['1']
    """

    def __repr__(self) -> str:
        names = f"{', '.join(cut_short(name) for name in self.names[:5])}{' …' if len(self.names) > 5 else ''}"
        return f"Predictor({self.task}: {names}; {self._graph_in_words()})"

    def _repr_html_(self) -> str:
        rows = {
            "data": self.dataset.name,
            "task": self.task,
            "predicted": ", ".join(self.names[:20]) + (" …" if len(self.names) > 20 else ""),
            "graph": self._graph_in_words(),
            "neighbours": self.mode if len(self.draws) == 1 else f"{self.mode}, mean of {len(self.draws)} draws",
        }
        cells = (f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
        return f"<table><caption>Predictor</caption>{''.join(cells)}</table>"

    def _graph_in_words(self) -> str:
        new = f"{len(self.new_indices):,} of them new, " if len(self.new_indices) else ""
        return f"{counted(self.graph.num_nodes, 'node')}, {new}{counted(self.graph.num_edges, 'edge')}"

    def to(self, device: str | torch.device) -> "Predictor":
        """Move the model to a device; new nodes are added afterwards."""
        if isinstance(self.graph, ExtendedGraph):
            raise GatasError("a predictor with new nodes cannot be moved. Move the one without them, and add them again.")
        self.model.to(device)
        self._replace_encoder()
        return self

    def prepare(self) -> "Predictor":
        """Compute the transitions of all nodes once, if they fit in memory: each later answer is quicker."""
        setting = self.model.transitions.setting
        if isinstance(self.model.transitions, Nearby) and isinstance(self.graph, Graph):
            try:
                table = Transitions.build(
                    self.graph,
                    setting.num_steps,
                    setting.kind,
                    None,
                    setting.max_candidates,
                    max_degree=setting.max_degree,
                    revisits=setting.revisits,
                )
            except TooLargeError:
                return self
            self.model.replace_transitions(table)
            self._replace_encoder()
        return self

    def prepare_links(self, *, progress: ProgressCallback = silent) -> "Predictor":
        """Represent all nodes once, where links are ranked by that: each later ranking is quicker."""
        if self.predicts_links:
            for number, draw in enumerate(self.all_nodes.draws):
                for _ in self.all_nodes.blocks(draw, share_of(progress, number, len(self.all_nodes.draws))):
                    pass
            _ = self.link_ends.permitted
        return self

    def _replace_encoder(self) -> None:
        self.exact = ExactEncoder(self.model)
        self.__dict__.pop("all_nodes", None)

    @cached_property
    def all_nodes(self) -> AllNodes:
        """Return what is known about all nodes that links are scored by, kept once it is made."""
        self.check_predicts_links()
        return AllNodes(self)

    @cached_property
    def link_ends(self) -> LinkEnds:
        """Return which nodes may be at the ends of links."""
        return LinkEnds(self)

    def embed(self, ids: Any, *, batch_size: int | None = None) -> NDArray[np.float32]:
        """Return (n, K·F'') representations of nodes given by id; their own vectors, where links are scored by these alone.

        Args:
            ids: A list, an array, a column, or a single id.
            batch_size: Nodes at a time; changes memory and speed, not the vectors.
        """
        return self.embed_indices(indices_of(self.graph, ids), batch_size)

    def embed_all(self, *, progress: ProgressCallback = silent) -> NDArray[np.float32]:
        """Return (N, K·F'') representations of all nodes, in node order."""
        return self.embed_indices(np.arange(self.graph.num_nodes), progress=progress)

    def predict(self, ids: Any, *, batch_size: int | None = None, draws: int | None = None) -> Any:
        """Predict the classes of nodes given by id, a `Prediction`; or their numbers, a `NumberPrediction`.

        Args:
            ids: A list, an array, a column, or a single id.
            batch_size: Nodes at a time; changes memory and speed, not the answers.
            draws: How often neighbours are drawn, to see how far answers depend on it: they are then the mean over these
                draws, and `deviations` their standard deviation.

        >>> predictor.predict([42], draws=20).deviations
        """
        self.check_predicts_nodes()
        return self.predict_indices(indices_of(self.graph, ids), batch_size, draws)

    def predict_links(self, sources: Any, edge_types: Any, targets: Any) -> NDArray[np.float32]:
        """Return (n,) probabilities of links between nodes given by id; one type for all, or one for each."""
        return self.score_links(sources, edge_types, targets).probabilities

    def score_links(
        self, sources: Any, edge_types: Any, targets: Any, *, progress: ProgressCallback = silent
    ) -> LinkPrediction:
        """Score links between nodes given by id; what was asked for is in the result beside the probabilities."""
        return self.score_indices(*self._links_by_index(sources, edge_types, targets), progress)

    def _links_by_index(self, sources: Any, edge_types: Any, targets: Any) -> tuple[Ints, Ints, Ints]:
        """Sources, types and targets of links between nodes given by id."""
        self.check_predicts_links()
        source, target = indices_of(self.graph, sources), indices_of(self.graph, targets)
        if len(source) != len(target):
            raise GatasError(f"{len(source)} sources and {len(target)} targets were given. Give one of each per link.")
        return source, types_of(self.names, edge_types, len(source), "type of link"), target

    def score_indices(self, source: Ints, edge_type: Ints, target: Ints, progress: ProgressCallback = silent) -> LinkPrediction:
        """Score links between nodes given by index, of types given by number."""
        return score_pairs(self.all_nodes, source, edge_type, target, progress)

    def rank_links(
        self,
        source: Any = None,
        edge_type: str | None = None,
        top: int = 10,
        *,
        target: Any = None,
        progress: ProgressCallback = silent,
    ) -> LinkPrediction:
        """Find the `top` likeliest links of a type from a node, or from each of several, likeliest first.

        Links that are known, in the graph or from training, are left out, and so is a link of a node to itself. Where nodes
        have types, only nodes of types that known links have at that end are looked at.

        Args:
            source: The id of a node, or several.
            edge_type: The type of link; may be left out if there is only one.
            top: How many links for each node.
            target: The id of a node, or several, in place of `source`: which links lead there?
            progress: Told how much of it is done, from 0 to 1.

        >>> predictor.rank_links("ada", "knows", top=3).table()
        >>> predictor.rank_links(target="ada", edge_type="knows")
        """
        self.check_predicts_links()
        if (source is None) == (target is None):
            raise GatasError(f"source is {source!r} and target is {target!r}; give one of them, and the other is looked for.")
        asked = indices_of(self.graph, target if source is None else source)
        kind = int(types_of(self.names, self.link_type(edge_type), 1, "type of link")[0])
        return rank_ends(self.all_nodes, self.link_ends, asked, kind, top, progress, backward=source is None)

    def evaluate_ranking(
        self, split: str = "test", *, batch_size: int | None = None, progress: ProgressCallback = silent
    ) -> dict[str, Any]:
        """Rank each link of a split among all nodes that could stand at its ends; return MRR and Hits@1, 3, 10.

        Both ends are asked for. Candidates are all nodes of the types that known links of a type have at that end, or all nodes
        where nodes have no types, without other known links of any split. Equal scores share the mean of their ranks. Where the
        data has `validation_edges`, test links are ranked with these as edges, and the metrics say so.

        Args:
            split: `"train"`, `"valid"` or `"test"`.
            batch_size: Queries that are scored together; changes memory and speed, not ranks.
            progress: Told how much of it is done, from 0 to 1.

        >>> gatas.load("runs/kinship").evaluate_ranking("test")["mrr"]
        """
        self.check_predicts_links()
        with nodes_in_final_test(self.all_nodes, split) as nodes:
            found = evaluate_ranking(nodes, split, batch_size=batch_size, progress=progress)
        return found if nodes is self.all_nodes else {**found, VALIDATION_EDGES: True}

    @overload
    def explain(self, asked: Id, *, mode: Mode | None = None, draw: int = -1, answer: str | None = None) -> "Explanation": ...

    @overload
    def explain(
        self, asked: Id | Link, *, mode: Mode | None = None, draw: int = -1, answer: str | None = None
    ) -> "Explanation | LinkExplanation": ...

    def explain(
        self, asked: Id | Link, *, mode: Mode | None = None, draw: int = -1, answer: str | None = None
    ) -> "Explanation | LinkExplanation":
        """Show what an answer rests on: which neighbours, over which typed paths, and what each does to it.

        A link of a model whose score is a sum of parts is explained by `explain_link`: what its log-odds are the sum of.

        Args:
            asked: The id of a node, or a link (source, type, target).
            mode: Which neighbours are looked at; by default those that answers look at.
            draw: Which of the drawn neighbourhoods; -1 is the one that a single draw answers by.
            answer: Another class than the likeliest.
        """
        from gatas.inference.explain import explain
        from gatas.inference.explain_link import scores_by_parts

        if isinstance(asked, tuple | list) and len(asked) == 3 and answer is None and scores_by_parts(self):
            return self.explain_link(*asked, mode=mode, draw=draw)
        return explain(self, asked, mode=mode, draw=draw, answer=answer)

    def explain_link(
        self, source: Id, edge_type: str, target: Id, *, mode: Mode | None = None, draw: int = -1
    ) -> "Explanation | LinkExplanation":
        """Show what the log-odds of a link are the sum of: its type, both nodes' vectors, neighbourhoods, each typed path.

        Models with the paper's head have no such sum: of these it is the `Explanation` of both ends.

        Args:
            source: Id of the link's source.
            edge_type: Its type.
            target: Id of its target.
            mode: Which neighbours are looked at, where neighbourhoods are a part of the score.
            draw: Which of the drawn neighbourhoods.

        >>> found = gatas.load("runs/kinship").explain_link("Timo-178", "grandparent", "Ana-738")
        >>> sum(one.value for one in found.contributions) == found.answer.log_odds
        """
        from gatas.inference.explain import checked_mode, explain
        from gatas.inference.explain_link import explain_link, scores_by_parts

        if not scores_by_parts(self):
            return explain(self, (source, edge_type, target), mode=mode, draw=draw, answer=None)
        return explain_link(self, source, edge_type, target, mode=checked_mode(self, mode), draw=draw)

    def strongest_paths(self, edge_type: str | None = None, top: int = 5, *, split: str | None = None) -> "list[StrongPath]":
        """Find the typed paths that speak most for links of a type: those with the largest mean contribution to log-odds.

        The mean is over the links of a split: by default validation links or, where there are none of the type, test links.
        These are not in the graph, so that no path leads through the link that is asked for. Training links are looked at where
        no other split has any, hidden from the graph a tenth at a time.

        >>> gatas.load("runs/kinship").strongest_paths("parent-in-law", top=1)[0].name
        'spouse → parent'
        """
        from gatas.inference.strongest_paths import strongest_paths

        self.check_predicts_links()
        return strongest_paths(self, self.link_type(edge_type), top, split)

    def with_new_nodes(
        self,
        features: Any,
        edges: Any,
        *,
        ids: Any = None,
        weights: Any = None,
        embeddings: EmbeddingRule = "mean",
        reverse: bool = True,
    ) -> "Predictor":
        """Return a predictor over the graph with nodes that the model has never seen. Nothing is retrained.

        Args:
            features: A row for each new node, None for a model without features. Where the model was trained on tables, rows
                may be dicts of values by column (or an Arrow table): they are encoded as in training.
            edges: Ids as (sources, edge types, targets), or (sources, targets) where there is one type. They may join new and
                old nodes in any way.
            ids: Ids of the new nodes; where ids are indices, by default those after the graph's last.
            weights: Weights of the new edges, where the graph's edges have weights.
            embeddings: What stands in for learned embeddings: the mean of the sampled neighbours', or zeros.
            reverse: Add the inverse of each new edge, where the graph's edge types have inverses.

        >>> predictor.with_new_nodes(features, (["zoe"], ["knows"], ["ada"]), ids=["zoe"]).explain("zoe")
        """
        graph, exact = extended(self, features, edges, ids, weights, embeddings, reverse)
        found = Predictor(self.model, self.dataset, mode=self.mode, draws=len(self.draws), graph=graph, exact=exact)
        known = self.__dict__.get("all_nodes") if isinstance(self.graph, Graph) else None
        if known is not None and reverse and walks_both_ways(self.dataset.graph):
            found.all_nodes = AllNodes(found, known)
        return found

    def embed_new(self, features: Any, edges: Any, **settings: Unpack[NewNodeSettings]) -> NDArray[np.float32]:
        """Return (n, K·F'') representations of new nodes; the arguments are those of `with_new_nodes`."""
        predictor = self.with_new_nodes(features, edges, **settings)
        return predictor.embed_indices(predictor.new_indices)

    @property
    def new_ids(self) -> list[Any]:
        """Return the ids of new nodes."""
        return list(ids_of(self.graph, self.new_indices).to_pylist())

    def map_embeddings(
        self, ids: Any = None, *, method: MapMethod = "auto", seed: int = 0, progress: ProgressCallback = silent
    ) -> "EmbeddingMap":
        """Place nodes in a plane, near one another where they are represented alike; of more than 5,000, some.

        Args:
            ids: Nodes; all if left out.
            method: `"t-sne"`, `"umap"` (pip install umap-learn), or `"auto"` for UMAP where it is installed.
            seed: What is drawn is a function of it.
            progress: Told how many of the nodes are represented, from 0 to 1.

        >>> predictor.map_embeddings().write(Path("map.png"))
        """
        from gatas.inference.embedding_map import embedding_map

        nodes = None if ids is None else indices_of(self.graph, ids)
        return embedding_map(self, nodes, method=method, seed=seed, progress=progress)

    def write_embeddings(
        self, path: str | Path, ids: Any = None, *, batch_size: int | None = None, progress: ProgressCallback = silent
    ) -> int:
        """Write representations of all nodes, or of some, as Parquet or .npy, a batch at a time; return their number."""
        from gatas.inference.files import write_embeddings

        return write_embeddings(self, Path(path), ids, batch_size, progress)

    def write_predictions(
        self, path: str | Path, ids: Any = None, *, draws: int | None = None, progress: ProgressCallback = silent
    ) -> int:
        """Write what is predicted of all nodes, or of some, as Parquet, CSV or JSON, a batch at a time; return their number."""
        from gatas.inference.files import write_predictions

        self.check_predicts_nodes()
        return write_predictions(self, Path(path), ids, draws, progress)

    def export(
        self,
        path: str | Path,
        *,
        format: "ProgramFormat" = "onnx",
        batch_size: int | None = None,
        sample_size: int | None = None,
        overwrite: bool = False,
        name: str | None = None,
    ) -> "ExportedModel":
        """Write the model as a program that runs without gatas: it answers for neighbourhoods that are given as arrays.

        Beside it are written what it takes and gives (`model.onnx.json`), and an example of the run's own nodes or links with
        this predictor's answers (`model.onnx.npz`). Before that, the program's answers are compared with these.

        Args:
            path: The file: .onnx, or .pt2 for the format torch.
            format: `"onnx"` (pip install 'gatas[onnx]'), or `"torch"` for a program of torch.export.
            batch_size: Nodes or links that it takes at a time; 64, or fewer where neighbourhoods are large.
            sample_size: Neighbours of each; as trained, or where all are looked at, those of the largest neighbourhood.
            overwrite: Whether files that exist are replaced.
            name: Of the run, for the description; the data's by default.

        >>> gatas.load("runs/digits").export("digits.onnx")
        """
        from gatas.inference.export import export_model

        sizes: Any = {"batch_size": batch_size, "sample_size": sample_size}
        return export_model(self, Path(path), format, **sizes, overwrite=overwrite, name=name)

    def program_inputs(
        self, ids: Any, *, batch_size: int | None = None, sample_size: int | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return what an exported program takes, of nodes given by id: their neighbourhoods as this predictor sees them.

        Sizes are those of the export. Of fewer nodes than a batch has, the rest is empty: leave out what comes of it.

        >>> session.run(["probabilities"], predictor.program_inputs([42]))[0][:1]
        """
        from gatas.inference.program_inputs import node_inputs, program_sizes

        self.check_predicts_nodes()
        return node_inputs(self, indices_of(self.graph, ids), program_sizes(self, batch_size, sample_size)).arrays

    def link_program_inputs(
        self, sources: Any, edge_types: Any, targets: Any, *, batch_size: int | None = None, sample_size: int | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return what an exported program takes, of links between nodes given by id; one type for all, or one for each."""
        from gatas.inference.program_inputs import link_inputs, program_sizes

        source, kind, target = self._links_by_index(sources, edge_types, targets)
        return link_inputs(self, source, kind, target, program_sizes(self, batch_size, sample_size)).arrays
