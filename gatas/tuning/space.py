"""What `tune` tries: the table of settings and their values, in one place.

A setting that joins the table is a row of it. Where a setting has several rows, the first that applies counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gatas.datasets import Dataset, NodeTargets
from gatas.nn.path_means import MOST_PATHS
from gatas.tasks import LinkPredictor, Model, NodeClassifier
from gatas.tasks.model import EMBEDDING_SIZE
from gatas.tasks.settling import limits_of
from gatas.training.config import Config
from gatas.training.task_making import batch_size, count_to_learn
from gatas.tuning.values import Choices, Range, Values

Space = Mapping[str, Values]
"""Settings that are searched, named `section.key`, and what they may be."""


@dataclass(frozen=True)
class Facts:
    """What the space follows from: the data, and the model that the config makes of it."""

    dataset: Dataset
    model: Model
    config: Config  # with numbers in place of `auto`

    @classmethod
    def of(cls, dataset: Dataset, model: Model, config: Config) -> "Facts":
        return cls(dataset, model, config.model_copy(update={"model": model.config}))

    @property
    def parts(self) -> tuple[str, ...]:
        return self.model.parts if isinstance(self.model, LinkPredictor) else ()

    def own(self, setting: str) -> Any:
        """Return what the config has for a setting."""
        section, _, key = setting.partition(".")
        value = getattr(getattr(self.config, section), key)
        if value is None and key == "node_embedding_size":
            return 0 if self.model.all_have_features else EMBEDDING_SIZE
        return value


def always(facts: Facts) -> bool:
    return True


def encodes(facts: Facts) -> bool:
    """Whether nodes are represented by their neighbourhoods: always, but for links that other parts score."""
    return not facts.parts or "neighbourhood" in facts.parts


def has_features(facts: Facts) -> bool:
    return encodes(facts) and facts.model.num_features > 0


def all_have_features(facts: Facts) -> bool:
    return encodes(facts) and facts.model.all_have_features


def embeds_nodes(facts: Facts) -> bool:
    """Whether nodes whose classes or numbers are learned have learned embeddings."""
    return isinstance(facts.model, NodeClassifier) and facts.own("model.node_embedding_size") > 0


def scores_pairs(facts: Facts) -> bool:
    return isinstance(facts.model, LinkPredictor) and not facts.parts


def has_vectors(facts: Facts) -> bool:
    return "vectors" in facts.parts or "neighbourhood" in facts.parts


def has_few_paths(facts: Facts) -> bool:
    """Whether every typed path of up to three steps could have a layer of its own."""
    return encodes(facts) and facts.model.graph.num_edge_types**3 <= MOST_PATHS // 4


def classifies(facts: Facts) -> bool:
    return isinstance(facts.model, NodeClassifier)


def has_one_class_each(facts: Facts) -> bool:
    targets = facts.dataset.targets
    return isinstance(targets, NodeTargets) and not targets.multi_label and not facts.dataset.mapped


def learns_lists(facts: Facts) -> bool:
    return isinstance(facts.model, LinkPredictor) and facts.config.training.loss == "list"


def affordable_steps(facts: Facts) -> Values:
    """Steps up to the config's own, and up to 3 where walks are few enough for a table of any of them."""
    limit, own = facts.model.config.degree_limit, facts.model.config.steps
    limits = limits_of(facts.dataset, facts.model.config)
    steps = [n for n in (1, 2, 3) if n <= own or (limits.fits(n, limit) and limits.fits_paths(n))]
    return Choices(tuple(steps))


def batch_sizes(facts: Facts) -> Values:
    """Batches from a quarter of the config's own on, which takes four times the steps, up to the training split."""
    count = count_to_learn(facts.dataset)
    own = batch_size(facts.dataset, facts.config.training)
    return Choices(tuple(size for size in (32, 64, 128, 256, 512, 1024, 2048) if own <= 4 * size and size <= count))


@dataclass(frozen=True)
class SpaceRow:
    """A setting, what it may be, and where it matters."""

    setting: str
    values: Values | Callable[[Facts], Values]
    applies: Callable[[Facts], bool] = always


TABLE = (
    SpaceRow("model.num_steps", affordable_steps),
    SpaceRow("model.sample_size", Choices((25, 50, 100)), encodes),
    SpaceRow("model.hidden_size", Choices((32, 64, 128, 256)), has_features),
    SpaceRow("model.neighbour_size", Choices((32, 64, 128)), encodes),
    SpaceRow("model.head_size", Choices((16, 32, 64, 128)), encodes),
    SpaceRow("model.num_heads", Choices((1, 2, 4, 8)), encodes),
    SpaceRow("model.node_embedding_size", Choices((0, 16, 64)), all_have_features),
    SpaceRow("model.node_embedding_size", Choices((0, 32, 64, 128)), has_features),
    SpaceRow("model.node_embedding_size", Choices((32, 64, 128)), encodes),
    SpaceRow("model.hide_own_embedding", Choices((False, True)), embeds_nodes),
    SpaceRow("model.dropout", Range(0.0, 0.8), encodes),
    SpaceRow("model.input_noise", Range(0.0, 0.8), has_features),
    SpaceRow("model.skip_connection", Choices((False, True)), encodes),
    SpaceRow("model.output_norm", Choices((False, True)), encodes),
    SpaceRow("model.output_dropout", Choices((0.0, 0.3, 0.6)), encodes),
    SpaceRow("model.path_mean_size", Choices((0, 64)), has_few_paths),
    SpaceRow("model.label_inputs", Choices((False, True)), classifies),
    SpaceRow("model.label_spreading", Choices((False, True)), has_one_class_each),
    SpaceRow("model.pair_hidden_size", Choices((64, 128, 256)), scores_pairs),
    SpaceRow("model.pair_products", Choices((False, True)), scores_pairs),
    SpaceRow("model.vector_size", Choices((64, 128, 256, 512)), has_vectors),
    SpaceRow("training.learning_rate", Range(0.0005, 0.03, log=True)),
    SpaceRow("training.l2", Choices((0.0, 1e-5, 1e-4, 1e-3, 1e-2))),
    SpaceRow(
        "training.n3", Choices((0.0, 0.001, 0.003, 0.01, 0.03, 0.1)), lambda facts: learns_lists(facts) and has_vectors(facts)
    ),
    SpaceRow("training.num_negatives", Choices((250, 1000, 4000)), learns_lists),
    SpaceRow("training.batch_size", batch_sizes),
)


def default_space(facts: Facts) -> Space:
    """Return the rows of the table that apply, each with the config's own value among what is tried."""
    found: dict[str, Values] = {}
    for row in TABLE:
        if row.setting not in found and row.applies(facts):
            values = row.values if isinstance(row.values, Choices | Range) else row.values(facts)
            found[row.setting] = values.including(facts.own(row.setting))
    return found
