"""`Model`: a sampler and an encoder over the graph of a data set; what stands on them is the task's."""

import warnings
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from gatas.datasets import Dataset, NodeTargets, StoreData
from gatas.errors import ConfigError, TooLargeError
from gatas.files import RunningChecksum
from gatas.nn import Encoder
from gatas.nn.ablations import ABLATIONS
from gatas.nn.sparse_rows import is_sparse, select_rows, sparse_tensor
from gatas.ops.attend_neighbours import Storage
from gatas.ops.distinct import distinct
from gatas.sampling import Neighbourhood, NeighbourSampler
from gatas.sampling.on_demand import rows_on
from gatas.sampling.sampler import Mode
from gatas.tasks.embedding_start import start_from_structure
from gatas.tasks.label_spreading import check_spreads, spread_labels
from gatas.tasks.learnable import Learnable
from gatas.tasks.settings import ModelSettings
from gatas.tasks.settling import is_for_links, settled_model
from gatas.tasks.walk_limits import ON_DEMAND
from gatas.transitions import OnDemand, Transitions, TransitionSource
from gatas.transitions.ahead import ReadAhead
from gatas.transitions.build import Walks
from gatas.transitions.table import opened_for

EMBEDDING_SIZE = 50
"""R where nodes have no features."""
FEW_FEATURES = 16
"""LayerNorm would take much away from fewer."""
TOUCHED_ROWS = 1 << 16
"""Rows of features that are looked at at once."""
DENSE_BYTES = 1 << 26
"""Sparse features that take no more when dense are made dense, which a GPU and noise are quicker with."""
EVALUATED_SLOTS = {"cpu": 50_000, "cuda": 250_000}
"""Neighbours that one batch of an evaluation has, about."""


class Model(Learnable):
    """Represents the nodes of a data set, to be trained by `gatas.fit`. `gatas.Predictor` answers with it afterwards.

    Args:
        dataset: The data that it is made for.
        transitions: Transition probabilities, where they exist already; computed if left out.
        seed: Weights are a function of it.
        settings: Those of `ModelConfig`; `NodeClassifier` and `LinkPredictor` list what is changed most often.
    """

    features: Tensor | None
    labels: Tensor | None
    spread: Tensor | None
    drawn_seed: int
    last_weights: str | None

    def __init__(
        self,
        dataset: Dataset,
        *,
        transitions: TransitionSource | None = None,
        seed: int = 0,
        **settings: Unpack[ModelSettings],
    ) -> None:
        super().__init__()
        self.config, self.choices, self.on_demand = settled_model(dataset, settings)
        self.graph, self.names, self.num_features = dataset.graph, dataset.names, dataset.nodes.num_features
        self.all_have_features = _all_have_features(dataset)
        self.ablation = ABLATIONS[self.config.ablation]
        if self.config.label_spreading:
            check_spreads(dataset, trains=transitions is None)  # models that are trained already are made over theirs
        steps = self.ablation.transitions(self.config.steps)["num_steps"]
        self.transitions = transitions or self._transitions(dataset, steps)
        if self.transitions.setting.num_steps != steps:
            raise ConfigError(f"transitions of {self.transitions.setting.num_steps} steps were given; the model takes {steps}.")
        if isinstance(self.transitions, ReadAhead | OnDemand):
            self.captures = False  # the host makes rows, or reads how many a GPU has made
        self.register_buffer("features", _features(dataset), persistent=False)
        self.register_buffer("labels", known_labels(dataset) if self.config.label_inputs else None, persistent=False)
        self.register_buffer("spread", spread_labels(dataset) if self.config.label_spreading else None, persistent=False)
        if self.features is not None and is_sparse(self.features):
            self.captures = self.stacks = False  # the host counts the numbers of each batch
        graph_id = dataset.nodes.graph_id
        self.largest_graph = dataset.graph.num_nodes if graph_id is None else int(np.bincount(graph_id).max())
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Draw all weights anew, and begin with the first of the seed's noise."""
        self.drawn_seed, self.last_weights = seed, None
        device = None if self.features is None else self.features.device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            settings = {"seed": seed, "late_decay": self.config.late_decay, **self.ablation.sampler()}
            self.sampler = NeighbourSampler(self.transitions, self.config.sample_size, **settings)
            self.encoder = Encoder(seed=seed, **self.ablation.encoder(**self._encoder_settings()))
            self.head = self._make_head()
        if self.config.node_embedding_start == "structure" and self.encoder.inputs.embeddings is not None:
            start_from_structure(self.encoder.inputs.embeddings, self.graph, self.config.node_embedding_scale)
        self.to(device)

    def has_own_weights(self) -> bool:
        """Whether weights are as they were drawn, or as the last `fit` left them, rather than set by a caller."""
        now = self._weights_checksum()
        if self.last_weights is not None:
            return now == self.last_weights
        before = {name: tensor.detach().clone() for name, tensor in self.state_dict().items()}
        self.reset(self.drawn_seed)
        drawn = self._weights_checksum()
        self.load_state_dict(before)
        return now == drawn

    def remember_weights(self) -> None:
        """Take the weights of now for those that `fit` left."""
        self.last_weights = self._weights_checksum()

    def _weights_checksum(self) -> str:
        digest = RunningChecksum()
        for _, parameter in sorted(self.named_parameters()):
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _transitions(self, dataset: Dataset, steps: int) -> TransitionSource:
        """Build a table in memory; for a store, open the one that it names, or make rows for each batch ahead of it.

        Rows are made for each batch as well where a table for nodes does not fit: they are the same.
        """
        names = ("max_candidates", "max_degree", "revisits")
        settings: Any = {"kind": self.config.transition_kind, **{name: getattr(self.config, name) for name in names}}
        if not dataset.mapped:
            return self._in_memory(dataset, steps, settings)
        assert dataset.store is not None
        if isinstance(dataset.origin, StoreData) and dataset.origin.transitions is not None:
            return opened_for(dataset.graph, dataset.origin.transitions, Walks(steps, **settings))
        return ReadAhead(OnDemand(dataset.graph, steps, **settings, scratch=dataset.store.parent), self._touch)

    def _in_memory(self, dataset: Dataset, steps: int, settings: dict[str, Any]) -> TransitionSource:
        """Build a table; where it does not fit, make rows for each batch ahead of it."""
        if not self.on_demand:
            try:
                return Transitions.build(dataset.graph, steps, **settings)
            except TooLargeError:  # others may hold memory that the machine has
                if is_for_links(dataset):
                    raise
                self.on_demand = True
                self.choices.append(ON_DEMAND)
        return ReadAhead(OnDemand(dataset.graph, steps, **settings))

    def _touch(self, nodes: NDArray[Any]) -> None:
        """Have the features of nodes that may be drawn read from disk, if they lie there."""
        if self.features is not None and not self.features.is_cuda:
            for some in torch.split(distinct(torch.from_numpy(nodes).long())[0], TOUCHED_ROWS):
                select_rows(self.features, some) if is_sparse(self.features) else self.features.index_select(0, some)

    def look_ahead(self, batch: Mapping[str, Tensor]) -> None:
        device = self.sampler.depth_logits.device
        if isinstance(self.transitions, ReadAhead) and rows_on(self.transitions, device) is None:
            self.transitions.ahead(batch["target"].cpu())

    def _make_head(self) -> nn.Module:
        raise NotImplementedError

    def _encoder_settings(self) -> dict[str, Any]:
        config = self.config
        embedding_size = config.node_embedding_size
        if embedding_size is None:
            embedding_size = 0 if self.all_have_features else EMBEDDING_SIZE
        layer_norm = self.num_features >= FEW_FEATURES if config.layer_norm is None else config.layer_norm
        names = (
            "num_steps", "hidden_size", "node_embedding_scale", "hide_own_embedding", "relation_embedding_size",
            "neighbour_size", "head_size", "num_heads", "input_noise", "dropout", "path_attention", "positions_from_neighbour",
            "path_score_dropout", "skip_connection", "output_norm", "output_dropout", "label_dropout", "path_mean_size",
        )  # fmt: skip
        return {
            "feature_size": self.num_features,
            "num_relations": self.graph.num_relations,
            "num_nodes": self.graph.num_nodes,
            "node_embedding_size": embedding_size,
            "layer_norm": layer_norm,
            "num_labels": len(self.names) if self.config.label_inputs else 0,
            **{name: getattr(config, name) for name in names},
        }

    def represent(
        self, target: Tensor, *, draw: Tensor | None = None, mode: Mode | None = None, first_node: Tensor | None = None
    ) -> Tensor:
        """Return (B, K·F'') representations of (B,) targets.

        `first_node` promises that they are of one graph, and says where it begins.
        """
        return self._encoded(target, self.sampler(target, draw=draw, mode=mode), first_node)

    def _encoded(self, target: Tensor, neighbourhood: Neighbourhood, first_node: Tensor | None = None) -> Tensor:
        window = None if first_node is None else (first_node[0], self.largest_graph)
        representations: Tensor = self.encoder(target, neighbourhood, self.features, self.labels, window=window)
        return representations

    def replace_transitions(self, transitions: TransitionSource) -> None:
        """Take rows from another source, such as a table that was built meanwhile; weights stay."""
        self.transitions = transitions
        settings = {"late_decay": self.config.late_decay, **self.ablation.sampler()}
        sampler = NeighbourSampler(transitions, self.config.sample_size, **settings).to(self.sampler.depth_logits.device)
        sampler.load_state_dict(self.sampler.state_dict())
        self.sampler = sampler

    def l2_share(self, name: str) -> float:
        """Return 1, or 0 for e and, unless asked for, q̃."""
        left_out = "relation_embeddings" in name or ("depth_logits" in name and not self.config.l2_on_depth)
        return 0.0 if left_out else 1.0

    def prepare(self, precision: str, storage: Storage = "auto", *, sparse: bool = False) -> None:
        self.encoder.neighbours.precision = "ieee" if precision == "float32" else "tf32"
        self.encoder.neighbours.storage = storage
        if self.encoder.inputs.embeddings is not None:
            self.encoder.inputs.embeddings.sparse = sparse

    @property
    def num_embeddings(self) -> int:
        embeddings = self.encoder.inputs.embeddings
        return 0 if embeddings is None else embeddings.num_embeddings

    def evaluation_batch(self, device: torch.device) -> int:
        return max(1, min(EVALUATED_SLOTS[device.type] // self.config.sample_size, 512))

    def depth_of(self, parameters: Mapping[str, Tensor]) -> Tensor | None:
        return torch.softmax(parameters["sampler.depth_logits"], dim=-1)


def _all_have_features(dataset: Dataset) -> bool:
    """Whether there are features, and every type of nodes has some."""
    if dataset.features is None or not dataset.features.shape[1]:
        return False
    types = dataset.nodes.node_type
    if types is None:
        return True
    there: set[int] = set()
    given: set[int] = set()
    for first in range(0, len(types), TOUCHED_ROWS):
        own = types[first : first + TOUCHED_ROWS]
        size: Any = abs(dataset.features[first : first + TOUCHED_ROWS])
        there |= set(own.tolist())
        given |= set(own[np.asarray(size.sum(axis=1)).ravel() > 0].tolist())
    return there == given


def _features(dataset: Dataset) -> Tensor | None:
    """Return features as they are, dense or sparse; small ones are made dense."""
    features = dataset.features
    if features is None:
        return None
    if isinstance(features, np.ndarray):
        return as_tensor(features, copy=not dataset.mapped)
    if 4 * features.shape[0] * features.shape[1] <= DENSE_BYTES:
        return torch.from_numpy(features.toarray())
    return as_sparse_tensor(features)


def as_sparse_tensor(features: sparse.csr_array) -> Tensor:
    """Return sparse features as a tensor over the same memory."""
    indptr, columns, values = (as_tensor(part, copy=False) for part in (features.indptr, features.indices, features.data))
    return sparse_tensor(indptr, columns, values, int(features.shape[1]))


def known_labels(dataset: Dataset) -> Tensor:
    """Return the labels of training nodes: (N,) numbers, -1 for all others, or (N, num_labels) of 0 and 1."""
    if not isinstance(dataset.targets, NodeTargets):
        raise ConfigError(
            f"model.label_inputs is true, but {dataset.name} is for {dataset.task}: it has no labels. Set it to false."
        )
    labels, train = np.asarray(dataset.targets.labels), np.asarray(dataset.targets.splits["train"])
    known = np.full(labels.shape, -1, np.int64) if labels.ndim == 1 else np.zeros(labels.shape, np.float32)
    known[train] = labels[train]
    return torch.from_numpy(known)


def as_tensor(values: NDArray[Any], *, copy: bool) -> Tensor:
    """Return an array as a tensor of its own, or as one over the same memory, which may be a mapped file."""
    if copy:
        return torch.tensor(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # mapped files are read-only, and nothing here writes
        return torch.from_numpy(values)
