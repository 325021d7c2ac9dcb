"""What a model is made of, checked when given: the settings of `NodeClassifier` and `LinkPredictor`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, PositiveInt, model_validator

from gatas.datasets.settings import checked, shown
from gatas.nn.link_decoders import DecoderName

LinkPartName = Literal["pair", "vectors", "neighbourhood", "paths"]
AblationName = Literal[
    "none", "base", "without_transitions", "without_prior", "uniform_steps", "without_embeddings", "without_paths"
]

__all__ = ["AblationName", "ModelConfig", "NumberOrAuto", "checked", "model_defaults"]

PAIR: tuple[LinkPartName, ...] = ("pair",)
"""The paper's way to score links: a head over both representations."""
PAIR_DEFAULTS: dict[str, Any] = {"num_steps": 2, "dropout": 0.3, "pair_products": True}
NODE_DEFAULTS: dict[str, Any] = {"num_steps": "auto", "max_degree": "auto"}
LINK_DEFAULTS: dict[str, Any] = {
    "num_steps": "auto", "max_degree": "auto", "revisits": True, "dropout": 0.3, "link_score": "auto",
}  # fmt: skip


def _caps(given: Any) -> Any:
    numbers = given if isinstance(given, list | tuple) else () if given is None else [given]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 1 for number in numbers) or given in ([], ()):
        raise ValueError(f"{given!r} came; expected a whole number from 1 on, a list with one for each step, or null for all.")
    return given


def _number_or_auto(given: Any) -> Any:
    if given != "auto" and not _is_count(given):
        raise ValueError(f"{shown(given)} came; expected a whole number from 1 on, or auto.")
    return given


def _degree(given: Any) -> Any:
    if given not in ("auto", None) and not _is_count(given):
        raise ValueError(f"{shown(given)} came; expected a whole number from 1 on, auto, or null for no limit.")
    return given


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


def _link_parts(given: Any) -> Any:
    names = [given] if isinstance(given, str) else given
    if given != "auto" and not (isinstance(names, list | tuple) and all(name in get_args(LinkPartName) for name in names)):
        raise ValueError(f"{given!r} came; expected auto, or a list of some of {', '.join(get_args(LinkPartName))}.")
    return given if given == "auto" else names


LinkParts = Annotated[tuple[LinkPartName, ...] | Literal["auto"], BeforeValidator(_link_parts)]
NumberOrAuto = Annotated[int | Literal["auto"], BeforeValidator(_number_or_auto)]
Degree = Annotated[int | Literal["auto"] | None, BeforeValidator(_degree)]
StepCaps = Annotated[int | tuple[int, ...] | None, BeforeValidator(_caps)]


def model_defaults(task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model that are by default not those of `ModelConfig`, but others for this task.

    They depend on what is `given`: links that are scored as in the paper have defaults of their own.
    """
    if task != "link prediction":
        return NODE_DEFAULTS
    return PAIR_DEFAULTS if scores_pairs(given) else LINK_DEFAULTS


def scores_pairs(given: Mapping[str, Any]) -> bool:
    """Whether settings ask for the paper's head."""
    asked = given.get("link_score")
    return asked == PAIR[0] or (isinstance(asked, list | tuple) and tuple(asked) == PAIR)


class ModelConfig(BaseModel, frozen=True, extra="forbid"):
    """Sizes and switches of a model; letters are those of the paper. Defaults are for classes of nodes."""

    @property
    def steps(self) -> int:
        """The number of steps, once it is settled for a graph."""
        assert isinstance(self.num_steps, int), "num_steps is settled when a model is made"
        return self.num_steps

    @property
    def degree_limit(self) -> int | None:
        """The limit on degrees, once it is settled for a graph."""
        assert self.max_degree != "auto", "max_degree is settled when a model is made"
        return self.max_degree

    @model_validator(mode="after")
    def _check_link_score(self) -> "ModelConfig":
        parts = self.link_score
        if parts == "auto":
            return self
        if not parts or len(set(parts)) < len(parts) or ("pair" in parts and len(parts) > 1):
            raise ValueError(
                f"link_score is {list(parts)}; expected pair alone, or vectors, neighbourhood and paths, each once."
            )
        return self

    num_steps: NumberOrAuto = Field(
        3, description="C: the longest path considered; auto: 3 where what walks of so many steps reach fits, else 2"
    )
    sample_size: int = Field(50, ge=1, description="S: neighbours drawn for each target")
    transition_kind: Literal["walk", "count"] = Field("walk", description="probabilities of walks, or shares of their number")
    max_candidates: StepCaps = Field(
        None, description="keep only the likeliest of each target and step, or so many by step such as [64, 256]; null: all"
    )
    max_degree: Degree = Field(
        None, description="walks do not go on through nodes with more edges; null: through all; auto: as memory needs it"
    )
    layer_norm: bool | None = Field(None, description="normalise each node's features; null: where there are 16 or more")
    hidden_size: int = Field(50, ge=1, description="F: width of the dense layer over features")
    node_embedding_size: int | None = Field(
        None, ge=0, description="R: learned per node; null: 50 where nodes, or all of a type, have no features, else 0"
    )
    node_embedding_start: Literal["random", "structure"] = Field(
        "random", description="what they are at the start: drawn, or factors of the graph's transition probabilities"
    )
    node_embedding_scale: float | None = Field(
        None, gt=0, description="their standard deviation at the start; null: Glorot's, or 1 from the structure"
    )
    hide_own_embedding: bool = Field(False, description="a node sees the learned embeddings of others, not its own")
    relation_embedding_size: int = Field(10, ge=1, description="D: learned per edge type")
    neighbour_size: int = Field(50, ge=1, description="F': width of a neighbour's representation")
    head_size: int = Field(50, ge=1, description="F'': width of one attention head")
    num_heads: int = Field(4, ge=1, description="K: attention heads")
    input_noise: float = Field(0.0, ge=0, lt=1, description="share of features masked in training")
    dropout: float = Field(0.5, ge=0, lt=1, description="on representations and attention weights")
    path_attention: Literal["linear", "mlp", "none"] = Field(
        "linear", description="f of eq. 1: the paper's, or with a hidden layer"
    )
    skip_connection: bool = Field(False, description="a target's own inputs stand beside what it attends to")
    output_norm: bool = Field(False, description="normalise representations")
    output_dropout: float = Field(0.0, ge=0, lt=1, description="share of each representation dropped in training")
    path_mean_size: int = Field(0, ge=0, description="width of a layer for each typed path, over what it leads to; 0: none")
    label_inputs: bool = Field(False, description="known labels of neighbours are inputs; a node never sees its own")
    label_dropout: float = Field(0.0, ge=0, lt=1, description="share of known labels that are hidden in training")
    label_spreading: bool = Field(
        False, description="what labels spread over the whole graph say is added, as much as suits validation data"
    )
    hidden_sizes: tuple[PositiveInt, ...] = Field((), description="layers between attention heads and classes")
    pair_hidden_size: int = Field(256, ge=1, description="width of the layers that score a link")
    pair_products: bool = Field(False, description="score a link by products of both nodes' layers too")
    link_score: LinkParts = Field(
        PAIR,
        description="what a link is scored by: pair (the paper's head over both representations), or the sum of vectors (each "
        "node has its own), neighbourhood (products of both representations) and paths (typed paths between both nodes); auto: "
        "vectors and paths, and neighbourhood where nodes have features, or fewer than ten edges each",
    )
    decoder: DecoderName = Field("complex", description="how vectors and neighbourhoods of both nodes are compared")
    vector_size: int = Field(512, ge=2, description="numbers in the vectors that are compared")
    path_factors: int = Field(32, ge=1, description="factors of the weights of paths, where these are too many for a table")
    revisits: bool = Field(False, description="whether walks may meet a node again one step after they first did")
    exclude_targets: bool = Field(True, description="hide the links asked for from the neighbourhoods of their own batch")
    late_decay: bool = Field(False, description="q starts alike at 0 and 1 steps, as in the authors' code")
    positions_from_neighbour: bool = Field(False, description="steps of a path count from its far end, as in the authors' code")
    path_score_dropout: bool = Field(False, description="dropout on the scores of a path's steps, as in the authors' code")
    l2_on_depth: bool = Field(False, description="λ is over q too, as in the authors' code")
    ablation: AblationName = Field("none", description="what the paper's §4.4 takes away")
